// Collectives on other SMs than captured: against sums by hand.

#include "sim/graph/comm_sms.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/graph/simulator.hpp"
#include "tests/made_run.hpp"
#include "tests/slow_graph_replay.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

constexpr double unnamed_sms = 16.0;  // of a collective whose grid is not known

std::vector<OverlappingCollective> collectives_of(const ExecutionGraph& graph,
                                                  double drawn_out_frac) {
  std::vector<OverlappingCollective> found;
  for (std::size_t k = 0; k < graph.kernels().size(); ++k) {
    if (graph.kernels()[k].kind != KernelClass::communication) continue;
    found.push_back({id_at<KernelId>(k), unnamed_sms, drawn_out_frac, drawn_out_frac});
  }
  return found;
}

RC_GTEST_PROP(CommSms, OnTheirCapturedSmsNothingChanges, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const ClockGrid grid = arbitrary_clocks(3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const GraphModel moved = model.with_comm_sms(collectives_of(graph, 0.7), unnamed_sms);
  const GraphPlan plan = arbitrary_plan(graph, grid);
  const GraphRun as_captured = GraphSimulator(model, grid).run(plan);
  const GraphRun same = GraphSimulator(moved, grid).run(plan);
  RC_ASSERT(same.start_s == as_captured.start_s && same.end_s == as_captured.end_s);
  RC_ASSERT(same.total_energy_j == as_captured.total_energy_j);
}

// A split that is open is another model, on whatever SMs.
RC_GTEST_PROP(CommSms, SplitsAndMovesGoTogether, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 2, .most_launches = 8});
  const ClockGrid grid = arbitrary_clocks(3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const auto collectives = collectives_of(graph, 0.4);
  const GraphPlan plan = arbitrary_plan(graph, grid);
  for (const double lean : {0.0, 1.0}) {
    const GraphModel first = model.with_comm_sms(collectives, 4.0).with_split(lean);
    const GraphModel last = model.with_split(lean).with_comm_sms(collectives, 4.0);
    const GraphRun a = GraphSimulator(first, grid).run(plan),
                   b = GraphSimulator(last, grid).run(plan);
    RC_ASSERT(a.end_s == b.end_s);
    RC_ASSERT(a.total_energy_j == b.total_energy_j);
  }
}

// A collective of 1 ms beside a product that fills the GPU.
struct BesideAProduct {
  BesideAProduct() : graph(made()), model(graph, spec, spec.default_clock) {}

  static ExecutionGraph made() {
    SmallGraph small(1);
    small.launch(0, "gemm", KernelClass::gemm, 5e-3);
    small.launch(1, "all-reduce", KernelClass::communication, 1e-3);
    return std::move(small).build();
  }
  [[nodiscard]] static ClockGrid grid(const char* clock) {
    return {small_graph_spec(), {parse_clock_pair(small_graph_spec(), clock)}};
  }
  // Launches a second of each kernel, both running.
  [[nodiscard]] static std::vector<double> rates(const GraphModel& of, const char* clock) {
    SharedGpu gpu = of.shared_gpu(parse_clock_pair(small_graph_spec(), clock));
    return gpu.at(std::vector<std::uint32_t>{0, 1}).launches_per_s;
  }

  const GpuSpec& spec = small_graph_spec();
  ExecutionGraph graph;
  GraphModel model;
};

