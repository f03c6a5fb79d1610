#include "tools/commands/plans/captured_answer.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/report/setting_lines.hpp"
#include "tools/commands/plans/captured_tables.hpp"
#include "tools/terminal/exploration_answer.hpp"

namespace rubato {

namespace {

// Half of the last digit of a change that is shown.
constexpr double shown_frac = 5e-5;

bool is_late(const GraphPlanOutcome& plan) { return plan.counted && !plan.counted->in_time; }

bool has_one_clock(const GraphPlanOutcome& plan) {
  return plan.result.question.grain == GraphGrain::iteration;
}

std::string within_text(const GraphPlanOutcome& plan) {
  return fmt::format("in at most {:.4g} % more time", percent * plan.result.question.slack_frac);
}

std::string shown(double frac) { return format_signed(percent * frac, 2); }

// A change as played, with the interval of the plan, moved by what playing it changes.
std::string change_text(const GraphPlanOutcome& plan, double PlanChange::*frac) {
  const double played = plan.change_as_played().*frac, moved = played - plan.change.*frac;
  return change_words(percent * played,
                      Interval{.low_pct = percent * (plan.interval.low.*frac + moved),
                               .median_pct = percent * played,
                               .high_pct = percent * (plan.interval.high.*frac + moved)});
}

std::string change_text(const GraphPlanOutcome& plan) {
  return fmt::format("energy {}, time {}", change_text(plan, &PlanChange::energy_frac),
                     change_text(plan, &PlanChange::time_frac));
}

// The best plans for one slack.
struct BestPlans {
  const GraphPlanOutcome* one_clock = nullptr;
  const GraphPlanOutcome* any = nullptr;  // in time as played, if one is
};

BestPlans best_plans(const GraphExploration& found, double slack_frac) {
  BestPlans best;
  const auto order = [](const GraphPlanOutcome& plan) {
    return std::tuple(is_late(plan), plan.change_as_played().energy_frac);
  };
  for (const GraphPlanOutcome& plan : found.plans) {
    if (plan.prices || !plan.result.found() || plan.result.question.slack_frac != slack_frac)
      continue;
    const GraphPlanOutcome*& one_clock = best.one_clock;
    if (best.any == nullptr || order(plan) < order(*best.any)) best.any = &plan;
    if (has_one_clock(plan) && (one_clock == nullptr || order(plan) < order(*one_clock)))
      one_clock = &plan;
  }
  return best;
}

std::string one_clock_text(const GraphExploration& found, const GraphPlanOutcome& plan) {
  if (plan.change.energy_frac > -shown_frac) {
    return fmt::format("No single clock saves energy {}: keep the default clocks.\n",
                       within_text(plan));
  }
  return fmt::format(
      "One clock for all, {}: {}{}\n  {}{}\n  {}", within_text(plan),
      clock_words(plan_clocks_text(found, plan.result)), comm_sms_text(plan), change_text(plan),
      doubts_text(std::array{&found.baseline_marks, &plan.marks}),
      one_clock_line(found.model->spec(),
                     found.planner->grid()[plan.result.plan.clock_of_activity.front()]));
}

// What plays a plan of several clocks.
std::string several_clocks_text(const GraphExploration& found, const GraphPlanOutcome& plan,
                                std::string_view db) {
  const std::string_view grain = name_of(plan.result.question.grain);
  // No other plan for this slack is in time as played: there is none to set.
  const bool late = is_late(plan);
  return fmt::format(
      "{}, {}: {}{}{}\n  {}{}\n{}", per_text(grain), within_text(plan),
      clock_words(plan_clocks_text(found, plan.result)), comm_sms_text(plan),
      plan.counted ? ", changes of clock counted" : ", changes of clock taken as free",
      change_text(plan),
      late ? ": too late, not to be set; granularity segment counts changes"
           : doubts_text(std::array{&found.baseline_marks, &plan.marks}),
      late ? "" : play_lines(grain, db));
}

// What more time buys.
std::string later_text(const GraphExploration& found, const std::vector<double>& slacks_frac) {
  std::string text;
  for (std::size_t s = 1; s < slacks_frac.size(); ++s) {
    const GraphPlanOutcome* best = best_plans(found, slacks_frac[s]).any;
    if (best == nullptr || is_late(*best) || best->change_as_played().energy_frac > -shown_frac)
      continue;
    text += fmt::format("  {}, {} per {}: energy {}, time {} %\n", within_text(*best),
                        plan_clocks_text(found, best->result), name_of(best->result.question.grain),
                        change_text(*best, &PlanChange::energy_frac),
                        shown(best->change_as_played().time_frac));
  }
  if (text.empty()) return text;
  return fmt::format("With more time, each as played (--slack {:.4g} says what to set):\n{}",
                     percent * slacks_frac[1], text);
}

std::string least_energy_text(const GraphExploration& found, std::string_view db) {
  std::vector<double> slacks_frac;
  bool asked = false;
  for (const GraphPlanOutcome& plan : found.plans) {
    asked |= !plan.prices;
    if (!plan.prices && plan.result.found()) slacks_frac.push_back(plan.result.question.slack_frac);
  }
  std::ranges::sort(slacks_frac);
  slacks_frac.erase(std::unique(slacks_frac.begin(), slacks_frac.end()), slacks_frac.end());
  if (slacks_frac.empty()) return asked ? "No plan is in time.\n" : "";
  const auto [one_clock, any] = best_plans(found, slacks_frac.front());
  std::string text;
  if (any->change_as_played().energy_frac > -shown_frac) {
    text = fmt::format("No plan saves energy {}: keep the default clocks.\n", within_text(*any));
  } else {
    if (one_clock != nullptr) text += one_clock_text(found, *one_clock);
    if (!has_one_clock(*any)) text += several_clocks_text(found, *any, db);
  }
  return text + later_text(found, slacks_frac);
}

// Where plans of least cost were asked for, the cheapest as played, and what prices come to.
std::string least_cost_text(const GraphExploration& found) {
  const std::optional<Prices> prices = asked_prices(found);
  if (!prices) return "";
  const GraphRun& base = found.planner->baseline();
  const double gpus = static_cast<double>(found.run->graph.gpus().size());
  const double default_cost = prices->of(base.span_s, base.total_energy_j, gpus);
  const auto cost_frac = [&](const GraphPlanOutcome& plan) {
    const PlanChange& change = plan.change_as_played();
    const double cost = prices->of((1.0 + change.time_frac) * base.span_s,
                                   (1.0 + change.energy_frac) * base.total_energy_j, gpus);
    return cost / default_cost - 1.0;
  };
  const GraphPlanOutcome* best = nullptr;
  for (const GraphPlanOutcome& plan : found.plans) {
    if (!plan.prices || !plan.result.found()) continue;
    if (best == nullptr || cost_frac(plan) < cost_frac(*best)) best = &plan;
  }
  std::string text = fmt::format(
      "Least cost at {}: a second more pays where it saves more J for each GPU\n"
      "1000 times what was captured cost {:.4g} at the default clocks, all GPUs\n",
      prices_text(*prices), 1000.0 * default_cost);
  if (best == nullptr) return text;
  if (cost_frac(*best) >= 0.0)
    return text + "No plan costs less than the default clocks: keep them.\n";
  text += fmt::format("{}, {}: cost {} %, energy {} %, time {} %{}\n",
                      per_text(name_of(best->result.question.grain)),
                      clock_words(plan_clocks_text(found, best->result)),
                      format_signed(percent * cost_frac(*best), 2),
                      format_signed(percent * best->change_as_played().energy_frac, 2),
                      format_signed(percent * best->change_as_played().time_frac, 2),
                      best->counted ? ", as played" : ", changes of clock free");
  if (best->result.question.grain != GraphGrain::iteration) return text;
  return text + one_clock_line(found.model->spec(),
                               found.planner->grid()[best->result.plan.clock_of_activity.front()]);
}

}  // namespace

std::string captured_answer(const GraphExploration& found, std::string_view db) {
  return least_energy_text(found, db) + least_cost_text(found);
}

}  // namespace rubato
