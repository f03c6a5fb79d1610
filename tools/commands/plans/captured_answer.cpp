#include "tools/commands/plans/captured_answer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/answers.hpp"
#include "explorer/results/capture_rows.hpp"
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
  return fmt::format("in at most {:.4g} % more time{}", percent * plan.result.question.slack_frac,
                     odds_words(plan.odds_in_time));
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
    if (plan.want != want || !plan.holds || !has_one_clock(answers.plans[i]) ||
        !has_odds(plan.odds_in_time, plan.odds_frac))
      continue;
    if (best == nullptr ||
        answers.plans[i].change_as_played().energy_frac < best->change_as_played().energy_frac)
      best = &answers.plans[i];
  }
  return best;
}

std::string one_clock_text(const GraphExploration& found, const GraphPlanOutcome& plan) {
  if (plan.change.energy_frac > -shown_frac) {
    return fmt::format("No single clock saves energy in at most {:.4g} % more time{}.\n",
                       percent * plan.result.question.slack_frac,
                       asked_odds_words(found.odds_frac));
  }
  return fmt::format(
      "One clock for all, {}: {}{}\n  {}{}\n  {}", within_text(plan),
      clock_words(plan_clocks_text(found, plan.result)), comm_sms_text(plan), change_text(plan),
      doubts_text(std::array{&found.baseline_marks, &plan.marks}),
      one_clock_line(found.model->spec(),
                     found.planner->grid()[plan.result.plan.clock_of_activity.front()]));
}

// The clock of each GPU, where each has one and they differ; else empty.
std::vector<TargetClock> clock_of_each_gpu(const GraphExploration& found,
                                           const GraphPlanOutcome& plan) {
  std::map<GpuId, std::set<ClockId>> clocks;
  for (const PlanClock& row : plan_clocks(*found.model, plan.result))
    clocks[row.gpu].insert(row.clock);
  const std::vector<GraphGpu>& gpus = found.run->graph.gpus();
  const bool by_rank =
      std::ranges::adjacent_find(gpus, {}, &GraphGpu::rank) == gpus.end() && gpus.size() > 1;
  const auto all = static_cast<std::int64_t>(gpus.size());
  std::vector<TargetClock> targets;
  for (const auto& [id, of_gpu] : clocks) {
    const GraphGpu& gpu = gpus[index(id)];
    if (of_gpu.size() > 1) return {};
    const auto number = static_cast<std::int64_t>(by_rank ? gpu.rank : index(id));
    std::vector<std::int64_t> indices = gpus_of_target(number, 1, all);
    targets.push_back({.kind = indices.empty() ? "rank" : "GPU",
                       .number = number,
                       .gpus = std::move(indices),
                       .clock = found.planner->grid()[*of_gpu.begin()]});
  }
  return targets;
}

// What plays a plan of several clocks.
std::string several_clocks_text(const GraphExploration& found, const GraphPlanOutcome& plan,
                                std::string_view db) {
  const std::string_view grain = name_of(plan.result.question.grain);
  if (const auto targets = clock_of_each_gpu(found, plan); !targets.empty()) {
    const GpuSpec& spec = found.model->spec();
    return fmt::format("{}, {}: {}{}\n  {}{}\n  {}", per_text(grain), within_text(plan),
                       clocks_by_target_text(spec, targets), comm_sms_text(plan), change_text(plan),
                       doubts_text(std::array{&found.baseline_marks, &plan.marks}),
                       clocks_by_target_lines(spec, targets));
  }
  return fmt::format(
      "{}, {}: {}{}{}\n  {}{}\n{}", per_text(grain), within_text(plan),
      clock_words(plan_clocks_text(found, plan.result)), comm_sms_text(plan),
      plan.counted ? ", changes of clock counted" : ", changes of clock taken as free",
      change_text(plan), doubts_text(std::array{&found.baseline_marks, &plan.marks}),
      play_lines(grain, db));
}

// "energy x time -12.31 %, " before energy and time; empty where it is one of these.
std::string measure_text(const Goal& goal, double change_pct) {
  const std::string_view measure = std::holds_alternative<LeastEdp>(goal)    ? "energy x time"
                                   : std::holds_alternative<LeastEd2p>(goal) ? "energy x time^2"
                                   : std::holds_alternative<LeastCost>(goal) ? "cost"
                                                                             : "";
  return measure.empty() ? "" : fmt::format("{} {} %, ", measure, format_signed(change_pct, 2));
}

std::string goal_words(const Goal& goal) {
  if (std::holds_alternative<LeastEdp>(goal)) return "Least energy x time";
  if (std::holds_alternative<LeastEd2p>(goal)) return "Least energy x time^2";
  const auto* time = std::get_if<LeastTime>(&goal);
  if (time == nullptr) return "Least energy, in any time";
  std::string text = "Least time within";
  if (time->max_energy_j) text += fmt::format(" {} J", format_number(*time->max_energy_j));
  if (time->max_average_power_w)
    text += fmt::format(" {} W on average", format_number(*time->max_average_power_w));
  return text + ", all GPUs";
}