TEST(CommSms, FewerSmsCopyLongerAndLeaveMoreToOthers) {
  const BesideAProduct both;
  const char* const captured = "1593/1410";
  const GraphModel moved = both.model.with_comm_sms(collectives_of(both.graph, 0.5), 4.0);
  const auto before = BesideAProduct::rates(both.model, captured),
             after = BesideAProduct::rates(moved, captured);
  // Half of the time is copying, which a quarter of the SMs takes four times as long.
  EXPECT_NEAR(before[1] / after[1], 0.5 + 0.5 * 4.0, 0.02);
  // The product has 104 SMs, not 92, for what is core time of it.
  EXPECT_GT(after[0] / before[0], 1.05);
  EXPECT_LT(after[0] / before[0], 104.0 / 92.0);
  // What is added follows the core clock by the fitted share; what was captured by hardly anything.
  const double slower = 1410.0 / 705.0, share = CollectiveSharing{}.core_share;
  const auto low = BesideAProduct::rates(moved, "1593/705");
  EXPECT_NEAR(after[1] / low[1], (1.0 + 1.5 * (share * slower + 1.0 - share)) / 2.5, 0.03);
}

TEST(CommSms, MoreSmsNeverSaveWhatTheFileDoesNotSay) {
  const BesideAProduct both;
  auto collectives = collectives_of(both.graph, 1.0);
  collectives.front().shortened_frac = 0.0;
  const GraphModel moved = both.model.with_comm_sms(collectives, 32.0);
  const auto before = BesideAProduct::rates(both.model, "1593/1410"),
             after = BesideAProduct::rates(moved, "1593/1410");
  EXPECT_NEAR(after[1] / before[1], 1.0, 1e-3);
  EXPECT_LT(after[0], before[0]);
}

// Two GPUs, a transfer of 200 us that begins when both have come.
TEST(CommSms, TransfersFollowTheSlowestGpuInWhatIsAdded) {
  SmallGraph small(2);
  small.launch(0, "gemm", KernelClass::gemm, 1e-4);
  small.collective({0, 2}, 2e-4);
  const ExecutionGraph graph = std::move(small).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const GraphModel moved = model.with_comm_sms(collectives_of(graph, 0.25), 8.0);
  const ClockGrid grid(small_graph_spec(), {parse_clock_pair(small_graph_spec(), "1593/1410"),
                                            parse_clock_pair(small_graph_spec(), "1593/705")});
  const CollectiveSharing sharing;
  const auto transfer_s = [&](const GraphModel& of, ClockId clock) {
    const GraphRun run = GraphSimulator(of, grid).run(uniform_plan(graph, clock));
    for (std::size_t i = 0; i < graph.size(); ++i) {
      if (graph.activities()[i].kind == ActivityKind::transfer)
        return run.end_s[i] - run.start_s[i];
    }
    return 0.0;
  };
  for (const ClockId clock : {ClockId{0}, ClockId{1}}) {
    const double mhz = *grid[clock].core_mhz;
    const double at_clock = 1.0 - sharing.core_share + sharing.core_share * 1410.0 / mhz;
    EXPECT_NEAR(transfer_s(model, clock), 2e-4, 1e-15);
    // A quarter of it copies, on half the SMs twice as long, beside load longer still.
    EXPECT_NEAR(transfer_s(moved, clock),
                2e-4 * (1.0 + 0.25 * at_clock * (1.0 + sharing.load_slowdown)), 1e-12);
  }
  const GraphModel faster = model.with_comm_sms(collectives_of(graph, 0.25), 32.0);
  EXPECT_NEAR(transfer_s(faster, ClockId{1}),
              2e-4 * (1.0 - 0.25 * 0.5 * (1.0 - sharing.core_share)), 1e-12);
}

