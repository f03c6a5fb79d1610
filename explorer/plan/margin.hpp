#pragma once
// Odds need a margin: a plan that is made for the deadline itself is late half of the time. So it
// is made for less time, as much less as its interval is wide. docs/trust.md.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/plan/answer.hpp"

namespace rubato {

/// Searches the target for which a plan keeps a deadline with the odds asked for.
class MarginSearch {
 public:
  static constexpr int tries = 6;
  static constexpr double settled_frac = 2.5e-4;  ///< of the deadline, left: of little use

  /// @param target_frac  slack that the first plan was made for, that of the deadline or less
  /// @param kept_frac    what that plan keeps with the odds
  /// @param slack_frac   of the deadline
  MarginSearch(double target_frac, double kept_frac, double slack_frac)
      : slack_frac_(slack_frac), last_was_late_(kept_frac > slack_frac) {
    (last_was_late_ ? late_ : early_) = Try{target_frac, kept_frac - slack_frac};
  }

  /// The slack to plan for next: less by what the last plan was late by, and by ever more while
  /// plans stay late (few clocks give the same plan for many slacks), or more by what it left;
  /// between two plans, one of which is late, by the line between these, or in their middle where
  /// that line moved the same end twice.
  [[nodiscard]] double next_frac() const {
    constexpr double least_step = 0.002;  // plans of captured runs lie so far apart
    if (!late_) return std::min(early_->target_frac - early_->late_frac, slack_frac_);
    if (!early_ && lates_ == 0) return late_->target_frac - late_->late_frac;
    if (!early_)
      return late_->target_frac - std::ldexp(std::max(late_->late_frac, least_step), lates_ - 1);
    if (stalled_) return 0.5 * (early_->target_frac + late_->target_frac);
    const double share = -early_->late_frac / (late_->late_frac - early_->late_frac);
    return early_->target_frac + share * (late_->target_frac - early_->target_frac);
  }

  /// Whether no other plan saves more: the last one that has the odds leaves next to none of the
  /// time, or was made for all of it.
  [[nodiscard]] bool is_settled() const {
    return early_ &&
           (early_->late_frac >= -settled_frac || (!late_ && early_->target_frac >= slack_frac_));
  }

  /// Says what a plan for next_frac() keeps with the odds. Nothing: there is none, look between.
  void tried(double target_frac, const std::optional<double>& kept_frac) {
    const double where_none_frac = late_ ? -late_->late_frac : 0.0;
    const Try one{target_frac, kept_frac ? *kept_frac - slack_frac_ : where_none_frac};
    stalled_ = early_ && (one.late_frac > 0.0) == last_was_late_;
    last_was_late_ = one.late_frac > 0.0;
    if (!last_was_late_) {
      early_ = one;
    } else {
      late_ = one;
      ++lates_;
    }
  }

 private:
  struct Try {
    double target_frac, late_frac;  // of the deadline, <= 0: in time
  };

  double slack_frac_;
  bool last_was_late_, stalled_ = false;
  std::optional<Try> late_, early_;  // the last of each
  int lates_ = 0;                    // tries that were late
};

/// What to plan for: a slack instead of that of the question.
struct MarginTarget {
  std::size_t question = 0;
  double slack_frac = 0.0;
};

/// What was asked for, with the odds asked for: a plan that lacks them is made for less time, one
/// that was made for less and has them for more. Where none has them, it is the default clocks, if
/// these are in time.
/// @param run          what differs by kind of run. planned(targets): one plan for each, which may
///                     raise a target that no plan keeps. appraise(question, plan): adds its odds;
///                     what it keeps with the odds asked for, nothing if there is none.
///                     energy_frac(plan): its change against the default clocks.
///                     kept_defaults(question, asked): the default clocks, appraised.
///                     take_bound(asked, plan): plans for less time have higher bounds, which do
///                     not hold for what was asked
/// @param asked        plan for each question
/// @param first_frac   slacks that these were made for, those of the questions or less
/// @param slacks_frac  of the questions
/// @param tries        for other times
template <class Run, class Plan>
[[nodiscard]] std::vector<Plan> plans_with_odds(Run& run, std::vector<Plan> asked,
                                                std::span<const double> first_frac,
                                                std::span<const double> slacks_frac,
                                                double odds_frac, int tries,
                                                const RunContext& context) {
  struct Search {
    std::size_t question;
    MarginSearch margin;
    std::optional<BolderPlan> bolder = {};  // of those that lack the odds
    std::optional<Plan> best = {};
  };
  const auto bolder = [&](const Plan& plan) {
    return BolderPlan{run.energy_frac(plan), *plan.odds_in_time};
  };
  std::vector<Search> searches;
  for (std::size_t q = 0; q < asked.size(); ++q) {
    const std::optional<double> kept_frac = run.appraise(q, asked[q]);
    const bool has = has_odds(asked[q].odds_in_time, odds_frac);
    if (!kept_frac || !asked[q].verdict.applicable || (has && first_frac[q] >= slacks_frac[q]))
      continue;
    Search& search = searches.emplace_back(Search{q, {first_frac[q], *kept_frac, slacks_frac[q]}});
    if (has)
      search.best = asked[q];
    else
      search.bolder = bolder(asked[q]);
  }
  for (int i = 0; i < tries && !context.stop_requested(); ++i) {
    std::vector<MarginTarget> targets;
    std::vector<Search*> of;
    for (Search& search : searches) {
      const double target_frac = search.margin.next_frac();
      if (!(target_frac > -1.0) || search.margin.is_settled()) continue;
      targets.push_back({search.question, target_frac});
      of.push_back(&search);
    }
    if (targets.empty()) break;
    std::vector<Plan> tried = run.planned(targets);
    for (std::size_t t = 0; t < tried.size(); ++t) {
      Search& search = *of[t];
      const std::optional<double> kept = run.appraise(search.question, tried[t]);
      search.margin.tried(targets[t].slack_frac, kept);
      const bool has = tried[t].odds_in_time && has_odds(tried[t].odds_in_time, odds_frac);
      if (has && (!search.best || run.energy_frac(tried[t]) < run.energy_frac(*search.best)))
        search.best = std::move(tried[t]);
      else if (!has && kept && tried[t].odds_in_time && tried[t].verdict.applicable &&
               (!search.bolder || bolder(tried[t]).is_better_than(*search.bolder)))
        search.bolder = bolder(tried[t]);
    }
  }
  for (Search& search : searches) {
    Plan& plan = asked[search.question];
    if (!search.best && slacks_frac[search.question] < 0.0) continue;
    if (!search.best) search.best = run.kept_defaults(search.question, plan);
    if (search.bolder) search.best->bolder = search.bolder;
    run.take_bound(plan, *search.best);
    plan = std::move(*search.best);
  }
  return asked;
}

}  // namespace rubato
