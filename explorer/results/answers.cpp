#include "explorer/results/answers.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "common/numbers.hpp"

namespace rubato {

namespace {

template <class Values>
std::int64_t distinct(const Values& values) {
  return std::ssize(std::set(values.begin(), values.end()));
}

// @param low, high      interval of the change of energy as made
// @param made, applied  that change without and with changes of clock, which move the interval
Saving saving_as_applied(double low, double high, double made, double applied) {
  return saving_of(low + applied - made, applied, high + applied - made);
}

}  // namespace

Contender contender_of(const Exploration& found, const PlanResult& plan) {
  const Totals& base = found.baseline.total;
  const Totals& applied = plan.counted ? *plan.counted : plan.sim.total;
  Contender one =
      contender(plan.question.goal,
                plan.found() ? std::optional(Cost{applied.time_s, applied.energy_j}) : std::nullopt,
                {base.time_s, base.energy_j});
  one.verdict = plan.verdict;
  one.odds_in_time = plan.odds_in_time;
  one.odds_frac = found.odds_frac;
  if (plan.interval && allowed_frac(plan.question))
    one.saving = saving_as_applied(plan.interval->energy.low_pct, plan.interval->energy.high_pct,
                                   change_pct(plan.sim.total.energy_j, base.energy_j),
                                   change_pct(applied.energy_j, base.energy_j));
  one.fitted = !has_mark(plan.marks, MarkKind::clocks_not_fitted);
  one.clock_changes = static_cast<std::int64_t>(applied.clock_switches);
  one.clocks = distinct(plan.plan.clock_of_site);
  one.granularity = plan.question.granularity;
  one.aggregation = name_of(plan.question.aggregation);
  return one;
}

Contender contender_of(const GraphExploration& found, const GraphPlanOutcome& plan) {
  const GraphPlanResult& result = plan.result;
  const GraphRun& base = found.planner->baseline();
  const PlanChange& change = plan.change_as_played();
  std::optional<Cost> applied;
  if (result.found()) {
    applied = {(1.0 + change.time_frac) * base.span_s,
               (1.0 + change.energy_frac) * base.total_energy_j};
  }
  Contender one = contender(plan.asked_goal(), applied, {base.span_s, base.total_energy_j},
                            static_cast<double>(found.run->graph.gpus().size()));
  if (plan.counted && !plan.goal) one.holds = plan.counted->in_time;
  one.verdict = plan.verdict;
  one.odds_in_time = plan.odds_in_time;
  one.odds_frac = found.odds_frac;
  if (!plan.goal && result.found())
    one.saving = saving_as_applied(plan.interval.low.energy_frac, plan.interval.high.energy_frac,
                                   plan.change.energy_frac, change.energy_frac);
  one.fitted = !has_mark(plan.marks, MarkKind::clocks_not_fitted);
  if (plan.counted) {
    one.clock_changes = static_cast<std::int64_t>(plan.counted->clock_changes);
  } else {
    for (const GpuTotals& gpu : result.run.gpus)
      one.clock_changes += static_cast<std::int64_t>(gpu.clock_changes);
  }
  if (result.found()) {
    std::set<ClockId> clocks;
    for (std::size_t i = 0; i < found.run->graph.size(); ++i) {
      if (found.model->work()[i] > 0.0) clocks.insert(result.plan.clock_of_activity[i]);
    }
    one.clocks = std::ssize(clocks);
  }
  one.granularity = result.question.grain;
  one.aggregation = name_of(result.question.aggregation);
  one.comm_sms = plan.comm_sms;
  return one;
}

Goal asked_goal(const PipelinePlanner& planner, const PipelineResult& plan) {
  constexpr double digits = 1e12;  // the deadline of no slack has none
  const double slack_frac = plan.deadline_s / planner.baseline().time_s - 1.0;
  return plan.goal.value_or(LeastWaste{.slack_frac = std::round(digits * slack_frac) / digits});
}

Contender contender_of(const PipelinePlanner& planner, const PipelineResult& plan) {
  const PipelineRun& base = planner.baseline();
  const double stages = planner.work().schedule.shape.stages;
  const bool waits = plan.after_end == AfterEnd::wait;
  const Goal goal = asked_goal(planner, plan);
  Cost defaults{base.time_s, base.energy_j};
  if (waits) defaults.energy_j += planner.waiting_power_w() * (plan.deadline_s - base.time_s);
  Contender one = contender(
      goal, plan.found() ? std::optional(Cost{plan.run.time_s, plan.energy_j}) : std::nullopt,
      defaults, stages);
  if (waits) one.want = "straggler " + format_number(percent * one.slack_frac);
  one.verdict = plan.verdict;
  one.odds_in_time = plan.odds_in_time;
  one.odds_frac = plan.odds_frac;
  if (plan.interval && !plan.goal)
    one.saving =
        saving_of(plan.interval->energy.low_pct, change_pct(plan.energy_j, defaults.energy_j),
                  plan.interval->energy.high_pct);
  one.fitted = plan.fitted;
  one.clock_changes = static_cast<std::int64_t>(plan.run.clock_switches);
  std::set<std::tuple<double, double, double>> clocks;
  for (std::size_t i = 0; i < plan.plan.option_of_pass.size(); ++i) {
    const ClockOption& option =
        planner.work().type_of(id_at<PassId>(i)).options[index(plan.plan.option_of_pass[i])];
    clocks.emplace(option.core_mhz, option.mem_mhz, option.power_limit_w);
  }
  one.clocks = std::ssize(clocks);
  one.granularity = plan.granularity;
  return one;
}

}  // namespace rubato