// A GPU that changes its clock under way changes what is left of the transfer.
RC_GTEST_PROP(CommSms, AgreeWithTheirRulesStepByStep, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 4));
  const GraphModel model =
      GraphModel(graph, small_graph_spec(), small_graph_spec().default_clock)
          .with_comm_sms(collectives_of(graph, 0.9), *rc::gen::element(1.0, 4.0, 12.0, 40.0));
  const GraphPlan plan = arbitrary_plan(graph, grid);
  SwitchModel switching;
  if (*rc::gen::arbitrary<bool>()) switching.core.stall_s = uniform(1e-6, 2e-4);
  const GraphRun run = GraphSimulator(model, grid).run(plan, {.switching = switching});
  SlowReplay slow(model, grid, plan, switching);
  if (!switching.is_free()) slow.hold_last_clocks();
  slow.run();
  if (!switching.is_free()) {
    SlowReplay again(model, grid, plan, switching);
    again.follow(slow);
    again.run();
    RC_ASSERT(std::abs(run.span_s - again.now_s) <= rounding * again.now_s);
    RC_ASSERT(std::abs(run.total_energy_j - again.energy_j) <= rounding * again.energy_j);
    return;
  }
  RC_ASSERT(std::abs(run.span_s - slow.now_s) <= rounding * slow.now_s);
  RC_ASSERT(std::abs(run.total_energy_j - slow.energy_j) <= rounding * slow.energy_j);
}

// The transfer goes on while one of its GPUs runs at the high clock, then at the low one.
TEST(CommSms, TransfersFollowAGpuThatChangesItsClockUnderWay) {
  SmallGraph small(2);
  small.launch(1, "first", KernelClass::gemm, 1e-4);
  small.collective({0, 2}, 1e-3);
  small.launch(1, "second", KernelClass::memset, 1e-5);
  const ExecutionGraph graph = std::move(small).build();
  const GraphModel moved = GraphModel(graph, small_graph_spec(), small_graph_spec().default_clock)
                               .with_comm_sms(collectives_of(graph, 1.0), 4.0);
  const ClockGrid grid(small_graph_spec(), {parse_clock_pair(small_graph_spec(), "1593/1410"),
                                            parse_clock_pair(small_graph_spec(), "1593/705")});
  GraphPlan plan = uniform_plan(graph, ClockId{0});
  std::size_t transfer = 0, second = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (activity.kind == ActivityKind::transfer) transfer = i;
    if (activity.kind == ActivityKind::launch &&
        graph.kernels()[index(activity.kernel)].name == "second")
      second = i;
  }
  plan.clock_of_activity[second] = ClockId{1};
  const GraphRun run = GraphSimulator(moved, grid).run(plan);
  const double high_s = moved.transfer_s(transfer, 1410.0),
               low_s = moved.transfer_s(transfer, 705.0);
  EXPECT_GT(low_s, 1.5 * high_s);
  const double until_s = run.start_s[second] - run.start_s[transfer];
  ASSERT_GT(until_s, 0.0);
  EXPECT_NEAR(run.end_s[transfer] - run.start_s[second], (1.0 - until_s / high_s) * low_s, 1e-12);
}

