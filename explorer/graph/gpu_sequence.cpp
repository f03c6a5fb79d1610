#include "explorer/graph/gpu_sequence.hpp"

#include <algorithm>
#include <numeric>

namespace rubato {

GpuSequence::GpuSequence(const LaunchCosts& costs, const ClockGrid& grid,
                         std::vector<std::uint32_t> launches, std::vector<double> length_s)
    : clocks_(grid.size()),
      launches_(std::move(launches)),
      pairs_(grid.pairs().begin(), grid.pairs().end()) {
  const double gpus = static_cast<double>(costs.model().graph().gpus().size());
  for (const ClockPair& pair : pairs_)
    idle_w_.push_back(
        std::max(costs.model().idle_power_w(pair) - costs.least_idle_w() / gpus, 0.0));
  for (const std::uint32_t i : launches_) {
    for (std::size_t c = 0; c < clocks_; ++c) {
      cost_j_.push_back(costs.cost_j(i, id_at<ClockId>(c)));
      time_s_.push_back(costs.time_s(i, id_at<ClockId>(c)));
    }
  }
  Segment segment{.name = "run", .launches = {}};
  for (std::size_t k = 0; k < launches_.size(); ++k) segment.launches.push_back(id_at<KernelId>(k));
  Trace trace;
  trace.segments.push_back(std::move(segment));
  trace_ = std::make_unique<const Trace>(std::move(trace));
  // Energies count for nothing here, see PricedSequence.
  std::vector<double> ones(length_s.size(), 1.0);
  lengths_ = std::make_unique<const ProfileTable>(launches_.size(), clocks_, std::move(length_s),
                                                  std::move(ones));
}

std::vector<double> GpuSequence::priced_launches(const SequencePrices& prices) const {
  std::vector<double> priced(cost_j_.size());
  for (std::size_t k = 0; k < launches_.size(); ++k) {
    const double flow_w = prices.flow_w[launches_[k]];
    for (std::size_t c = k * clocks_; c < (k + 1) * clocks_; ++c)
      priced[c] = cost_j_[c] + flow_w * time_s_[c];
  }
  return priced;
}

SwitchingProblem GpuSequence::problem(const SequencePrices& prices,
                                      const SwitchModel& switching) const {
  SwitchModel model = switching;
  model.core.energy_j += prices.change_j;
  return {.trace = *trace_,
          .per_launch = *lengths_,
          .clocks = pairs_,
          .idle_power_w = idle_w_,
          .switching = model,
          .budget_s = 0.0};
}

PricedRuns GpuSequence::cheapest(const SequencePrices& prices, const SwitchModel& switching) const {
  constexpr std::size_t most_rounds = 3;  // of first clocks, those that may be best first
  const SwitchingProblem asked = problem(prices, switching);
  const LaunchSequence sequence(asked);
  std::vector<double> change_w;
  for (const std::uint32_t i : launches_) change_w.push_back(prices.flow_w[i]);
  const PricedSequence priced(sequence, priced_launches(prices), std::move(change_w));
  const std::vector<double> bounds = bounds_by_first_clock(priced);
  std::vector<std::size_t> order(bounds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t c) { return bounds[c]; });
  PricedRuns best = cheapest_round(priced, order[0]);
  for (std::size_t i = 1; i < std::min(most_rounds, order.size()); ++i) {
    if (bounds[order[i]] >= best.value) break;
    PricedRuns round = cheapest_round(priced, order[i]);
    if (round.value < best.value) best = std::move(round);
  }
  return best;
}

// A change that takes effect within a launch costs no less than the same change before or after it:
// its stall is priced as the cheaper of both.
PricedRuns GpuSequence::relaxed(const SequencePrices& prices, const SwitchModel& switching) const {
  const SwitchingProblem asked = problem(prices, switching);
  const LaunchSequence sequence(asked);
  std::vector<double> change_w;
  for (std::size_t k = 0; k < launches_.size(); ++k) {
    const double flow_w = prices.flow_w[launches_[k]];
    change_w.push_back(k == 0 ? 0.0 : std::min(flow_w, prices.flow_w[launches_[k - 1]]));
  }
  return cheapest_open(PricedSequence(sequence, priced_launches(prices), std::move(change_w)), {},
                       true);
}

std::vector<std::vector<std::uint32_t>> leading_launches(const LaunchCosts& costs) {
  const ExecutionGraph& graph = costs.model().graph();
  std::vector<std::vector<std::uint32_t>> launches(graph.gpus().size());
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (costs.is_clocked(i) && costs.leads(i))
      launches[index(*graph.gpu_of(graph.activities()[i]))].push_back(i);
  }
  return launches;
}

}  // namespace rubato