// What more time buys: the answers of other slacks than the headline's.
std::string later_text(const GraphExploration& found, const GraphAnswers& answers,
                       const PlanAnswer& named) {
  std::vector<const GraphPlanOutcome*> later;
  for (const PlanAnswer& answer : answers.answers) {
    const GraphPlanOutcome* plan = answers.plan(answer);
    if (plan != nullptr && !plan->goal && answer.want != named.want) later.push_back(plan);
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

// The answers to slacks.
std::vector<PlanAnswer> answers_of_slacks(const GraphAnswers& answers) {
  std::vector<PlanAnswer> chosen;
  for (const PlanAnswer& answer : answers.answers) {
    const auto plan = std::ranges::find(answers.contenders, answer.want, &Contender::want);
    if (!answers.plans[static_cast<std::size_t>(plan - answers.contenders.begin())].goal)
      chosen.push_back(answer);
  }
  return chosen;
}

std::string least_energy_text(const GraphExploration& found, const GraphAnswers& answers,
                              std::string_view db) {
  const std::vector<PlanAnswer> of_slacks = answers_of_slacks(answers);
  if (of_slacks.empty()) return "";
  const PlanAnswer* named = headline(answers.contenders, of_slacks);
  if (named == nullptr) return "No plan is in time.\n";
  const GraphPlanOutcome *best = answers.plan(*named),
                         *one_clock = best_one_clock(answers, named->want);
  std::string text;
  if (best == nullptr) {
    const auto asked = std::ranges::find(answers.contenders, named->want, &Contender::want);
    text = fmt::format(
        "No plan that is in time{}, with at most {:.4g} % more, saves energy: keep the default "
        "clocks.\n{}",
        asked_odds_words(found.odds_frac), percent * asked->slack_frac,
        bolder_line(answers.boldest(named->want)));
  } else {
    if (one_clock != nullptr) text += one_clock_text(found, *one_clock);
    if (best != one_clock) text += several_clocks_text(found, *best, db);
    text += bolder_line(best->bolder);
  }
  return text + later_text(found, answers, *named);
}

// What would narrow the intervals most, where kernels are only like measured ones: the same run at
// a second clock. At 80 % of the clock for slacks up to 2 %, 75 % up to 10 %, 67 % for more, a
// second capture of sweeps' kernels gained most.
std::string next_text(const GraphExploration& found) {
  constexpr double worth_saying = 0.5;  // of the time of kernels
  if (found.coverage.anchored_s < worth_saying * found.coverage.total_s()) return "";
  double slack_frac = 0.0;
  for (const GraphPlanOutcome& plan : found.plans) {
    if (!plan.goal) slack_frac = std::max(slack_frac, plan.result.question.slack_frac);
  }
  const double lower = slack_frac <= 0.02 ? 0.8 : slack_frac <= 0.1 ? 0.75 : 0.67;
  const GpuSpec& spec = found.model->spec();
  const double usual_mhz = effective_core_mhz(spec, found.model->captured_clock());
  const double step_mhz = spec.core.step_mhz;
  const double core_mhz = std::round(lower * usual_mhz / step_mhz) * step_mhz;
  return fmt::format(
      "Next: capture the same run at core {:.0f} MHz too, and fit both (rubato calibrate "
      "--captures FILE@{:.0f} SLOW@{:.0f}): one capture does not say how much of each kernel's "
      "time follows "
      "the "
      "core clock.\n",
      core_mhz, usual_mhz, core_mhz);
}

// What is least, and what that comes to at the default clocks where that is money.
std::string goal_text(const GraphExploration& found, const Goal& goal) {
  if (const auto* cost = std::get_if<LeastCost>(&goal)) {
    const GraphRun& base = found.planner->baseline();
    const double gpus = static_cast<double>(found.run->graph.gpus().size());
    return fmt::format(
        "Least cost at {}: a second more pays where it saves more J for each GPU\n"
        "1000 times what was captured cost {:.4g} at the default clocks, all GPUs\n",
        prices_text(cost->prices),
        1000.0 * cost->prices.of(base.span_s, base.total_energy_j, gpus));
  }
  return fmt::format("{}\n", goal_words(goal));
}

// The answer to each goal other than energy within a slack, as played.
std::string goals_text(const GraphExploration& found, const GraphAnswers& answers) {
  std::string text;
  for (const PlanAnswer& answer : answers.answers) {
    const auto first = static_cast<std::size_t>(
        std::ranges::find(answers.contenders, answer.want, &Contender::want) -
        answers.contenders.begin());
    if (!answers.plans[first].goal) continue;
    const Goal& goal = *answers.plans[first].goal;
    text += goal_text(found, goal);
    const GraphPlanOutcome* best = answers.plan(answer);
    if (best == nullptr) {
      text += answer.keeps_default ? "No plan is better than the default clocks: keep them.\n"
                                   : "No plan keeps within the budget.\n";
      continue;
    }
    const PlanChange& change = best->change_as_played();
    const double objective_frac = answers.contenders[*answer.plan].objective_frac - 1.0;
    text += fmt::format(
        "{}, {}: {}energy {} %, time {} %{}\n", per_text(name_of(best->result.question.grain)),
        clock_words(plan_clocks_text(found, best->result)),
        measure_text(goal, percent * objective_frac), shown(change.energy_frac),
        shown(change.time_frac), best->counted ? ", as played" : ", changes of clock free");
    if (has_one_clock(*best))
      text += one_clock_line(found.model->spec(),
                             found.planner->grid()[best->result.plan.clock_of_activity.front()]);
  }
  return text;
}

}  // namespace

std::string captured_answer(const GraphExploration& found, std::string_view db) {
  const GraphAnswers answers = answers_of(found);
  return least_energy_text(found, answers, db) + next_text(found) + goals_text(found, answers);
}

}  // namespace rubato
