#include "tools/options/questions.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "tools/command_line.hpp"
#include "tools/options/switching.hpp"

namespace rubato {

namespace {

constexpr double most_pct = 1e6;

[[noreturn]] void unknown(std::string_view option, const std::string& value,
                          std::vector<std::string> known) {
  throw UsageError(
      fmt::format("{} '{}' is not known{}", option, value, did_you_mean(value, known)));
}

Granularity granularity_of(const std::string& name) {
  if (const auto value = granularity_named(name)) return *value;
  unknown("--granularity", name,
          {"iteration", "gpu", "stage", "pass", "microbatch", "kernel", "launch", "segment"});
}

Aggregation aggregation_of(const std::string& name) {
  if (const auto value = aggregation_named(name)) return *value;
  unknown("--aggregation", name, {"local", "global"});
}

void check_goal(const std::string& name) {
  const std::vector<std::string> known = goal_names();
  if (std::ranges::find(known, name) == known.end()) unknown("--goal", name, known);
}

bool has_slack(const QuestionOptions& o) {
  return std::ranges::any_of(o.slacks_pct, [](double slack_pct) { return slack_pct != 0.0; });
}

Goal goal_of(const std::string& name, const QuestionOptions& o) {
  if (name == strict_waste) return LeastWaste{0.0, o.tolerance_pct / percent};
  if (name == "edp") return LeastEdp{};
  if (name == "ed2p") return LeastEd2p{};
  if (name == "energy") return LeastEnergy{};
  if (name == "cost") return LeastCost{prices_of(o.prices)};
  if (o.energy_budget_j.has_value() == o.power_budget_w.has_value())
    throw UsageError("goal 'time' needs either --energy-budget or --power-budget");
  const double budget = o.energy_budget_j.value_or(o.power_budget_w.value_or(0.0));
  if (!(budget > 0.0))
    throw UsageError(fmt::format("--{}-budget is {}; expected a number > 0",
                                 o.energy_budget_j ? "energy" : "power", budget));
  return LeastTime{o.energy_budget_j, o.power_budget_w};
}

// Whether granularity `segment` can answer the question.
bool is_of_segments(const Question& question) {
  return std::holds_alternative<LeastWaste>(question.goal) &&
         question.aggregation == Aggregation::global;
}

std::vector<Goal> goals_of(const std::string& name, const QuestionOptions& o) {
  if (name != relaxed_waste) return {goal_of(name, o)};
  std::vector<Goal> goals;
  for (const double slack_pct : o.slacks_pct)
    goals.emplace_back(LeastWaste{slack_pct / percent, o.tolerance_pct / percent});
  return goals;
}

}  // namespace

std::vector<std::string> goal_names() {
  return {"strict_waste", "relaxed_waste", "edp", "ed2p", "energy", "time", "cost"};
}

void add_question_options(CommandLine& app, QuestionOptions& o) {
  app.add_option("--granularity", o.granularities,
                 "What gets one clock: iteration, pass, kernel, or segment: runs of launches, "
                 "found given what a change of clock costs (goals strict_waste and relaxed_waste); "
                 "of a captured run also gpu and launch (several with commas)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--aggregation", o.aggregations,
                 "One budget for all units (global), or each on its own (local)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option(
         "--goal", o.goals,
         "What is least: energy in no more time (strict_waste) or in the time that --slack "
         "allows (relaxed_waste), energy x time (edp), energy x time squared (ed2p), energy "
         "alone (energy), time in a budget of energy or power (time), money (cost)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option(
         "--slack", o.slacks_pct,
         "Goal relaxed_waste: time allowed beyond the default clocks, %; negative: to be saved "
         "(several with commas; of a captured run 0,1,2,5 if none is given)")
      ->delimiter(',')
      ->one_word()
      ->capture_default_str();
  app.add_option(
         "--tolerance", o.tolerance_pct,
         "Waste goals: what still counts as no slower, %; measured times repeat to about 0.1")
      ->capture_default_str();
  add_odds_option(app, o.odds_pct);
  app.add_option("--energy-budget", o.energy_budget_j, "Goal time: energy of an iteration, J");
  app.add_option("--power-budget", o.power_budget_w,
                 "Goal time: average power over an iteration, W");
  add_price_options(app, o.prices);
}

std::vector<Aggregation> aggregations_of(const QuestionOptions& o) {
  std::vector<Aggregation> values;
  std::ranges::transform(o.aggregations, std::back_inserter(values), aggregation_of);
  return values;
}

std::vector<Question> questions_of(const QuestionOptions& o) {
  std::vector<Question> questions;
  for (const std::string& name : o.goals) {
    for (const Goal& goal : goals_of(name, o)) {
      for (const std::string& granularity : o.granularities) {
        for (const std::string& aggregation : o.aggregations) {
          Question question{granularity_of(granularity), aggregation_of(aggregation), goal};
          if (question.granularity == Granularity::automatic) {
            if (!o.granularities_given && !is_of_segments(question)) continue;
            question.counts_changes = !o.switching_given;
          }
          questions.push_back(question);
        }
      }
    }
  }
  return questions;
}

std::vector<Goal> goals_besides_waste(const QuestionOptions& o) {
  std::vector<Goal> goals;
  for (const std::string& name : o.goals) {
    if (!names_waste(name)) goals.push_back(goal_of(name, o));
  }
  return goals;
}

void check_slack(double slack_pct) {
  if (!(slack_pct > -percent && slack_pct <= most_pct))
    throw UsageError(fmt::format("--slack is {}; expected a number above -100, at most {}",
                                 slack_pct, most_pct));
}

void add_odds_option(CommandLine& app, double& odds_pct) {
  app.add_option(
         "--odds", odds_pct,
         "Odds of being in time that a plan for a slack must have, %; 50: as likely late as "
         "not, 0: whatever its odds")
      ->capture_default_str();
}

void check_odds(double odds_pct) {
  if (!(odds_pct >= 0.0 && odds_pct < percent))
    throw UsageError(fmt::format("--odds is {}; expected a number from 0 to below 100", odds_pct));
}

void check_numbers(const QuestionOptions& o) {
  check_numbers(o.prices);
  check_odds(o.odds_pct);
  for (const double slack_pct : o.slacks_pct) check_slack(slack_pct);
  if (!(o.tolerance_pct >= 0.0 && o.tolerance_pct <= most_pct))
    throw UsageError(fmt::format("--tolerance is {}; expected a number from 0 to {}",
                                 o.tolerance_pct, most_pct));
}

std::vector<std::string> goal_words(std::vector<std::string> goals) {
  for (std::string& goal : goals) {
    if (goal.starts_with("least_")) goal.erase(0, std::string_view("least_").size());
  }
  return goals;
}

void settle(QuestionOptions& o, const CommandLine& line) {
  o.granularities_given = line.has("--granularity");
  o.switching_given = gives_switching(line);
  o.goals = goal_words(o.goals);
  if (!line.has("--goal") && has_slack(o)) o.goals = {std::string(relaxed_waste)};
}

void refuse_without_goal(const QuestionOptions& o, const CommandLine& line) {
  struct OfGoal {
    const char* option;
    std::string_view goal, other = {};
  };
  const auto asked = [&](std::string_view goal) {
    return std::ranges::find(o.goals, goal) != o.goals.end();
  };
  for (const std::string& goal : o.goals) check_goal(goal);
  // A slack of 0 is what strict_waste has.
  const std::string_view without_slack = has_slack(o) ? std::string_view() : strict_waste;
  for (const OfGoal& one :
       {OfGoal{"--slack", relaxed_waste, without_slack},
        OfGoal{"--tolerance", strict_waste, relaxed_waste}, OfGoal{"--energy-budget", "time"},
        OfGoal{"--power-budget", "time"}, OfGoal{"--price-per-kwh", "cost"},
        OfGoal{"--pue", "cost"}, OfGoal{"--price-per-gpu-hour", "cost"}}) {
    if (!line.has(one.option) || asked(one.goal) || asked(one.other)) continue;
    throw UsageError(
        fmt::format("{} does nothing with --goal {}", one.option, fmt::join(o.goals, ",")),
        {.in = {}, .hint = fmt::format("it belongs to --goal {}", one.goal)});
  }
  if (asked(relaxed_waste) && !has_slack(o))
    throw UsageError("--goal relaxed_waste needs --slack", {.in = {}, .hint = "e.g. --slack 2"});
}

}  // namespace rubato
