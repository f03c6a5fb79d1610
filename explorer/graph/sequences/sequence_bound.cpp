#include "explorer/graph/sequences/sequence_bound.hpp"

#include <algorithm>
#include <limits>

#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr int rounds = 16;           // subgradient steps
constexpr double first_step = 0.25;  // share of the whole price put on a late path
constexpr double step_decay = 0.76;

// When activities can run at all: earliest starts and, for a deadline, latest ends.
struct Windows {
  std::vector<double> earliest_start_s, latest_end_s;

  Windows(const LaunchCosts& costs, double deadline_s) {
    const ExecutionGraph& graph = costs.model().graph();
    std::vector<double> fastest_s(graph.size());
    for (std::size_t i = 0; i < graph.size(); ++i) {
      fastest_s[i] = costs.is_clocked(i) ? costs.time_s(i, costs.useful_clocks(i).front())
                                         : costs.time_s(i, ClockId{0});
    }
    earliest_start_s.resize(graph.size());
    (void)earliest_starts(graph, fastest_s, earliest_start_s);
    latest_end_s.assign(graph.size(), deadline_s);
    for (std::size_t i = graph.size(); i-- > 0;) {
      for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
        double& end_s = latest_end_s[index(arc.from)];
        end_s = std::min(end_s, latest_end_s[i] - fastest_s[i] - arc.lag_s);
      }
    }
  }
};

// The sequence of a GPU, its runs measured by earliest starts.
struct BoundedGpu {
  GpuSequence sequence;
  SwitchModel switching;  // no latency; as dwell what bounded() leaves of latency and dwell
};

class SequenceBound {
 public:
  SequenceBound(const LaunchCosts& costs, const ClockGrid& grid, const SwitchModel& switching,
                LaunchPrices prices, const UnitDeadline& deadline)
      : costs_(costs),
        graph_(costs.model().graph()),
        prices_(std::move(prices)),
        deadline_(deadline),
        duration_s_(graph_.size()),
        start_s_(graph_.size()),
        end_s_(graph_.size()) {
    const Windows windows(costs, deadline.time_s);
    for (LeadingLaunches& launches : leading_launches(costs, no_repeats(graph_))) {
      if (launches.launches.empty()) continue;
      gpus_.push_back(bounded(grid, switching, std::move(launches), windows));
    }
  }

  double run(const RunContext& context) {
    double best_j = -unbounded, raise = first_step;
    for (int round = 0; round < rounds && !context.stop_requested(); ++round) {
      best_j = std::max(best_j, evaluate());
      const bool late = replay() > deadline_.time_s;
      step_prices(graph_, end_s_, late, raise, costs_.least_idle_w(), prices_);
      raise *= step_decay;
    }
    return best_j;
  }

 private:
  // Effects of changes are at least a latency and a dwell apart. Here runs are measured by earliest
  // starts of launches. In these the launches that two effects fall into, or next to, may be nearer
  // to each other: by as much as launches can be late.
  BoundedGpu bounded(const ClockGrid& grid, const SwitchModel& switching, LeadingLaunches leading,
                     const Windows& windows) const {
    const std::vector<std::uint32_t>& launches = leading.launches;
    double apart_s = switching.core.lead_s;
    if (switching.mem) apart_s = std::min(apart_s, switching.mem->lead_s);
    apart_s += switching.dwell_s;
    double late_s = 0.0, longest_s = 0.0;
    std::vector<double> length_s;
    for (std::size_t k = 0; k < launches.size(); ++k) {
      const std::uint32_t i = launches[k];
      const bool last = k + 1 == launches.size();
      const double next_s =
          last ? windows.latest_end_s[i] : windows.earliest_start_s[launches[k + 1]];
      const double step_s = std::max(next_s - windows.earliest_start_s[i], tiny_s);
      late_s = std::max(late_s, windows.latest_end_s[i] - windows.earliest_start_s[i]);
      if (!last) longest_s = std::max(longest_s, step_s);
      length_s.insert(length_s.end(), grid.size(), step_s);
    }
    SwitchModel left = switching;
    left.core.lead_s = 0.0;
    if (left.mem) left.mem->lead_s = 0.0;
    left.dwell_s = std::max((apart_s - late_s - longest_s) * (1.0 - tiny_share), 0.0);
    return {.sequence = GpuSequence(costs_, grid, std::move(leading), std::move(length_s)),
            .switching = left};
  }

  // The least sum at the present prices, and the durations behind it.
  double evaluate() {
    CompensatedSum sum_j;
    for (BoundedGpu& gpu : gpus_) {
      const PricedRuns runs = gpu.sequence.relaxed(prices_.flow_w, gpu.switching);
      sum_j.add(runs.value);
      std::size_t k = 0;
      for (const ClockRun& run : runs.runs) {
        for (std::size_t n = 0; n < run.launches; ++n, ++k) {
          const std::uint32_t i = gpu.sequence.launches().launches[k];
          duration_s_[i] = costs_.time_s(i, ClockId{run.clock});
        }
      }
    }
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      if (costs_.is_clocked(i) && costs_.leads(i)) continue;
      sum_j.add(cheapest_beside(i));
    }
    const double idle_w = costs_.least_idle_w();
    const double at_s = prices_.price_w >= idle_w ? deadline_.time_s : deadline_.least_time_s;
    sum_j.add(prices_.lag_cost_j + (idle_w - prices_.price_w) * at_s);
    return sum_j.value();
  }

  // Launches on other streams may run at any clock here: at the cheapest.
  double cheapest_beside(std::uint32_t i) {
    if (!costs_.is_clocked(i)) {
      duration_s_[i] = costs_.time_s(i, ClockId{0});
      return prices_.flow_w[i] * duration_s_[i];
    }
    double least_j = unbounded;
    for (const ClockId clock : costs_.useful_clocks(i)) {
      const double time_s = costs_.time_s(i, clock);
      const double priced_j = costs_.cost_j(i, clock) + prices_.flow_w[i] * time_s;
      if (priced_j >= least_j) continue;
      least_j = priced_j;
      duration_s_[i] = time_s;
    }
    return least_j;
  }

  double replay() {
    const double span_s = earliest_starts(graph_, duration_s_, start_s_);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) end_s_[i] = start_s_[i] + duration_s_[i];
    return span_s;
  }

  static constexpr double tiny_s = 1e-12;     // lengths of runs are positive
  static constexpr double tiny_share = 1e-9;  // sums of times differ by rounding

  const LaunchCosts& costs_;
  const ExecutionGraph& graph_;
  LaunchPrices prices_;
  UnitDeadline deadline_;
  std::vector<BoundedGpu> gpus_;
  std::vector<double> duration_s_, start_s_, end_s_;
};

}  // namespace

double sequence_bound_j(const LaunchCosts& costs, const ClockGrid& grid,
                        const SwitchModel& switching, LaunchPrices prices,
                        const UnitDeadline& deadline, const RunContext& context) {
  return SequenceBound(costs, grid, switching, std::move(prices), deadline).run(context);
}

}  // namespace rubato
