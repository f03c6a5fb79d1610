// What planning with a model costs, from the definition: every choice of clocks is tried.

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/regret.hpp"
#include "models/alternatives/measured_table.hpp"

namespace rubato {
namespace {

ProfileTable whole_table(std::size_t rows, std::size_t clocks) {
  std::vector<double> time_s, energy_j;
  for (std::size_t i = 0; i < rows * clocks; ++i) {
    time_s.push_back(*rc::gen::inRange(1, 40));
    energy_j.push_back(*rc::gen::inRange(1, 40));
  }
  return {rows, clocks, std::move(time_s), std::move(energy_j)};
}

// Least energy of all choices within a time.
double least_table_j(const ProfileTable& table, double time_s) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::uint32_t> choice(table.rows(), 0);
  for (bool more = true; more;) {
    Cost total;
    for (std::size_t row = 0; row < choice.size(); ++row) {
      const Cost cost = table.cost(row, ClockId{choice[row]});
      total.time_s += cost.time_s;
      total.energy_j += cost.energy_j;
    }
    if (total.time_s <= time_s * (1.0 + 1e-9)) best = std::min(best, total.energy_j);
    std::size_t row = 0;
    while (row < choice.size() && ++choice[row] == table.clocks()) choice[row++] = 0;
    more = row < choice.size();
  }
  return best;
}

Cost total_at(const ProfileTable& table, ClockId clock) {
  Cost total;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    total.time_s += table.cost(row, clock).time_s;
    total.energy_j += table.cost(row, clock).energy_j;
  }
  return total;
}

RC_GTEST_PROP(Regrets, AreWhatTheBestPlanInTheSameTimeSavesMore, ()) {
  const auto rows = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
  const std::size_t clocks = 3;
  const ProfileTable measured = whole_table(rows, clocks), predicted = whole_table(rows, clocks);
  const ClockId usual{2};
  const double slack = 0.05 * *rc::gen::inRange(0, 8);
  const Regret regret = regret_of(measured, predicted, usual, slack);
  const Cost base = total_at(measured, usual);
  const auto saved = [&](double frac) {
    return 100.0 * (least_table_j(measured, base.time_s * (1.0 + frac)) / base.energy_j - 1.0);
  };
  RC_ASSERT(std::abs(regret.best_energy_pct - saved(slack)) < 1e-6);
  RC_ASSERT(regret.regret_pct > -1e-9);
  RC_ASSERT((regret.late_pct > 0.0) == (regret.time_pct > 100.0 * slack + 1e-6));
  const double allowed = std::max(slack, regret.time_pct / 100.0);
  RC_ASSERT(std::abs(regret.regret_pct - (regret.energy_pct - saved(allowed))) < 1e-6);
  if (regret.late_pct == 0.0) RC_ASSERT(regret.energy_pct >= regret.best_energy_pct - 1e-9);
}

RC_GTEST_PROP(Regrets, OfTheMeasuredTableItselfAreZero, ()) {
  const ProfileTable measured = whole_table(static_cast<std::size_t>(*rc::gen::inRange(1, 6)), 4);
  const Regret regret = regret_of(measured, measured, ClockId{3}, 0.05 * *rc::gen::inRange(0, 8));
  RC_ASSERT(std::abs(regret.regret_pct) < 1e-9);
  RC_ASSERT(regret.late_pct == 0.0);
  RC_ASSERT(std::abs(regret.promised_energy_pct - regret.energy_pct) < 1e-9);
}

// Two kernels; the model takes lower clocks to cost no time.
TEST(Regrets, ALatePlanIsShownAsLate) {
  const ProfileTable measured(1, 3, {2.0, 1.2, 1.0}, {60.0, 80.0, 100.0});
  const ProfileTable predicted(1, 3, {1.0, 1.0, 1.0}, {50.0, 80.0, 100.0});
  const Regret regret = regret_of(measured, predicted, ClockId{2}, 0.05);
  EXPECT_DOUBLE_EQ(regret.time_pct, 100.0);
  EXPECT_NEAR(regret.late_pct, 95.0, 1e-9);
  EXPECT_NEAR(regret.promised_energy_pct, -50.0, 1e-9);
  EXPECT_NEAR(regret.energy_pct, -40.0, 1e-9);
  EXPECT_NEAR(regret.best_energy_pct, 0.0, 1e-9);
  EXPECT_NEAR(regret.regret_pct, 0.0, 1e-9);  // nothing saves more in twice the time
}

// 15 % more time is 114.99999999999999: what is not late is within the budget of the best plan too.
TEST(Regrets, AreNotNegativeWhereTheBudgetIsRounded) {
  const ProfileTable measured(1, 2, {115.0, 100.0}, {50.0, 100.0});
  const ProfileTable predicted(1, 2, {110.0, 100.0}, {50.0, 100.0});
  const Regret regret = regret_of(measured, predicted, ClockId{1}, 0.15);
  EXPECT_EQ(regret.late_pct, 0.0);
  EXPECT_NEAR(regret.energy_pct, -50.0, 1e-9);
  EXPECT_NEAR(regret.best_energy_pct, -50.0, 1e-9);
  EXPECT_NEAR(regret.regret_pct, 0.0, 1e-9);
  // Nor does the model's own plan lose it.
  EXPECT_NEAR(regret_of(measured, measured, ClockId{1}, 0.15).energy_pct, -50.0, 1e-9);
}

std::vector<std::vector<OperatingPoint>> cells_of(const Sweep& sweep) {
  std::vector<std::vector<OperatingPoint>> cells;
  for (const SweepKernel& kernel : sweep.kernels) {
    cells.emplace_back();
    for (const SweepPoint& point : kernel.points)
      cells.back().push_back({.time_s = *point.time_s, .energy_j = *point.time_s * *point.power_w});
  }
  return cells;
}

TEST(Regrets, StepsWeighKernelsByCountOrEqually) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const auto one_clock = [&](const std::string& csv) {
    const Sweep sweep = one_setting(parse_sweep(csv, "t.csv", spec), spec);
    const std::array slacks{0.3};
    const auto rows = regrets(spec, sweep, cells_of(sweep), slacks);
    EXPECT_EQ(rows.size(), 3U);
    return rows.at(1).mean.time_pct;
  };
  const std::string header = "kernel,core_mhz,time_s,power_w";
  // Kernel a takes half as long again at 1005 MHz, b no longer; b is ten times as long.
  const std::string a = "a,510,9,100", b = "b,510,90,100";
  EXPECT_NEAR(one_clock(header + "\n" + a + "\na,1005,1.5,100\na,1410,1,300\n" + b +
                        "\nb,1005,10,100\nb,1410,10,300\n"),
              25.0, 1e-9);
  EXPECT_NEAR(one_clock(header + ",count\n" + a + ",1\na,1005,1.5,100,1\na,1410,1,300,1\n" + b +
                        ",4\nb,1005,10,100,4\nb,1410,10,300,4\n"),
              100.0 * 0.5 / 41.0, 1e-9);
}

TEST(Regrets, NoStepWithoutCommonClocks) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep sweep =
      one_setting(parse_sweep("kernel,core_mhz,time_s,power_w\n"
                              "a,510,3,100\na,1005,2,100\na,1410,1,200\nb,525,3,100\nb,1020,2,100\n"
                              "b,1410,1,200\n",
                              "t.csv", spec),
                  spec);
  const std::array slacks{0.0, 0.1};
  const auto rows = regrets(spec, sweep, cells_of(sweep), slacks);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].steps, PlannedSteps::alone);
  EXPECT_EQ(rows[0].plans, 2U);
}

}  // namespace
}  // namespace rubato
