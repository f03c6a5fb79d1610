#include "explorer/plan/margin.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

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
  const double found = searched(0.1, bent, MarginSearch::tries);
  EXPECT_LE(bent(found), 0.1 + 1e-9);
  EXPECT_GT(bent(found), 0.065);
}

// With few clocks one plan answers many slacks: here the plan for 4.5 to 5 % keeps 5.02 %.
TEST(MarginSearch, LeavesAPlanThatStaysALittleLate) {
  const auto stepwise = [](double target) { return target > 0.045 ? 0.0502 : 0.046; };
  const double found = searched(0.05, stepwise, MarginSearch::tries);
  EXPECT_GT(found, 0.04);
  EXPECT_LE(found, 0.045);
}

// A first plan that was made for less time than there is.
TEST(MarginSearch, TakesMoreTimeWhereSomeIsLeft) {
  for (const double first : {0.0, 0.01, 0.02}) {
    const auto kept = [](double target) { return 1.5 * target + 0.005; };
    MarginSearch search(first, kept(first), 0.05);
    double best = first;
    for (int i = 0; i < MarginSearch::tries && !search.is_settled(); ++i) {
      const double target = search.next_frac();
      EXPECT_LE(target, 0.05);
      search.tried(target, kept(target));
      if (kept(target) <= 0.05 + 1e-12) best = std::max(best, target);
    }
    EXPECT_NEAR(best, 0.03, 1e-6) << first;
  }
  MarginSearch all(0.02, 0.01, 0.05);
  all.tried(all.next_frac(), 0.04);
  EXPECT_EQ(all.next_frac(), 0.05);
  all.tried(0.05, 0.045);
  EXPECT_TRUE(all.is_settled());
}

TEST(MarginSearch, LooksBetweenWhereThereIsNoPlan) {
  MarginSearch search(0.0, 0.04, 0.0);
  EXPECT_NEAR(search.next_frac(), -0.04, 1e-12);
  search.tried(-0.04, std::nullopt);
  EXPECT_NEAR(search.next_frac(), -0.02, 1e-12);
}

// A plan for a time saves as much as it takes. With the odds asked for it keeps a slack that grows
// ever more slowly with it; the later it keeps them, the worse are its odds.
struct MadePlan {
  double target_frac = 0.0;
  std::optional<double> odds_in_time = {};
  PlanVerdict verdict = {};
  std::optional<BolderPlan> bolder = {};
  double bound = target_frac;
};
struct ListedPlans {
  double slack_frac, grows, bends, falls, odds_frac;
  std::vector<MadePlan> seen = {};

  std::vector<MadePlan> planned(const std::vector<MarginTarget>& targets) {
    std::vector<MadePlan> made;
    for (const MarginTarget& target : targets) made.push_back({target.slack_frac});
    return made;
  }
  std::optional<double> appraise(std::size_t /*question*/, MadePlan& plan) {
    const double share = plan.target_frac / slack_frac;
    const double kept_share = grows * share - bends * share * share;
    plan.odds_in_time = std::clamp(1.0 - (1.0 - odds_frac) * std::pow(kept_share, falls), 0.0, 1.0);
    seen.push_back(plan);
    return kept_share * slack_frac;
  }
  static double energy_frac(const MadePlan& plan) { return -plan.target_frac; }
  static void take_bound(const MadePlan& asked, MadePlan& other) { other.bound = asked.bound; }
  static MadePlan kept_defaults(std::size_t /*question*/, const MadePlan& /*asked*/) {
    return {0.0, 1.0};
  }
};

// Beside the answer stands the best of those with even odds that were tried, else the best of all.
TEST(PlansWithOdds, NameTheBestOfEvenOddsThatWasTried) {
  int even = 0, other = 0;
  for (const double bends : {0.0, 0.2, 0.7, 1.0}) {
    for (const double falls : {2.0, 8.0, 20.0}) {
      constexpr double slack_frac = 0.1, odds_frac = 0.95;
      ListedPlans run{slack_frac, 1.4 + bends, bends, falls, odds_frac};
      const std::vector<MadePlan> plans =
          plans_with_odds(run, std::vector{MadePlan{slack_frac}}, std::vector{slack_frac},
                          std::vector{slack_frac}, odds_frac, 6, RunContext{});
      EXPECT_EQ(plans[0].bound, slack_frac);  // that of what was asked for
      if (!plans[0].bolder) continue;
      std::optional<BolderPlan> best;
      for (const double least : {even_odds_frac, 0.0}) {
        for (const MadePlan& plan : run.seen) {
          const double odds = *plan.odds_in_time;
          if (odds >= least && !has_odds(odds, odds_frac) &&
              (!best || ListedPlans::energy_frac(plan) < best->energy_frac))
            best = {ListedPlans::energy_frac(plan), odds};
        }
        if (best) break;
      }
      EXPECT_EQ(plans[0].bolder->energy_frac, best->energy_frac) << bends << ' ' << falls;
      EXPECT_EQ(plans[0].bolder->odds_in_time, best->odds_in_time) << bends << ' ' << falls;
      (best->odds_in_time >= even_odds_frac && *run.seen[0].odds_in_time < even_odds_frac
           ? even
           : other)++;
    }
  }
  EXPECT_GT(even, 0);
  EXPECT_GT(other, 0);
}

}  // namespace
}  // namespace rubato
