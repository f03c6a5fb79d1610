#include "sim/simulator.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "sim/timeline/plan.hpp"
#include "tests/expect_error.hpp"
#include "tests/sim/launch_clocks.hpp"
#include "traces/files/trace_json.hpp"

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

// Launches that are counted are those that a replay goes through one by one.
RC_GTEST_PROP(Simulator, CountsWhatAReplayGoesThrough, ()) {
  const auto& [trace, model, grid] = setting();
  const Plan plan = arbitrary_plan();
  TraceSimulator simulator(trace, model, grid);
  const GraphRun replayed = simulator.replay(plan, {});
  const SimResult result = simulator.totals(plan);
  RC_ASSERT(result.total.clock_switches == replayed.changes.size());
  RC_ASSERT(result.total.launches == replayed.launches.size() - 1);
  std::vector<double> kernel_j(trace.kernels.size(), 0.0);
  std::uint64_t power_limited = 0;
  for (std::size_t i = 1; i < replayed.launches.size(); ++i) {
    const OperatingPoint& point = replayed.launches[i].point;
    kernel_j[index(simulator.graph().activities()[i].kernel)] += point.energy_j;
    power_limited += point.power_limited ? 1U : 0U;
  }
  for (std::size_t k = 0; k < kernel_j.size(); ++k)
    RC_ASSERT(std::abs(result.by_kernel[k].energy_j / kernel_j[k] - 1.0) < 1e-12);
  RC_ASSERT(std::abs(result.total.time_s / replayed.span_s - 1.0) < 1e-12);
  RC_ASSERT(result.total.power_limited_launches == power_limited);
}

