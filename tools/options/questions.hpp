#pragma once
// What is asked of a trace: goals, and what gets one clock.

#include <optional>
#include <string>
#include <vector>

#include "common/numbers.hpp"
#include "explorer/exploration.hpp"
#include "tools/options/prices.hpp"

namespace rubato {

class CommandLine;

/// Granularities, aggregations and goals as given: every combination is a question. Beside them
/// what some goals need.
struct QuestionOptions {
  std::vector<std::string> granularities{"iteration", "pass", "kernel", "segment"};
  std::vector<std::string> aggregations{"global"};
  std::vector<std::string> goals{"strict_waste"};
  std::vector<double> slacks_pct{0.0};  ///< of relaxed_waste: each is a question of its own
  double tolerance_pct = 0.0;
  double odds_pct = percent * usual_odds_frac;
  std::optional<double> energy_budget_j, power_budget_w;
  bool granularities_given = false;  ///< else `segment` is left out where it has no answer
  bool switching_given = false;      ///< else `segment` counts changes of clock
  PriceOptions prices;
};

/// Adds --granularity, --aggregation, --goal and what goals need. `options` must outlive parsing.
void add_question_options(CommandLine& app, QuestionOptions& options);

/// What --goal takes.
[[nodiscard]] std::vector<std::string> goal_names();

/// @throws UsageError for names that are not known, listing near ones, for goal `time` unless
///         it has one budget > 0, and for goal `cost` without a price of energy
[[nodiscard]] std::vector<Question> questions_of(const QuestionOptions& options);
[[nodiscard]] std::vector<Aggregation> aggregations_of(const QuestionOptions& options);

/// The goals asked for that have no slack. @throws as questions_of()
[[nodiscard]] std::vector<Goal> goals_besides_waste(const QuestionOptions& options);

/// @throws UsageError if it is not above -100 %, or too large to be meant
void check_slack(double slack_pct);

/// @throws UsageError for a slack, a tolerance or a price out of range
void check_numbers(const QuestionOptions& options);

/// Goals by the names of --goal. Names of tables and databases are taken too: "least_energy" is
/// "energy".
[[nodiscard]] std::vector<std::string> goal_words(std::vector<std::string> goals);

/// --odds: of being in time, in %. `odds_pct` must outlive parsing.
void add_odds_option(CommandLine& app, double& odds_pct);

/// @throws UsageError unless it is from 0 to below 100 %
void check_odds(double odds_pct);

/// Completes the options from the line. Slacks without --goal ask for relaxed_waste; of several
/// slacks one may be 0. Segments count changes of clock unless the line says what a change takes.
void settle(QuestionOptions& options, const CommandLine& line);

/// @throws UsageError for goals that are not known, for options of a goal that was not given, and
///         for relaxed_waste without a slack
void refuse_without_goal(const QuestionOptions& options, const CommandLine& line);

}  // namespace rubato
