// Plans that know contention: each launch is costed beside what it ran beside in the last replay.

#include <algorithm>
#include <cmath>
#include <limits>

#include "explorer/graph/contention/planner_prices.hpp"

namespace rubato {

// Solvers take launches to be slowed down as at the default clocks. Here each unit has the clock
// that costs least beside what its launches ran beside in the replay before. All prices have one
// factor: the least with which the plan ends in time is searched for. Then the first units get the
// clocks of the next lower factor, as many as end in time.
void GraphPlanner::share_gpus(GraphPlanResult& result, const LaunchUnits& units,
                              const RunContext& context) {
  constexpr int factors = 12, splices = 10;
  constexpr double wider = 1.5;
  const FrontierPlan* prices = targets_->beside.at(target_s(result.deadline_s), 0, context);
  if (!prices_->contended.matters() || prices == nullptr || !result.found()) return;
  PaidGraph paid = prices_->contended.paid_by({result.deadline_s, prices_->frontier.least_time_s});
  const double end_s = result.deadline_s * (1.0 + time_tolerance);
  std::vector<ClockId> late, in_time;
  GraphRun before = result.run;
  double low = 0.0, high = std::numeric_limits<double>::infinity(), factor = 1.0;
  for (int i = 0; i < factors && !context.stop_requested(); ++i) {
    ArcFlow flow = arc_flow(model_.graph(), prices->arc_flow_w);
    scale(flow, factor);
    paid.pay(flow);
    std::vector<ClockId> clocks = paid.cheapest_clocks({before.start_s, before.end_s}, units);
    GraphPlan plan = plan_of(units, clocks);
    before = simulator_.run(plan);
    const bool ends_in_time = before.span_s <= end_s;
    keep_if_better(result, std::move(plan), before);
    (ends_in_time ? in_time : late) = std::move(clocks);
    (ends_in_time ? high : low) = factor;
    factor = in_time.empty() ? factor * wider
             : late.empty()  ? factor / wider
                             : std::sqrt(low * high);
  }
  if (late.empty() || in_time.empty()) return;
  std::uint32_t least = 0, most = units.size();  // number of first units with the late clocks
  for (int i = 0; i < splices && most - least > 1 && !context.stop_requested(); ++i) {
    const std::uint32_t middle = least + (most - least) / 2;
    std::vector<ClockId> clocks = in_time;
    std::copy_n(late.begin(), middle, clocks.begin());
    (keep_if_better(result, plan_of(units, clocks)) ? least : most) = middle;
  }
}

}  // namespace rubato