// As often as a number can say: nothing that takes memory or time for each launch could do it.
TEST(Simulator, CountsRepeatsInsteadOfListingThem) {
  auto [trace, model, grid] = setting();
  const Plan plan = uniform_plan(trace, grid.default_clock());
  const SimResult once = simulate(trace, model, grid, plan);
  for (Segment& segment : trace.segments) segment.repeat *= 100'000'000U;
  const SimResult often =
      simulate(trace, model, grid, plan, {.core = {.stall_s = 1e-3}, .mem = {}});
  EXPECT_EQ(often.total.launches, 89'700'000'000U);
  EXPECT_NEAR(often.total.energy_j / once.total.energy_j, 1e8, 1e-4);
  EXPECT_NEAR(often.total.time_s / once.total.time_s, 1e8, 1e-4);
  Plan two_clocks = plan;
  two_clocks.clock_of_site[2] = *grid.find("5001/1470");
  EXPECT_EQ(simulate(trace, model, grid, two_clocks).total.clock_switches, 4'800'000'000U);
  // A change takes a millisecond, and none has to wait for another one.
  const SimResult paid =
      simulate(trace, model, grid, two_clocks, {.core = {.stall_s = 1e-3}, .mem = {}});
  const SimResult free = simulate(trace, model, grid, two_clocks);
  EXPECT_EQ(paid.total.launches, 89'700'000'000U);
  EXPECT_NEAR(static_cast<double>(paid.total.clock_switches) / 4.8e9, 1.0, 1e-6);
  EXPECT_NEAR((paid.total.time_s - free.total.time_s) / 4.8e6, 1.0, 1e-6);
}

// Each repeat more of a block adds the same, in whatever state the clocks are at its ends, whether
// launches are replayed or counted.
TEST(Simulator, CountsTheMiddleOfBlocksThatAreTooLongToReplay) {
  auto [trace, model, grid] = setting();
  const SwitchModel switching{
      .core = {.stall_s = 1e-4, .energy_j = 0.5, .lead_s = 2e-4}, .mem = {}, .dwell_s = 3e-4};
  const Plan low = uniform_plan(trace, *grid.find("5001/1470"));
  Plan plan = uniform_plan(trace, grid.default_clock());
  std::size_t site = 0;  // every second segment runs at the lower clocks
  for (std::size_t s = 0; s < trace.segments.size(); ++s) {
    for (std::size_t i = 0; i < trace.segments[s].launches.size(); ++i, ++site) {
      if (s % 2 == 1) plan.clock_of_site[site] = low.clock_of_site[site];
    }
  }
  const std::vector<Segment> once = trace.segments;
  const auto totals = [&, &trace = trace, &model = model, &grid = grid](std::uint32_t repeats) {
    trace.segments = once;
    for (Segment& segment : trace.segments) segment.repeat *= repeats;
    return simulate(trace, model, grid, plan, switching);
  };
  const SimResult replayed = totals(20), more = totals(40), counted = totals(1'000'000);
  EXPECT_EQ(counted.total.clock_switches, replayed.total.clock_switches);
  EXPECT_EQ(counted.late_launches, replayed.late_launches);
  EXPECT_EQ(counted.total.launches, 897'000'000U);
  const auto expect_linear = [&](double Totals::*what, const Totals& first, const Totals& second,
                                 const Totals& last) {
    const double expected = first.*what + (second.*what - first.*what) * 49'999.0;
    EXPECT_NEAR(last.*what / expected, 1.0, 1e-9);
  };
  expect_linear(&Totals::time_s, replayed.total, more.total, counted.total);
  expect_linear(&Totals::energy_j, replayed.total, more.total, counted.total);
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    expect_linear(&Totals::time_s, replayed.by_kernel[k], more.by_kernel[k], counted.by_kernel[k]);
    EXPECT_EQ(counted.by_kernel[k].launches, 50'000 * replayed.by_kernel[k].launches);
  }
}

TEST(Simulator, CountsAndChargesSwitches) {
  const auto& [trace, model, grid] = setting();
  Plan plan = uniform_plan(trace, grid.default_clock());
  EXPECT_EQ(simulate(trace, model, grid, plan).total.clock_switches, 0U);
  plan.clock_of_site[2] =
      *grid.find("5001/1470");  // first launch of the layer: 24 times there and back
  const SimResult free = simulate(trace, model, grid, plan);
  EXPECT_EQ(free.total.clock_switches, 48U);
  const SimResult paid =
      simulate(trace, model, grid, plan, {.core = {.stall_s = 1e-3, .energy_j = 0.5}, .mem = {}});
  EXPECT_NEAR(paid.total.time_s - free.total.time_s, 48e-3, 1e-9);
  const double idle_w = 0.5 * (model.idle_power_w(grid[grid.default_clock()]) +
                               model.idle_power_w(grid[*grid.find("5001/1470")]));
  EXPECT_NEAR(paid.total.energy_j - free.total.energy_j, 48.0 * (1e-3 * idle_w + 0.5), 1e-6);
}

SwitchModel long_switching() {
  const auto cost = [] {
    return SwitchCost{.stall_s = 1e-4 * *rc::gen::inRange(0, 30),
                      .energy_j = 0.1 * *rc::gen::inRange(0, 3),
                      .lead_s = 1e-4 * *rc::gen::inRange(0, 300)};
  };
  SwitchModel model{.core = cost(), .mem = {}, .dwell_s = 1e-4 * *rc::gen::inRange(0, 100)};
  if (*rc::gen::inRange(0, 2) == 1) model.mem = cost();
  return model;
}

// What a device must do, whatever the plan wants of it.
RC_GTEST_PROP(Simulator, KeepsTheRulesOfSwitching, ()) {
  const auto& [trace, model, grid] = setting();
  const Plan plan = arbitrary_plan();
  const SwitchModel switching = long_switching();
  TraceSimulator simulator(trace, model, grid);
  const GraphRun replayed = simulator.replay(plan, {.switching = switching});
  constexpr double rounding = 1e-7;
  for (std::size_t i = 0; i < replayed.changes.size(); ++i) {
    const ClockChange& change = replayed.changes[i];
    RC_ASSERT(change.stall_from_s >= change.request_s);
    RC_ASSERT(change.effect_s >= change.stall_from_s);
    if (i == 0) continue;
    // One at a time, and not before the dwell is over.
    RC_ASSERT(change.request_s >= replayed.changes[i - 1].effect_s + switching.dwell_s - rounding);
    const SwitchCost cost = switching.change(grid[replayed.changes[i - 1].to], grid[change.to]);
    RC_ASSERT(std::abs(change.effect_s - change.request_s - cost.latency_s()) < rounding);
  }
  double time_s = 0.0, energy_j = 0.0;
  auto change = replayed.changes.begin();
  const std::vector<ClockId> planned = clocks_of_launches(trace, plan);
  for (std::size_t i = 1; i < replayed.launches.size(); ++i) {
    const LaunchRun& launch = replayed.launches[i];
    // Launches follow each other; only stalls lie between them or in them.
    for (; change != replayed.changes.end() && change->stall_from_s < launch.begin_s + rounding &&
           change->effect_s <= launch.begin_s + rounding;
         ++change)
      time_s += change->effect_s - change->stall_from_s;
    const OperatingPoint wanted =
        model.evaluate(simulator.graph().activities()[i].kernel, grid[planned[i - 1]]);
    if (!launch.late) {
      RC_ASSERT(launch.clock == planned[i - 1]);
      RC_ASSERT(std::abs(launch.point.energy_j - wanted.energy_j) <= 1e-9 * wanted.energy_j);
      RC_ASSERT(std::abs(launch.begin_s - time_s) < 1e-6);
    }
    time_s = launch.begin_s + launch.point.time_s;
    for (; change != replayed.changes.end() && change->stall_from_s < time_s - rounding; ++change)
      time_s += change->effect_s - change->stall_from_s;
    energy_j += launch.point.energy_j;
  }
  for (; change != replayed.changes.end(); ++change)
    time_s += change->effect_s - change->stall_from_s;
  for (const ClockChange& each : replayed.changes) energy_j += each.energy_j;
  const SimResult result = simulate(trace, model, grid, plan, switching);
  RC_ASSERT(std::abs(result.total.time_s - time_s) < 1e-5);
  RC_ASSERT(std::abs(result.total.energy_j / energy_j - 1.0) < 1e-9);
}

// By hand: a kernel of the layer wants another clock for itself, and the change takes longer than
// the kernel runs. It is asked for ahead and is there in time; the change back comes late.
TEST(Simulator, ChangesBackLateWhereALaunchIsShorterThanTheLatency) {
  const auto& [trace, model, grid] = setting();
  Plan plan = uniform_plan(trace, grid.default_clock());
  const std::vector<Site> launches = sites(trace);
  const std::size_t wanted = launches.size() - 2;  // once in an iteration
  plan.clock_of_site[wanted] = *grid.find("5001/1470");
  const double own_s =
      model.evaluate(launches[wanted].kernel, grid[*grid.find("5001/1470")]).time_s;
  const double lead_s = 1.5 * own_s;
  const GraphRun replayed =
      TraceSimulator(trace, model, grid)
          .replay(plan, {.switching = {.core = {.lead_s = lead_s}, .mem = {}}});
  ASSERT_EQ(replayed.changes.size(), 2U);
  const LaunchRun& launch = replayed.launches[replayed.launches.size() - 2];
  EXPECT_FALSE(launch.late);
  EXPECT_NEAR(replayed.changes[0].effect_s, launch.begin_s, 1e-12);
  EXPECT_NEAR(replayed.changes[1].effect_s, launch.begin_s + lead_s, 1e-9);
  EXPECT_TRUE(replayed.launches.back().late);
  EXPECT_EQ(
      simulate(trace, model, grid, plan, {.core = {.lead_s = lead_s}, .mem = {}}).late_launches,
      1U);
}

TEST(Simulator, RefusesSwitchingThatCannotBe) {
  expect_error<UsageError>(
      [&] {
        (void)simulate(setting().trace, setting().model, setting().grid,
                       uniform_plan(setting().trace, setting().grid.default_clock()),
                       {.core = {.stall_s = -1.0}, .mem = {}});
      },
      "core stall_s is -1; expected a number >= 0");
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
  std::string text;
  write_timeline([&](std::string_view piece) { text += piece; }, trace, model, grid,
                 {{"one clock", &plan, {}}});
  const auto json = nlohmann::json::parse(text);
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
