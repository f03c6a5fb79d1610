#pragma once
// Which plan answers what was asked: the one that every command, page and view names.
// docs/trust.md.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/goal.hpp"
#include "explorer/plan/applicable.hpp"
#include "models/table/profile_table.hpp"

namespace rubato {

/// Plans of one granularity with objectives this much apart, as a share of the objective at the
/// default clocks, are alike: the simplest of them is taken.
inline constexpr double alike_objective_frac = 1e-4;

/// Where one clock for all does not save this share of the objective, the default clocks stay.
inline constexpr double least_saving_frac = 5e-4;

/// What a finer plan has to save beyond a coarser one to be named instead: a point.
inline constexpr double finer_saving_frac = 0.01;

/// Odds of being in time that an answer must have, unless others are asked for.
inline constexpr double usual_odds_frac = 0.9;

/// Odds at which a plan is late as often as not: what less would save is of little use.
inline constexpr double even_odds_frac = 0.5;

/// A plan that saves more than one with the odds asked for, but is late more often.
struct BolderPlan {
  double energy_frac = 0.0;   ///< its change against the default clocks, as applied
  double odds_in_time = 0.0;  ///< 0 to 1

  /// Whether it is the one to name: of those with even odds the one that saves most, else of all.
  [[nodiscard]] bool is_better_than(const BolderPlan& other) const noexcept {
    const bool even = odds_in_time >= even_odds_frac;
    if (even != (other.odds_in_time >= even_odds_frac)) return even;
    return energy_frac < other.energy_frac;
  }
};

/// What the 90 % interval of a plan's energy says of its saving.
enum class Saving : std::uint8_t {
  known,    ///< zero is outside: the plan saves, or it does not
  likely,   ///< zero is inside, and the plan saves with odds of three in four or more
  unlikely  ///< with less
};

/// @param low, expected, high  changes of energy as applied, all in one unit: -5 saves 5. The part
///   of the interval above what is expected counts as that of a Gaussian.
[[nodiscard]] Saving saving_of(double low, double expected, double high) noexcept;

/// A plan beside the default clocks, as the rule sees it. Plans that want the same compete.
struct Contender {
  std::string want;             ///< want_text() of its goal
  double slack_frac = 0.0;      ///< of its want; 0 where time is not bounded by a slack
  bool default_holds = true;    ///< the default clocks keep the time or budget
  bool holds = false;           ///< a plan was found, and as applied it keeps the time or budget
  double objective_frac = 0.0;  ///< what is wanted least, as applied, over that at default clocks
  PlanVerdict verdict = {};
  std::optional<double> odds_in_time = {};  ///< as applied, 0 to 1; nothing: not known
  double odds_frac = 0.0;                   ///< that were asked for, 0 to 1
  Saving saving = Saving::known;            ///< of a goal other than waste: known
  bool fitted = true;                       ///< at clocks that the GPU was fitted at, only
  std::int64_t clock_changes = 0;
  std::int64_t clocks = 1;  ///< different ones
  Granularity granularity = Granularity::run;
  std::string aggregation = "global";
  std::optional<double> comm_sms = {};  ///< of collectives beside compute; nothing: as captured
};

/// What was found for a want.
struct PlanAnswer {
  std::string want;
  std::optional<std::size_t> plan = {};  ///< its position; nothing: see `keeps_default`
  bool keeps_default = false;            ///< the default clocks are the answer. Else no plan holds
  bool known = true;  ///< false: within its 90 % interval the plan may save nothing
};

/// Goal with slack, budgets and prices: "relaxed_waste 5", "least_cost 0.12 2 1.2".
[[nodiscard]] std::string want_text(const Goal& goal);

/// What is least: J, J s, J s^2, s or money.
/// @param gpus  number of GPUs in this energy
[[nodiscard]] double value_of_goal(const Goal& goal, const Cost& total, double gpus);

/// The part of a contender that follows from totals.
/// @param applied   time and energy with the changes of clock; nothing: no plan was found
/// @param defaults  time and energy at the default clocks
/// @param gpus      number of GPUs in these energies
[[nodiscard]] Contender contender(const Goal& goal, const std::optional<Cost>& applied,
                                  const Cost& defaults, double gpus = 1.0);

/// The answer of each want, in the order in which wants come first. Among plans that hold, are
/// applicable and have the odds asked for (or odds that are not known), the default clocks stand
/// too, where they hold; they are in time with certainty, and plans that are unlikely to save do
/// not stand beside them:
/// 1. A plan beyond the fitted clocks leaves where one within them saves 0.9 times as much.
/// 2. From the coarsest granularity to the finest, a plan takes the place of the one named before
///    it, at first the default clocks, where it saves `finer_saving_frac` more; one clock for all
///    where it saves `least_saving_frac`. Plans of a finer granularity that have one clock for all
///    count as that.
///    Beside the default clocks those of known saving are asked first.
/// 3. Of the plans of a granularity that are alike to the one of least objective: the one with the
///    fewest changes of clock, then with the fewest clocks, of global aggregation, with collectives
///    as captured, of the least objective. What is left is equal: the first one.
[[nodiscard]] std::vector<PlanAnswer> choose_answers(std::span<const Contender> plans);

/// Whether a plan's odds are those asked for, or not known.
[[nodiscard]] constexpr bool has_odds(const std::optional<double>& odds_in_time, double odds_frac) {
  constexpr double rounding = 1e-9;
  return !odds_in_time || *odds_in_time >= odds_frac - rounding;
}

/// The answer that a run is known by: of the goals the one asked first, of its slacks the least
/// that has an answer. Null if nothing has one.
[[nodiscard]] const PlanAnswer* headline(std::span<const Contender> plans,
                                         std::span<const PlanAnswer> answers);

}  // namespace rubato
