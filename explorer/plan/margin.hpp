#pragma once
// Odds need a margin: a plan that is made for the deadline itself is late half of the time. So it
// is made for less time, as much less as its interval is wide. docs/trust.md.

#include <optional>
#include <utility>

namespace rubato {

/// Searches the target for which a plan keeps a deadline with the odds asked for.
class MarginSearch {
 public:
  static constexpr int tries = 3, tries_of_quick_plans = 6;

  /// @param target_frac  slack that the first plan was made for
  /// @param kept_frac    what that plan keeps with the odds: more than the slack
  /// @param slack_frac   of the deadline
  MarginSearch(double target_frac, double kept_frac, double slack_frac)
      : slack_frac_(slack_frac), late_{target_frac, kept_frac - slack_frac} {}

  /// The slack to plan for next: less by what the last plan was late by; between two plans, one of
  /// which is late, by the line between these, or in their middle
  /// where that line moved the same end twice.
  [[nodiscard]] double next_frac() const {
    if (!early_) return late_.target_frac - late_.late_frac;
    if (stalled_) return 0.5 * (early_->target_frac + late_.target_frac);
    const double share = -early_->late_frac / (late_.late_frac - early_->late_frac);
    return early_->target_frac + share * (late_.target_frac - early_->target_frac);
  }

  /// Says what a plan for next_frac() keeps with the odds. Nothing: there is none, look between.
  void tried(double target_frac, const std::optional<double>& kept_frac) {
    const Try one{target_frac, kept_frac ? *kept_frac - slack_frac_ : -late_.late_frac};
    stalled_ = early_ && (one.late_frac > 0.0) == last_was_late_;
    last_was_late_ = one.late_frac > 0.0;
    if (last_was_late_)
      late_ = one;
    else
      early_ = one;
  }

 private:
  struct Try {
    double target_frac, late_frac;  // of the deadline, <= 0: in time
  };

  double slack_frac_;
  Try late_;
  std::optional<Try> early_;
  bool last_was_late_ = true, stalled_ = false;
};

}  // namespace rubato
