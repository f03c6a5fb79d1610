#include <algorithm>
#include <map>
#include <vector>

#include "common/numbers.hpp"
#include "explorer/graph/rehearsal.hpp"
#include "explorer/plan/answer.hpp"

namespace rubato {

namespace {

// Plans of one clock for all, as played, each made once.
class SingleClocks {
 public:
  SingleClocks(const GraphModel& model, GraphPlanner& planner, const GraphModel& as_captured)
      : planner_(planner),
        rehearsal_(model, planner),
        intervals_(model, as_captured, planner.grid(), planner.baseline()),
        simulator_(model, planner.grid()) {
    for (const UniformRun& run : planner.uniform()) cheapest_.push_back(&run);
    std::ranges::stable_sort(cheapest_, {}, [](const UniformRun* run) { return run->energy_j; });
  }

  // The one of least energy that has the odds within a slack. Null where none takes less than that.
  const GraphPlanOutcome* best(double slack_frac, double odds_frac, double below_frac) {
    constexpr double rounding = 1e-9;
    const GraphRun& base = planner_.baseline();
    for (const UniformRun* run : cheapest_) {
      if (run->energy_j / base.total_energy_j - 1.0 >= below_frac - rounding) return nullptr;
      if (run->span_s > (1.0 + slack_frac) * base.span_s) continue;
      GraphPlanOutcome& plan = made(run->clock);
      const double applied_frac = plan.change_as_played().time_frac;
      const double added_frac = applied_frac - plan.change.time_frac;
      plan.odds_in_time = plan.interval.times.odds_within(percent * (slack_frac - added_frac));
      if (plan.verdict.applicable && applied_frac <= slack_frac + rounding &&
          has_odds(plan.odds_in_time, odds_frac))
        return &plan;
    }
    return nullptr;
  }

 private:
  GraphPlanOutcome& made(ClockId clock) {
    const auto [at, is_new] = made_.try_emplace(clock);
    if (!is_new) return at->second;
    GraphPlanResult result;
    result.question.grain = Granularity::iteration;
    result.status = SolveStatus::feasible;
    result.plan = uniform_plan(planner_.model().graph(), clock);
    result.run = simulator_.run(result.plan);
    at->second = rehearsal_.played(std::move(result));
    GraphPlanOutcome& plan = at->second;
    plan.change = change_against(plan.result.run, planner_.baseline());
    plan.interval = intervals_.of(plan.result.plan, plan.result.run);
    return plan;
  }

  GraphPlanner& planner_;
  Rehearsal rehearsal_;
  GraphPlanIntervals intervals_;
  GraphSimulator simulator_;
  std::vector<const UniformRun*> cheapest_;  // first
  std::map<ClockId, GraphPlanOutcome> made_;
};

}  // namespace

void take_single_clocks(const GraphModel& model, GraphPlanner& planner,
                        const GraphModel& as_captured, double odds_frac,
                        std::vector<GraphPlanOutcome>& plans) {
  const auto needs_margin = [](const GraphPlanOutcome& plan) {
    return plan.bolder && plan.result.found() && !plan.goal;
  };
  if (odds_frac == 0.0 || std::ranges::none_of(plans, needs_margin)) return;
  SingleClocks clocks(model, planner, as_captured);
  for (GraphPlanOutcome& plan : plans) {
    if (!needs_margin(plan)) continue;
    const GraphQuestion question = plan.result.question;
    const GraphPlanOutcome* best =
        clocks.best(question.slack_frac, odds_frac, plan.change_as_played().energy_frac);
    if (best == nullptr) continue;
    const double bound_j = plan.result.lower_bound_j;
    const std::optional<BolderPlan> bolder = plan.bolder;
    plan = *best;
    plan.bolder = bolder;
    GraphPlanResult& result = plan.result;
    result.question = question;
    result.deadline_s = (1.0 + question.slack_frac) * planner.baseline().span_s;
    if (plan.counted) plan.counted->in_time = true;
    result.lower_bound_j = bound_j;
    result.gap_frac = std::max(1.0 - bound_j / result.run.total_energy_j, 0.0);
  }
}

}  // namespace rubato
