#pragma once
// What lines and tables of a screen share.

#include <optional>
#include <string>
#include <vector>

#include "tools/terminal/screen.hpp"

namespace rubato {

/// The answers, and the one that the run is known by.
struct NamedPlans {
  explicit NamedPlans(const ShownRun& run);

  [[nodiscard]] bool is_answer(std::size_t plan_index) const;

  std::vector<Contender> plans;
  std::vector<PlanAnswer> answers;
  const PlanAnswer* headline = nullptr;  ///< null: no want has an answer
  const ShownPlan* plan = nullptr;       ///< null: the default clocks, or no plan
  const Goal* asked = nullptr;           ///< of the headline
};

/// Of goals without a slack 0.
[[nodiscard]] double slack_pct(const Goal& goal);

/// Whole percent, rounded down: "90 %"; of some hundred draws none late is no certainty: "> 99 %".
[[nodiscard]] std::string odds_words(double odds_in_time);

/// "least energy x time"; empty for energy within a slack.
[[nodiscard]] std::string goal_words(const Goal& goal);

/// The interval of a change, moved by what playing the plan changes of it.
[[nodiscard]] std::optional<Interval> as_applied(const ShownPlan& plan, const Cost& defaults,
                                                 double Cost::*of,
                                                 Interval SavingInterval::*interval);

}  // namespace rubato
