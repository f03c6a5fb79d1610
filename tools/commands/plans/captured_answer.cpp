#include "tools/commands/plans/captured_answer.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/answers.hpp"
#include "tools/commands/plans/captured_tables.hpp"
#include "tools/terminal/exploration_answer.hpp"

namespace rubato {

namespace {

// Half of the last digit of a change that is shown.
constexpr double shown_frac = 5e-5;

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

using GraphAnswers = Answers<GraphPlanOutcome>;

// Of the plans that want what an answer wants: the best one with one clock. Null: there is none.
const GraphPlanOutcome* best_one_clock(const GraphAnswers& answers, std::string_view want) {
  const GraphPlanOutcome* best = nullptr;
  for (std::size_t i = 0; i < answers.plans.size(); ++i) {
    const Contender& plan = answers.contenders[i];
    if (plan.want != want || !plan.holds || !has_one_clock(answers.plans[i])) continue;
    if (best == nullptr ||
        answers.plans[i].change_as_played().energy_frac < best->change_as_played().energy_frac)
      best = &answers.plans[i];
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
  return fmt::format(
      "{}, {}: {}{}{}\n  {}{}\n{}", per_text(grain), within_text(plan),
      clock_words(plan_clocks_text(found, plan.result)), comm_sms_text(plan),
      plan.counted ? ", changes of clock counted" : ", changes of clock taken as free",
      change_text(plan), doubts_text(std::array{&found.baseline_marks, &plan.marks}),
      play_lines(grain, db));
}

// What more time buys: the answers of other slacks than the headline's.
std::string later_text(const GraphExploration& found, const GraphAnswers& answers,
                       const PlanAnswer& named) {
  std::vector<const GraphPlanOutcome*> later;
  for (const PlanAnswer& answer : answers.answers) {
    const GraphPlanOutcome* plan = answers.plan(answer);
    if (plan != nullptr && !plan->prices && answer.want != named.want) later.push_back(plan);
  }
  std::ranges::sort(later, {}, [](const auto* plan) { return plan->result.question.slack_frac; });
  if (later.empty()) return "";
  std::string text =
      fmt::format("With more time, each as played (--slack {:.4g} says what to set):\n",
                  percent * later.front()->result.question.slack_frac);
  for (const GraphPlanOutcome* plan : later) {
    text += fmt::format("  {}, {} per {}: energy {}, time {} %\n", within_text(*plan),
                        plan_clocks_text(found, plan->result), name_of(plan->result.question.grain),
                        change_text(*plan, &PlanChange::energy_frac),
                        shown(plan->change_as_played().time_frac));
  }
  return text;
}

// The answers of one kind of goal: of slacks, or of least cost.
std::vector<PlanAnswer> answers_for(const GraphAnswers& answers, bool of_cost) {
  std::vector<PlanAnswer> chosen;
  for (const PlanAnswer& answer : answers.answers) {
    if (answer.want.starts_with("least_cost") == of_cost) chosen.push_back(answer);
  }
  return chosen;
}

std::string least_energy_text(const GraphExploration& found, const GraphAnswers& answers,
                              std::string_view db) {
  const std::vector<PlanAnswer> of_slacks = answers_for(answers, false);
  if (of_slacks.empty()) return "";
  const PlanAnswer* named = headline(answers.contenders, of_slacks);
  if (named == nullptr) return "No plan is in time.\n";
  const GraphPlanOutcome *best = answers.plan(*named),
                         *one_clock = best_one_clock(answers, named->want);
  std::string text;
  if (best == nullptr) {
    const auto asked = std::ranges::find(answers.contenders, named->want, &Contender::want);
    text = fmt::format(
        "No plan that is in time, with at most {:.4g} % more, saves energy: keep the default "
        "clocks.\n",
        percent * asked->slack_frac);
  } else {
    if (one_clock != nullptr) text += one_clock_text(found, *one_clock);
    if (best != one_clock) text += several_clocks_text(found, *best, db);
  }
  return text + later_text(found, answers, *named);
}

// Where plans of least cost were asked for, the cheapest as played, and what prices come to.
std::string least_cost_text(const GraphExploration& found, const GraphAnswers& answers) {
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
  const std::vector<PlanAnswer> of_cost = answers_for(answers, true);
  const GraphPlanOutcome* best = of_cost.empty() ? nullptr : answers.plan(of_cost.front());
  std::string text = fmt::format(
      "Least cost at {}: a second more pays where it saves more J for each GPU\n"
      "1000 times what was captured cost {:.4g} at the default clocks, all GPUs\n",
      prices_text(*prices), 1000.0 * default_cost);
  if (best == nullptr) return text + "No plan costs less than the default clocks: keep them.\n";
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
  const GraphAnswers answers = answers_of(found);
  return least_energy_text(found, answers, db) + least_cost_text(found, answers);
}

}  // namespace rubato
