#pragma once
// What is asked of a run: goals, and what gets one clock.

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
  std::vector<std::string> granularities{"iteration", "pass", "kernel", "segment"};
  std::vector<std::string> aggregations{"global"};
  std::vector<std::string> goals;   ///< empty: what --budget or --prices ask for, else energy
  std::vector<std::string> slacks;  ///< of goal energy, in %, or "any"; empty: 0
  double odds_pct = percent * usual_odds_frac;
  std::string budget, prices;
  bool granularities_given = false;  ///< else `segment` is left out where it has no answer
  bool switching_given = false;      ///< else `segment` counts changes of clock
};

/// Adds --granularity, --aggregation, --goal, --slack, --odds, --budget and --prices. `options`
/// must outlive parsing.
void add_question_options(CommandLine& app, QuestionOptions& options);

/// What --goal takes.
[[nodiscard]] std::vector<std::string> goal_names();

/// The goals, in the order asked; of least energy one for each slack.
/// @throws UsageError for names that are not known, for what a goal lacks, and for --slack,
///         --budget and --prices without their goal
[[nodiscard]] std::vector<Goal> goals_of(const QuestionOptions& options);

/// Those of --granularity, of a trace. @throws UsageError for names that are not known
[[nodiscard]] std::vector<Granularity> granularities_of(const QuestionOptions& options);

/// Every combination of goal, granularity and aggregation; where no granularity was given, those
/// that such a run has plans for. @throws as goals_of()
[[nodiscard]] std::vector<Question> questions_of(const QuestionOptions& options, RunKind kind,
                                                 const std::vector<Granularity>& granularities);

/// @throws UsageError if it is not above -100 %, or too large to be meant
void check_slack(double slack_pct);

/// Goals by the names of files: "least_edp" of tables and databases is "edp".
[[nodiscard]] std::vector<std::string> goal_words(std::vector<std::string> goals);

/// @throws UsageError unless it is from 0 to below 100 %
void check_odds(double odds_pct);

}  // namespace rubato
