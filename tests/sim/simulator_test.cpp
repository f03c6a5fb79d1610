#include "sim/simulator.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "sim/timeline.hpp"
#include "tests/expect_error.hpp"
#include "traces/trace_json.hpp"

namespace rubato {
namespace {

struct Setting {
  Trace trace = load_trace("gpt3-xl");
  GpuModel model{load_gpu_spec("rtx-3080-ti"), trace};
  ClockGrid grid = make_clock_grid(model.spec(), "paper");
};

const Setting& setting() {
  static const Setting made;
  return made;
}

Plan arbitrary_plan() {
  const auto ids = *rc::gen::container<std::vector<std::uint32_t>>(
      sites(setting().trace).size(), rc::gen::inRange<std::uint32_t>(0, 66));
  Plan plan;
  for (const std::uint32_t id : ids) plan.clock_of_site.push_back(ClockId{id});
  return plan;
}

// The definition: every launch of the expanded trace costs what the model says.
RC_GTEST_PROP(Simulator, TotalsAreTheSumOverLaunches, ()) {
  const auto& [trace, model, grid] = setting();
  const Plan plan = arbitrary_plan();
  double time_s = 0.0, energy_j = 0.0;
  const auto launches = sites(trace);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const OperatingPoint point = model.evaluate(launches[i].kernel, grid[plan.clock_of_site[i]]);
    time_s += launches[i].repeat * point.time_s;
    energy_j += launches[i].repeat * point.energy_j;
  }
  const SimResult result = simulate(trace, model, grid, plan);
  RC_ASSERT(std::abs(result.total.time_s / time_s - 1.0) < 1e-12);
  RC_ASSERT(std::abs(result.total.energy_j / energy_j - 1.0) < 1e-12);
  RC_ASSERT(result.total.launches == 897U);
  double by_pass_j = 0.0, by_kernel_j = 0.0;
  for (const Totals& totals : result.by_pass) by_pass_j += totals.energy_j;
  for (const Totals& totals : result.by_kernel) by_kernel_j += totals.energy_j;
  RC_ASSERT(std::abs(by_pass_j / energy_j - 1.0) < 1e-12);
  RC_ASSERT(std::abs(by_kernel_j / energy_j - 1.0) < 1e-12);
}

TEST(Simulator, CountsAndChargesSwitches) {
  const auto& [trace, model, grid] = setting();
  Plan plan = uniform_plan(trace, grid.default_clock());
  EXPECT_EQ(simulate(trace, model, grid, plan).total.clock_switches, 0U);
  plan.clock_of_site[2] =
      *grid.find("5001/1470");  // first launch of the layer: 24 times there and back
  const SimResult free = simulate(trace, model, grid, plan);
  EXPECT_EQ(free.total.clock_switches, 48U);
  const SimResult paid = simulate(trace, model, grid, plan, {.stall_s = 1e-3, .energy_j = 0.5});
  EXPECT_NEAR(paid.total.time_s - free.total.time_s, 48e-3, 1e-9);
  const double idle_w = 0.5 * (model.idle_power_w(grid[grid.default_clock()]) +
                               model.idle_power_w(grid[*grid.find("5001/1470")]));
  EXPECT_NEAR(paid.total.energy_j - free.total.energy_j, 48.0 * (1e-3 * idle_w + 0.5), 1e-6);
}

TEST(Simulator, RefusesPlansThatDoNotFit) {
  const auto& [trace, model, grid] = setting();
  expect_error<DataError>(
      [&] { (void)simulate(setting().trace, setting().model, setting().grid, Plan{}); },
      "the plan has 0 entries; expected 46");
  Plan plan = uniform_plan(trace, ClockId{99});
  expect_error<DataError>(
      [&] { (void)simulate(setting().trace, setting().model, setting().grid, plan); },
      "the plan asks for clock 99; the grid has 66");
}

TEST(Timeline, IsAChromeTraceWhoseSlicesFollowEachOther) {
  const auto& [trace, model, grid] = setting();
  const Plan plan = uniform_plan(trace, *grid.find("5001/1470"));
  const auto json =
      nlohmann::json::parse(timeline_json(trace, model, grid, {{"one clock", &plan, {}}}));
  double end_us = 0.0;
  std::size_t kernels = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "kernel") continue;
    EXPECT_NEAR(event["ts"].get<double>(), end_us, 1e-6);
    end_us = event["ts"].get<double>() + event["dur"].get<double>();
    ++kernels;
  }
  EXPECT_EQ(kernels, 897U);
  EXPECT_NEAR(end_us, simulate(trace, model, grid, plan).total.time_s * 1e6, 1e-3);
  const auto& last = json["traceEvents"].back();
  EXPECT_EQ(last["ph"], "C");
  EXPECT_EQ(last["args"]["MHz"], 0.0);  // counters end at zero
}

}  // namespace
}  // namespace rubato