// Two collectives, the second of them alone on the GPU.
Capture two_collectives(std::optional<std::uint64_t> bytes) {
  MadeRun run(2);
  const KernelId product = run.kernel("gemm"),
                 beside = run.kernel("beside", KernelClass::communication),
                 alone = run.kernel("alone", KernelClass::communication);
  run.launch(0, product, 900'000);
  run.launch(1, beside, 400'000);
  run.sync_device();
  run.launch(1, alone, 400'000);
  run.sync_device();
  Capture capture = std::move(run).finish();
  capture.groups = {{"0", "default_pg", 4, {}}};
  capture.collectives = {{.kind = CollectiveKind::all_reduce, .group = 0, .in_bytes = bytes}};
  for (CapturedLaunch& launch : capture.launches) {
    if (launch.kernel != product) launch.collective = 0;
  }
  capture.kernels[index(beside)].launch = LaunchShape{.grid = {12, 1, 1}, .block = {512, 1, 1}};
  return capture;
}

std::vector<OverlappingCollective> overlapping_in(const Capture& capture) {
  return overlapping_collectives(capture_graph(capture), {&capture, 1}, 108.0);
}

TEST(OverlappingCollectives, AreThoseBesideCompute) {
  constexpr std::uint64_t bytes = 8'000'000;
  const auto found = overlapping_in(two_collectives(bytes));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].captured_sms, 12.0);
  // A ring of four sends one and a half times the message.
  const double copying_s =
      1.5 * bytes / (12.0 * 6.85e9 * std::pow(0.5, CollectiveSharing{}.threads_exponent));
  EXPECT_NEAR(found[0].drawn_out_frac, copying_s / 400e-6, 1e-12);
  EXPECT_EQ(found[0].shortened_frac, found[0].drawn_out_frac);
  EXPECT_NEAR(found[0].added_frac(3.0), 3.0 * found[0].drawn_out_frac, 1e-12);
  EXPECT_NEAR(found[0].added_frac(24.0), -0.5 * found[0].drawn_out_frac, 1e-12);
  EXPECT_EQ(found[0].added_frac(12.0), 0.0);
}

TEST(OverlappingCollectives, AreTakenAtTheirWorstWhereNothingIsKnown) {
  const auto found = overlapping_in(two_collectives({}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].drawn_out_frac, 1.0);
  EXPECT_EQ(found[0].shortened_frac, 0.0);
  EXPECT_EQ(found[0].added_frac(6.0), 1.0);
  EXPECT_EQ(found[0].added_frac(24.0), 0.0);
  // More than the SMs of this GPU could copy: then all of its time is copying.
  const auto fast = overlapping_in(two_collectives(1'000'000'000));
  EXPECT_EQ(fast[0].drawn_out_frac, 1.0);
}

// The first rank waits 900 us for the second, and then both copy for half of 100 us.
TEST(OverlappingCollectives, WaitingForTheLastRankIsNoTransfer) {
  constexpr double transfer_ns = 100e3;
  const double copied_gbs = 12.0 * 6.85 * std::pow(0.5, CollectiveSharing{}.threads_exponent);
  std::vector<Capture> ranks;
  for (const std::uint32_t rank : {0U, 1U}) {
    MadeRun run(2);
    const KernelId product = run.kernel("gemm"),
                   reduce = run.kernel("reduce", KernelClass::communication);
    run.launch(0, product, 2'000'000);
    if (rank == 1) run.spend(900'000);
    run.launch(1, reduce, rank == 0 ? 1'000'000 : 100'000);
    run.sync_device();
    Capture& capture = ranks.emplace_back(std::move(run).finish());
    capture.rank = rank;
    capture.groups = {{"0", "default_pg", 2, {}}};
    capture.collectives = {
        {.kind = CollectiveKind::all_reduce,
         .group = 0,
         .in_bytes = static_cast<std::uint64_t>(0.5 * transfer_ns * copied_gbs)}};
    for (CapturedLaunch& launch : capture.launches) {
      if (launch.kernel == reduce) launch.collective = 0;
    }
    capture.kernels[index(reduce)].launch = LaunchShape{.grid = {12, 1, 1}, .block = {512, 1, 1}};
  }
  const CaptureGraph run = capture_graph(ranks);
  ASSERT_EQ(run.ranks.collectives.size(), 1U);
  EXPECT_NEAR(static_cast<double>(run.ranks.collectives.front().transfer_ns()), transfer_ns, 1e3);
  const auto found = overlapping_collectives(run, ranks, 108.0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].drawn_out_frac, 0.5, 0.01);
  EXPECT_EQ(found[0].shortened_frac, found[0].drawn_out_frac);
  // Half the SMs: 50 us more.
  EXPECT_NEAR(found[0].added_frac(6.0) * transfer_ns, 50e3, 1e3);
}

TEST(OverlappingCollectives, AreTriedOnPowersOfTwo) {
  const std::vector<OverlappingCollective> twelve{{KernelId{0}, 12.0}, {KernelId{1}, 2.0}};
  EXPECT_EQ(usual_comm_sms(twelve, 108.0), (std::vector<double>{1, 2, 4, 8, 16}));
  EXPECT_EQ(usual_comm_sms(twelve, 16.0), (std::vector<double>{1, 2, 4, 8}));
}

}  // namespace
}  // namespace rubato
