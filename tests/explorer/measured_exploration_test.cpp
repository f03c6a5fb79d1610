// Plans on measured cells, from the definition: every choice of a clock for every kernel is tried
// on the numbers of the file. The model has no say where everything was measured.

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "explorer/confidence/winners_curse.hpp"
#include "explorer/exploration.hpp"
#include "models/measured/measured_table.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

constexpr std::array core_mhz{510, 1005, 1410};

// Times in ms, powers in W, shape [kernels x clocks]; the last clock is the default's.
struct Numbers {
  std::vector<std::vector<int>> ms, watts;
  std::vector<int> counts;
};

Numbers arbitrary_numbers() {
  Numbers numbers;
  const int kernels = *rc::gen::inRange(1, 5);
  for (int k = 0; k < kernels; ++k) {
    std::vector<int> ms, watts;
    for (std::size_t c = 0; c < core_mhz.size(); ++c) {
      ms.push_back(*rc::gen::inRange(5, 40));
      watts.push_back(*rc::gen::inRange(80, 400));
    }
    numbers.ms.push_back(ms);
    numbers.watts.push_back(watts);
    numbers.counts.push_back(*rc::gen::inRange(1, 30));
  }
  return numbers;
}

std::string csv_of(const Numbers& numbers) {
  std::string text = "kernel,core_mhz,time_s,power_w,count\n";
  for (std::size_t k = 0; k < numbers.ms.size(); ++k) {
    for (std::size_t c = 0; c < core_mhz.size(); ++c) {
      text += fmt::format("k{},{},{}e-3,{},{}\n", k, core_mhz[c], numbers.ms[k][c],
                          numbers.watts[k][c], numbers.counts[k]);
    }
  }
  return text;
}

// Powers may be anything here, which a reader of real ones would not believe.
MeasuredTable table_of(const std::string& csv, MissingCells missing = MissingCells::leave_out,
                       const std::optional<Trace>& trace = {}) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  SweepColumns columns;
  columns.keep_implausible = true;
  return measured_table(parse_sweep(csv, "t.csv", spec, columns), spec, trace, missing);
}

Exploration plans_on(const MeasuredTable& table, double slack_frac) {
  ExplorationInput input{
      .trace = table.trace,
      .spec = table.spec,
      .grid = "",
      .power_limit_w = {},
      .switching = {},
      .questions = {{.granularity = Granularity::kernel, .goal = LeastWaste{slack_frac, 0.0}}}};
  input.spec.switching.core_s = 0.0;  // else one clock for all may be better as applied
  input.measured = table.cells;
  input.measured_clocks = table.clocks;
  return explore(input);
}

RC_GTEST_PROP(MeasuredExploration, IsTheBestOfAllChoicesOfMeasuredCells, ()) {
  const Numbers numbers = arbitrary_numbers();
  const double slack_frac = 0.05 * *rc::gen::inRange(0, 10);
  const auto seconds = [&](std::size_t k, std::size_t c) {
    return numbers.counts[k] * 1e-3 * numbers.ms[k][c];
  };
  double budget_s = 0.0;
  for (std::size_t k = 0; k < numbers.ms.size(); ++k)
    budget_s += (1.0 + slack_frac) * seconds(k, core_mhz.size() - 1);
  double best_j = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> choice(numbers.ms.size(), 0);
  for (bool more = true; more;) {
    double time_s = 0.0, energy_j = 0.0;
    for (std::size_t k = 0; k < choice.size(); ++k) {
      time_s += seconds(k, choice[k]);
      energy_j += seconds(k, choice[k]) * numbers.watts[k][choice[k]];
    }
    if (time_s <= budget_s * (1.0 + 1e-12)) best_j = std::min(best_j, energy_j);
    std::size_t k = 0;
    while (k < choice.size() && ++choice[k] == core_mhz.size()) choice[k++] = 0;
    more = k < choice.size();
  }
  const Exploration found = plans_on(table_of(csv_of(numbers)), slack_frac);
  RC_ASSERT(std::abs(found.plans.at(0).sim.total.energy_j / best_j - 1.0) < 1e-9);
  RC_ASSERT(found.coefficient_sources.at(0) == CoefficientSource::measured);
  RC_ASSERT(found.work_dropped == std::vector<bool>(numbers.ms.size(), false));
}

constexpr const char* two_kernels =
    "kernel,core_mhz,time_s,energy_j\n"
    "a,510,2.0,200\na,1410,1.0,300\n"
    "b,510,3.0,300\nb,1410,2.0,500\n";

TEST(MeasuredTable, RepeatsAreMeansAndSayHowNoisyCellsAre) {
  const MeasuredTable table =
      table_of(std::string(two_kernels) + "a,1410,1.1,330\n");  // mean 1.05 s and 315 J
  const ClockPair high{MemStateId{0}, 1410.0};
  const OperatingPoint* cell = table.cells->find(KernelId{0}, high);
  ASSERT_NE(cell, nullptr);
  EXPECT_DOUBLE_EQ(cell->time_s, 1.05);
  EXPECT_NEAR(cell->energy_j, 315.0, 1e-9);
  ASSERT_TRUE(table.noise.has_value());
  EXPECT_EQ(table.noise->repeats, 1U);
  EXPECT_NEAR(table.noise->time, 0.05 / 1.05 * std::sqrt(2.0), 1e-9);
  EXPECT_FALSE(table_of(two_kernels).noise.has_value());
}

TEST(MeasuredTable, TheHighestClockStandsInForADefaultThatWasNotMeasured) {
  const MeasuredTable table = table_of(two_kernels);
  EXPECT_EQ(table.spec.default_clock.core_mhz, 1410.0);
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_NE(table.notes[0].find("was not measured"), std::string::npos);
}

