#include "tools/options/questions.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "tools/command_line.hpp"
#include "tools/options/prices.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/options/values.hpp"

namespace rubato {

namespace {

constexpr double most_pct = 1e6;

// "1500J" or "280W".
LeastTime budget_of(const std::string& text) {
  constexpr double least = 1e-9, most = 1e15;
  if (text.empty())
    throw UsageError("goal 'time' needs --budget",
                     {.in = {}, .hint = "energy of a step, 1500J, or average power, 280W"});
  const bool power = text.ends_with("W");
  const double number = number_of("--budget", "", text, least, most, power ? "W" : "J");
  return power ? LeastTime{{}, number} : LeastTime{number, {}};
}

// Least energy by a slack, "2" or "2%"; "any": in any time.
Goal energy_goal(const std::string& slack) {
  if (slack == "any") return LeastEnergy{};
  const std::string word = slack.substr(0, slack.find_last_not_of(" %") + 1);
  const auto pct = parse_number(word);
  if (!pct)
    throw UsageError(
        fmt::format("--slack is '{}'; expected a number of percent, or any", printable(slack)));
  check_slack(*pct);
  return LeastWaste{.slack_frac = *pct / percent};
}

// The goals that are asked for, by name; what an option sets needs no name.
std::vector<std::string> names_of(const QuestionOptions& o) {
  std::vector<std::string> names = o.goals;
  if (names.empty() && !o.slacks.empty()) names.emplace_back("energy");
  if (o.goals.empty() && !o.budget.empty()) names.emplace_back("time");
  if (o.goals.empty() && !o.prices.empty()) names.emplace_back("cost");
  if (names.empty()) names.emplace_back("energy");
  struct OfGoal {
    const char* option;
    bool given;
    std::string_view goal;
  };
  for (const OfGoal& one : {OfGoal{"--slack", !o.slacks.empty(), "energy"},
                            OfGoal{"--budget", !o.budget.empty(), "time"},
                            OfGoal{"--prices", !o.prices.empty(), "cost"}}) {
    if (!one.given || std::ranges::find(names, one.goal) != names.end()) continue;
    throw UsageError(
        fmt::format("{} does nothing with --goal {}", one.option, fmt::join(names, ",")),
        {.in = {}, .hint = fmt::format("it belongs to --goal {}", one.goal)});
  }
  return names;
}

}  // namespace

std::vector<std::string> goal_names() { return {"energy", "edp", "ed2p", "time", "cost"}; }

void add_question_options(CommandLine& app, QuestionOptions& o) {
  app.add_option("--slack PCT,...", o.slacks,
                 "More time allowed, %; negative: time to save; any: no limit [0; of a captured "
                 "run 0,1,2,5]")
      ->delimiter(',')
      ->one_word();
  app.add_option("--odds", o.odds_pct, "Required probability of staying within --slack, %; 0: any")
      ->capture_default_str();
  app.add_option("--per WHAT,...", o.granularities,
                 "One clock for each: run, gpu, stage, pass, kernel, launch or segment (stretches "
                 "of launches, found by the search) [all that the run has]")
      ->delimiter(',')
      ->one_word();
  app.add_option("--goal GOAL,...", o.goals,
                 "What to minimise: energy, time (within --budget), edp or ed2p (energy x time, "
                 "time squared), cost (with --prices) [energy]")
      ->delimiter(',')
      ->one_word();
  app.add_option(
      "--budget X", o.budget,
      "Goal time: energy per step (1500J) or mean power (280W) of all GPUs; goal energy: "
      "time per step (20ms) in place of --slack");
  add_prices_option(app, o.prices);
  app.add_option("--aggregation WORD,...", o.aggregations,
                 "Apply --slack to the whole step (global) or to each unit by itself (local)")
      ->delimiter(',')
      ->one_word()
      ->capture_default_str();
}

std::vector<Goal> goals_of(const QuestionOptions& o) {
  check_odds(o.odds_pct);
  const std::vector<std::string> known = goal_names();
  for (const std::string& name : o.goals) {
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(
          fmt::format("--goal '{}' is not known{}", printable(name), did_you_mean(name, known)));
  }
  std::vector<Goal> goals;
  for (const std::string& name : names_of(o)) {
    if (name == "energy") {
      const std::vector<std::string> none{"0"};
      for (const std::string& slack : o.slacks.empty() ? none : o.slacks)
        goals.push_back(energy_goal(slack));
    } else if (name == "edp") {
      goals.emplace_back(LeastEdp{});
    } else if (name == "ed2p") {
      goals.emplace_back(LeastEd2p{});
    } else if (name == "time") {
      goals.emplace_back(budget_of(o.budget));
    } else {
      const std::string prices = o.prices.empty() ? user_default("prices").value_or("") : o.prices;
      if (prices.empty())
        throw UsageError("goal 'cost' needs --prices",
                         {.in = {}, .hint = "e.g. --prices kwh=0.12,gpu-hour=2"});
      goals.emplace_back(LeastCost{prices_of(prices)});
    }
  }
  return goals;
}

std::vector<Granularity> granularities_of(const QuestionOptions& o, std::size_t gpus) {
  std::vector<Granularity> values;
  for (const std::string& name : o.granularities) values.push_back(granularity_of("--per", name));
  if (values.empty()) values.assign(granularities.begin(), granularities.end());
  if (gpus == 1 && !o.granularities_given) std::erase(values, Granularity::gpu);
  return values;
}

std::vector<Question> questions_of(const QuestionOptions& o, RunKind kind,
                                   const std::vector<Granularity>& granularities) {
  std::vector<Question> questions;
  for (const Goal& goal : goals_of(o)) {
    for (const Granularity granularity : granularities) {
      for (const std::string& aggregation : o.aggregations) {
        const Question question{
            .granularity = granularity,
            .aggregation = aggregation_of("--aggregation", aggregation),
            .goal = goal,
            .counts_changes = granularity == Granularity::segment && !o.switching_given};
        if (o.granularities_given || is_answerable(kind, question)) questions.push_back(question);
      }
    }
  }
  return questions;
}

std::optional<double> time_budget_s(const QuestionOptions& options) {
  const std::string& budget = options.budget;
  constexpr double most_s = 1e6;
  if (!budget.ends_with('s') || budget.find_first_of("0123456789") != 0) return std::nullopt;
  return seconds_of("--budget", "", budget, most_s);
}

void ask_for_time(QuestionOptions& options, double default_s) {
  const double slack_pct = percent * (time_budget_s(options).value() / default_s - 1.0);
  check_slack(slack_pct);
  options.slacks = {fmt::format("{}", slack_pct)};
  options.budget.clear();
}

void check_slack(double slack_pct) {
  if (!(slack_pct > -percent && slack_pct <= most_pct))
    throw UsageError(fmt::format("--slack is {}; expected a number above -100, at most {}",
                                 slack_pct, most_pct));
}

void check_odds(double odds_pct) {
  if (!(odds_pct >= 0.0 && odds_pct < percent))
    throw UsageError(fmt::format("--odds is {}; expected a number from 0 to below 100", odds_pct));
}

std::vector<std::string> goal_words(std::vector<std::string> goals) {
  for (std::string& goal : goals) {
    if (goal.starts_with("least_")) goal.erase(0, std::string_view("least_").size());
  }
  return goals;
}

}  // namespace rubato
