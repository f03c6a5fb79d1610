#include "explorer/plan/margin.hpp"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace rubato {
namespace {

// @param kept  what the plan for a slack keeps with the odds
double searched(double slack_frac, const std::function<double(double)>& kept, int tries) {
  MarginSearch search(slack_frac, kept(slack_frac), slack_frac);
  double best = -1.0;
  for (int i = 0; i < tries; ++i) {
    const double target = search.next_frac();
    search.tried(target, kept(target));
    if (kept(target) <= slack_frac + 1e-12) best = std::max(best, target);
  }
  return best;
}

// A plan that may be twice as late as planned is made for half of the slack, one that may be late
// by 2 % for 2 % less.
TEST(MarginSearch, TakesAsMuchLessTimeAsIsNeeded) {
  const auto twice = [](double target) { return 2.0 * target; };
  EXPECT_NEAR(searched(0.05, twice, 2), 0.025, 1e-9);
  const auto more = [](double target) { return target + 0.02; };
  EXPECT_NEAR(searched(0.05, more, 1), 0.03, 1e-9);
  const auto bent = [](double target) { return target + 0.3 * std::sqrt(std::max(target, 0.0)); };
  const double found = searched(0.1, bent, MarginSearch::tries_of_quick_plans);
  EXPECT_LE(bent(found), 0.1 + 1e-9);
  EXPECT_GT(bent(found), 0.065);
}

TEST(MarginSearch, LooksBetweenWhereThereIsNoPlan) {
  MarginSearch search(0.0, 0.04, 0.0);
  EXPECT_NEAR(search.next_frac(), -0.04, 1e-12);
  search.tried(-0.04, std::nullopt);
  EXPECT_NEAR(search.next_frac(), -0.02, 1e-12);
}

}  // namespace
}  // namespace rubato
