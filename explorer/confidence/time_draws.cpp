#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "explorer/confidence/confidence.hpp"

namespace rubato {

TimeDraws::TimeDraws(std::vector<double> changes_pct) : changes_pct_(std::move(changes_pct)) {
  std::ranges::sort(changes_pct_);
}

double TimeDraws::odds_within(double change_pct) const {
  constexpr double rounding_pct = 1e-7;  // totals of launches differ in the last digits
  const auto late = std::ranges::upper_bound(changes_pct_, change_pct + rounding_pct);
  return static_cast<double>(late - changes_pct_.begin()) /
         static_cast<double>(changes_pct_.size());
}

double TimeDraws::kept_with(double odds_frac) const {
  const double draws = static_cast<double>(changes_pct_.size());
  const double needed = std::clamp(std::ceil(odds_frac * draws - 1e-9), 1.0, draws);
  return changes_pct_[static_cast<std::size_t>(needed) - 1];
}

}  // namespace rubato