TEST(MeasuredTable, LeavesOutClocksWithHolesOrFillsThem) {
  const std::string hole = std::string(two_kernels) + "a,1005,1.3,220\n";
  EXPECT_EQ(table_of(hole).clocks.size(), 2U);
  const MeasuredTable filled = table_of(hole, MissingCells::model);
  EXPECT_EQ(filled.clocks.size(), 3U);
  EXPECT_EQ(filled.modelled, 1U);
  const GpuModel model(filled.spec, filled.trace, {}, filled.cells);
  const ClockPair middle{MemStateId{0}, 1005.0};
  EXPECT_DOUBLE_EQ(model.evaluate(KernelId{0}, middle).time_s, 1.3);
  const double between_s = model.evaluate(KernelId{1}, middle).time_s;
  EXPECT_GT(between_s, 2.0);
  EXPECT_LT(between_s, 3.0);
}

TEST(MeasuredTable, TracesFindTheirKernelsByNameOrLabel) {
  Trace trace = table_of(two_kernels).trace;
  trace.kernels[0].name = "00 a";
  trace.segments[0].repeat = 7;
  const MeasuredTable table = table_of(two_kernels, MissingCells::leave_out, trace);
  EXPECT_DOUBLE_EQ(plans_on(table, 0.0).baseline.total.time_s, 7 * 1.0 + 2.0);
  trace.kernels[1].name = trace.kernels[1].label = "c";
  expect_error<DataError>([&] { (void)table_of(two_kernels, MissingCells::leave_out, trace); },
                          "1 of 2 kernels of the trace were not measured: c");
}

// An A100 has a clock each 15 MHz; what ran at 1403 MHz was set to 1410 or regulated.
TEST(MeasuredTable, ObservedClocksCountAsTheNearestOnesThatCanBeSet) {
  const MeasuredTable table =
      table_of("kernel,core_mhz,time_s,energy_j\na,512,2.0,200\na,1410,1.0,300\na,1404,1.1,300\n");
  ASSERT_EQ(table.clocks.size(), 2U);
  EXPECT_EQ(table.clocks[0].core_mhz, 510.0);
  EXPECT_DOUBLE_EQ(table.cells->find(KernelId{0}, ClockPair{MemStateId{0}, 1410.0})->time_s, 1.05);
  EXPECT_NE(table.notes.at(0).find("2 of 3 rows were observed beside"), std::string::npos);
  // Another GPU's.
  const MeasuredTable other =
      table_of("kernel,core_mhz,time_s,energy_j\na,1410,2.0,400\na,2500,1.0,300\n");
  expect_error<UsageError>([&] { (void)plans_on(other, 0.0); },
                           "does not support a core clock of 2500 MHz");
}

TEST(MeasuredTable, BadTablesAreRefused) {
  expect_error<DataError>([] { (void)table_of("kernel,core_mhz,time_s\na,510,1\n"); },
                          "power_w is missing");
  const std::string repeated = fmt::format("{}a,510,2.6,260\n", two_kernels);
  expect_error<DataError>([&] { (void)table_of(repeated); },
                          "in one cell; expected repeats within 25 %",
                          "'where' in the table's description");
  expect_error<DataError>(
      [] { (void)table_of("kernel,core_mhz,time_s,power_w\na,510,1,90\nb,1410,1,90\n"); },
      "no clock has all kernels measured", "missing = \"model\"");
  expect_error<DataError>(
      [] { (void)table_of("kernel,core_mhz,time_s,power_w,count\na,510,1,90,2\na,1410,1,90,3\n"); },
      "count of kernel 'a' is 3, 2 in rows before");
  expect_error<DataError>(
      [] { (void)table_of("kernel,core_mhz,time_s,power_w,pass\na,510,1,90,foward\n"); },
      "pass 'foward' is not known");
}

TEST(MeasuredTable, PassesOfATablePlanAsPasses) {
  const MeasuredTable table = table_of(
      "kernel,core_mhz,time_s,energy_j,pass\n"
      "forward,510,2,100,forward\nforward,1410,1,100,forward\n"
      "backward,510,3,100,backward\nbackward,1410,3,300,backward\n");
  EXPECT_EQ(table.trace.kernels[1].pass, Pass::backward);
  EXPECT_DOUBLE_EQ(plans_on(table, 0.0).plans.at(0).sim.total.energy_j, 200.0);
}

// Noise that is there by the file's own account makes what is promised shrink.
TEST(MeasuredExploration, TheIntervalExpectsTheWinnersCurse) {
  std::string csv = "kernel,core_mhz,time_s,energy_j\n";
  for (int k = 0; k < 30; ++k) {
    for (int mhz = 510; mhz <= 1410; mhz += 90) csv += fmt::format("k{},{},1.0,100\n", k, mhz);
  }
  const MeasuredTable table = table_of(csv);
  ExplorationInput input{.trace = table.trace,
                         .spec = table.spec,
                         .grid = "",
                         .power_limit_w = {},
                         .switching = {},
                         .questions = {{.granularity = Granularity::kernel, .goal = LeastWaste{}}}};
  input.measured = table.cells;
  input.measured_clocks = table.clocks;
  input.measured_noise = {.time = 0.005, .energy = 0.02};
  const Exploration found = explore(input);
  const PlanResult& plan = found.plans.at(0);
  ASSERT_TRUE(plan.interval.has_value());
  // All cells are the same: whatever a choice seems to save is noise, and is lost again.
  EXPECT_LE(plan.interval->energy.low_pct, 0.0);
  EXPECT_GT(plan.interval->energy.median_pct, 1.0);
}

}  // namespace
}  // namespace rubato
