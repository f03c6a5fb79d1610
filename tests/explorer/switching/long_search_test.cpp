// How much a search over a long sequence has to do, and the edge of the budget.

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/switching/search.hpp"

namespace rubato {
namespace {

// Two kernels that take the same times, the second one so many times the energy of the first. Every
// 4,000 launches begin with 500 of the first. Fast clocks come first.
struct LongCase {
  explicit LongCase(double energy_ratio) {
    trace.kernels.resize(2);
    trace.segments = {{.name = "part", .repeat = 16, .launches = {}}};
    std::vector<KernelId>& part = trace.segments[0].launches;
    part.assign(4000, KernelId{1});
    std::fill_n(part.begin(), 500, KernelId{0});
    std::vector<double> time_s, energy_j;
    for (int c = 0; c < 64; ++c) clocks.push_back({MemStateId{0}, 1500.0 - 15.0 * c});
    for (const double ratio : {1.0, energy_ratio}) {
      for (const ClockPair& pair : clocks) {
        const double clock = *pair.core_mhz / 1500.0;
        time_s.push_back(1e-4 * (0.3 + 0.7 / clock));
        energy_j.push_back(ratio * 0.03 * clock * clock);
      }
    }
    table = ProfileTable(2, 64, std::move(time_s), std::move(energy_j));
    idle_power_w.assign(64, 50.0);
  }

  [[nodiscard]] SwitchingSolution solved() const {
    SwitchModel switching;
    switching.core.stall_s = 2e-5;
    return solve_switching({trace, table, clocks, idle_power_w, switching, 1.1 * fastest_s}, {},
                           1e-3);
  }

  Trace trace;
  ProfileTable table{1, 1, {1.0}, {1.0}};
  std::vector<ClockPair> clocks;
  std::vector<double> idle_power_w;
  double fastest_s = 64'000 * 1e-4;
};

// Programs over all launches are what takes long. A sample of launches like all others tells the
// price to within a hair, so one program on either side of it is enough.
TEST(LongSwitching, ASampleLikeAllLaunchesNeedsTwoPrograms) {
  const LongCase all_alike(1.0);
  const SwitchingSolution found = all_alike.solved();
  EXPECT_EQ(found.prices, 2U);
  EXPECT_LE(found.total.time_s, 1.1 * all_alike.fastest_s * (1.0 + 1e-9));
  EXPECT_LT(found.gap_frac(), 1e-3);
}

// The sample sees the first kernel alone. The price of all launches is 4 % above or below its own,
// and two programs more find plans on both sides of it.
TEST(LongSwitching, ASampleUnlikeMostLaunchesNeedsFourPrograms) {
  for (const double ratio : {1.04, 1.0 / 1.04}) {
    const LongCase unlike(ratio);
    const SwitchingSolution found = unlike.solved();
    EXPECT_EQ(found.prices, 4U) << ratio;
    EXPECT_LE(found.total.time_s, 1.1 * unlike.fastest_s * (1.0 + 1e-9)) << ratio;
    EXPECT_LT(found.gap_frac(), 1e-3) << ratio;
  }
}

// Where that price is 2 % off, the nearer of the two further programs, at 2.4 %, is on the other
// side already, and its bound is close.
TEST(LongSwitching, TheNearerOfTwoFurtherProgramsGivesTheBound) {
  const LongCase unlike(1.02);
  EXPECT_LT(unlike.solved().gap_frac(), 2e-4);
}

// Two changes of 0.8 s do not fit into the 1.5 s that the fastest launches leave, two of 0.7 s do.
TEST(SwitchingBudget, WhereNoTwoChangesFitOneClockIsProven) {
  Trace trace;
  trace.kernels.resize(2);
  trace.segments = {{.name = "all", .repeat = 1, .launches = {KernelId{0}, KernelId{1}}}};
  const ProfileTable table(2, 2, {1.0, 2.0, 1.0, 2.0}, {5.0, 3.0, 5.0, 4.0});
  const std::vector<ClockPair> clocks{{MemStateId{0}, 2.0}, {MemStateId{0}, 1.0}};
  const std::vector<double> idle_power_w{0.0, 0.0};
  const auto solved = [&](double stall_s) {
    SwitchModel switching;
    switching.core.stall_s = stall_s;
    return solve_switching({trace, table, clocks, idle_power_w, switching, 3.5});
  };
  EXPECT_EQ(solved(0.8).status, SolveStatus::optimal);
  EXPECT_EQ(solved(0.8).total.energy_j, 10.0);
  EXPECT_EQ(solved(0.7).status, SolveStatus::feasible);
  EXPECT_EQ(solved(0.1).total.energy_j, 8.0);
}

// Times may be beyond the budget by the rounding of their sum, 1e-12 of it, and no further.
TEST(SwitchingBudget, APlanExactlyAtItsEdgeKeepsIt) {
  Trace trace;
  trace.kernels.resize(1);
  trace.segments = {{.name = "all", .repeat = 3, .launches = {KernelId{0}}}};
  const ProfileTable table(1, 2, {1.0, 2.0}, {5.0, 4.0});
  const std::vector<ClockPair> clocks{{MemStateId{0}, 2.0}, {MemStateId{0}, 1.0}};
  const std::vector<double> idle_power_w{1.0, 1.0};
  double budget_s = 3.0 / (1.0 + 1e-12);
  while (budget_s * (1.0 + 1e-12) < 3.0) budget_s = std::nextafter(budget_s, 4.0);
  while (budget_s * (1.0 + 1e-12) > 3.0) budget_s = std::nextafter(budget_s, 2.0);
  ASSERT_EQ(budget_s * (1.0 + 1e-12), 3.0);
  const auto solved = [&](double within_s) {
    return solve_switching({trace, table, clocks, idle_power_w, SwitchModel{}, within_s});
  };
  const SwitchingSolution found = solved(budget_s);
  EXPECT_EQ(found.status, SolveStatus::optimal);
  EXPECT_EQ(found.runs, (std::vector<ClockRun>{{0, 3}}));
  EXPECT_EQ(found.total.time_s, 3.0);
  EXPECT_EQ(solved(std::nextafter(budget_s, 2.0)).status, SolveStatus::infeasible);
}

}  // namespace
}  // namespace rubato
