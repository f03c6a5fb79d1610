#include "explorer/graph/sequences/gpu_sequence.hpp"

#include <algorithm>

#include "explorer/plan/defaults.hpp"

namespace rubato {

GpuSequence::GpuSequence(const LaunchCosts& costs, const ClockGrid& grid, LeadingLaunches launches,
                         std::vector<double> length_s)
    : clocks_(grid.size()),
      launches_(std::move(launches)),
      cost_j_(launches_.positions() * clocks_, 0.0),
      pairs_(grid.pairs().begin(), grid.pairs().end()) {
  const double gpus = static_cast<double>(costs.model().graph().gpus().size());
  const ExecutionGraph& graph = costs.model().graph();
  const ThrottleId throttle = launches_.launches.empty()
                                  ? ThrottleId{}
                                  : costs.model().throttle_of(*graph.gpu_of(
                                        graph.activities()[launches_.launches.front()]));
  const double least_w = costs.least_idle_w() / gpus - costs.model().host_power_w();
  for (const ClockPair& pair : pairs_)
    idle_w_.push_back(std::max(costs.model().idle_power_w(pair, throttle) - least_w, 0.0));
  for (std::size_t k = 0; k < launches_.launches.size(); ++k) {
    for (std::size_t c = 0; c < clocks_; ++c) {
      const std::uint32_t launch = launches_.launches[k];
      cost_j_[launches_.position[k] * clocks_ + c] += costs.cost_j(launch, id_at<ClockId>(c));
      time_s_.push_back(costs.time_s(launch, id_at<ClockId>(c)));
    }
  }
  Segment segment{.name = "run", .launches = {}};
  for (std::size_t p = 0; p < launches_.positions(); ++p)
    segment.launches.push_back(id_at<KernelId>(p));
  Trace trace;
  trace.segments.push_back(std::move(segment));
  trace_ = std::make_unique<const Trace>(std::move(trace));
  // PricedSequence ignores the energies of this table.
  std::vector<double> ones(length_s.size(), 1.0);
  lengths_ = std::make_unique<const ProfileTable>(launches_.positions(), clocks_,
                                                  std::move(length_s), std::move(ones));
}

std::vector<double> GpuSequence::priced_launches(std::span<const double> flow_w) const {
  std::vector<double> priced = cost_j_;
  for (std::size_t k = 0; k < launches_.launches.size(); ++k) {
    const double price_w = flow_w[launches_.launches[k]];
    const std::size_t row = launches_.position[k] * clocks_;
    for (std::size_t c = 0; c < clocks_; ++c) priced[row + c] += price_w * time_s_[k * clocks_ + c];
  }
  for (double& value : priced) value /= launches_.steps;
  return priced;
}

// Price of a second of stall before each position, as a mean over the steps. A step's clock may
// change only where it comes to a position.
// @param price_at  of time before the k-th launch
template <class PriceAt>
std::vector<double> GpuSequence::priced_changes(const PriceAt& price_at) const {
  std::vector<double> change_w(launches_.positions(), 0.0);
  for (std::size_t k = 0; k < launches_.launches.size(); ++k) {
    const std::uint32_t position = launches_.position[k];
    if (k == 0 || position != launches_.position[k - 1])
      change_w[position] += price_at(k) / launches_.steps;
  }
  return change_w;
}

SwitchingProblem GpuSequence::problem(const SwitchModel& switching) const {
  return {.trace = *trace_,
          .per_launch = *lengths_,
          .clocks = pairs_,
          .idle_power_w = idle_w_,
          .switching = with_known_changes(switching),
          .budget_s = 0.0};
}

std::vector<ClockRun> GpuSequence::cheapest(std::span<const double> flow_w,
                                            const SwitchModel& switching) const {
  const SwitchingProblem asked = problem(switching);
  const LaunchSequence sequence(asked);
  const auto at_launch = [&](std::size_t k) { return flow_w[launches_.launches[k]]; };
  return closed(sequence, cheapest_open(PricedSequence(sequence, priced_launches(flow_w),
                                                       priced_changes(at_launch)))
                              .runs);
}

// A change that takes effect within a launch costs no less than the same change before or after it:
// its stall is priced as the cheaper of both.
PricedRuns GpuSequence::relaxed(std::span<const double> flow_w,
                                const SwitchModel& switching) const {
  const SwitchingProblem asked = problem(switching);
  const LaunchSequence sequence(asked);
  const auto cheaper = [&](std::size_t k) {
    if (k == 0) return 0.0;
    return std::min(flow_w[launches_.launches[k]], flow_w[launches_.launches[k - 1]]);
  };
  return cheapest_open(PricedSequence(sequence, priced_launches(flow_w), priced_changes(cheaper)),
                       true);
}

std::vector<LeadingLaunches> leading_launches(const LaunchCosts& costs,
                                              const StepRepeats& repeats) {
  const ExecutionGraph& graph = costs.model().graph();
  std::vector<LeadingLaunches> of_gpus(graph.gpus().size());
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (!costs.is_clocked(i) || !costs.leads(i)) continue;
    LeadingLaunches& own = of_gpus[index(*graph.gpu_of(graph.activities()[i]))];
    own.launches.push_back(i);
    if (repeats.played[i] == i) own.played.push_back(i);
  }
  for (std::size_t g = 0; g < of_gpus.size(); ++g) {
    LeadingLaunches& own = of_gpus[g];
    own.steps = repeats.steps[g];
    for (const std::uint32_t i : own.launches) {
      const auto at = std::ranges::lower_bound(own.played, repeats.played[i]);
      own.position.push_back(static_cast<std::uint32_t>(at - own.played.begin()));
    }
  }
  return of_gpus;
}

}  // namespace rubato
