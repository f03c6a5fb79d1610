#pragma once
// What is asked of a run: goals, and what gets one clock.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/numbers.hpp"
#include "explorer/exploration.hpp"
#include "explorer/plan/refusals.hpp"

namespace rubato {

class CommandLine;

/// Granularities, aggregations and goals as given: every combination is a question. Beside them
/// what some goals need.
struct QuestionOptions {
  std::vector<std::string> granularities;  ///< empty: all that have an answer
  std::vector<std::string> aggregations{"global"};
  std::vector<std::string> goals;   ///< empty: what --budget or --prices ask for, else energy
  std::vector<std::string> slacks;  ///< of goal energy, in %, or "any"; empty: 0
  double odds_pct = percent * usual_odds_frac;
  std::string budget, prices;
  bool granularities_given = false;  ///< else `segment` is left out where it has no answer
  bool switching_given = false;      ///< else `segment` counts changes of clock
};

/// Adds --per, --aggregation, --goal, --slack, --odds, --budget and --prices. `options`
/// must outlive parsing.
void add_question_options(CommandLine& app, QuestionOptions& options);

/// What --goal takes.
[[nodiscard]] std::vector<std::string> goal_names();

/// The goals, in the order asked; of least energy one for each slack.
/// @throws UsageError for names that are not known, for what a goal lacks, and for --slack,
///         --budget and --prices without their goal
[[nodiscard]] std::vector<Goal> goals_of(const QuestionOptions& options);

/// Those of --per, else all; `gpu` only where there are several.
/// @throws UsageError for names that are not known
[[nodiscard]] std::vector<Granularity> granularities_of(const QuestionOptions& options,
                                                        std::size_t gpus);

/// Every combination of goal, granularity and aggregation; where no granularity was given, those
/// that such a run has plans for. @throws as goals_of()
[[nodiscard]] std::vector<Question> questions_of(const QuestionOptions& options, RunKind kind,
                                                 const std::vector<Granularity>& granularities);

/// A time as --budget, "20ms", s; nothing: another budget, or none.
/// @throws UsageError for a time that cannot be meant
[[nodiscard]] std::optional<double> time_budget_s(const QuestionOptions& options);

/// Asks for the slack that a step has which may take as long as time_budget_s() says.
/// @param default_s  of a step at the default clocks
void ask_for_time(QuestionOptions& options, double default_s);

/// @throws UsageError if it is not above -100 %, or too large to be meant
void check_slack(double slack_pct);

/// Goals by the names of files: "least_edp" of tables and databases is "edp".
[[nodiscard]] std::vector<std::string> goal_words(std::vector<std::string> goals);

/// @throws UsageError unless it is from 0 to below 100 %
void check_odds(double odds_pct);

}  // namespace rubato
