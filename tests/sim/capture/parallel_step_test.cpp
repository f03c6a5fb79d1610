#include "sim/capture/parallel_step.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/gpu/clock_grid.hpp"
#include "sim/graph/simulator.hpp"
#include "tests/expect_error.hpp"
#include "tests/sim/capture/parallel_input.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {
namespace {

// Eight ranks of data parallelism.
ParallelStepInput input_with(double bus_gbs, Sharding sharding) {
  ParallelStepInput input = parallel_input(bus_gbs);
  input.sharding = sharding;
  input.shape.data_parallel = 8;
  return input;
}

double message_bytes(const ParallelStep& step, CollectiveKind kind) {
  double sum = 0.0;
  for (const CapturedLaunch& launch : step.stages.front().launches) {
    const auto& collective = step.stages.front().kernels[index(launch.kernel)].collective;
    if (collective && collective->kind == kind) sum += collective->message_bytes;
  }
  return sum;
}

// Kernels of the streams, in the order they run there.
std::vector<std::string> on_stream(const ParallelStep& step, std::uint32_t stream) {
  std::vector<std::string> names;
  for (const CapturedLaunch& launch : step.stages.front().launches)
    if (launch.stream == stream)
      names.push_back(step.stages.front().kernels[index(launch.kernel)].name);
  return names;
}

TEST(ParallelStep, SendsWhatTheFrameworksDo) {
  const ParallelStepInput ddp = input_with(usual, Sharding::none);
  const double bytes = 2.0 * parameters_per_rank(ddp.shape);
  const ParallelStep replicated = parallel_step(ddp);
  EXPECT_NEAR(message_bytes(replicated, CollectiveKind::all_reduce) / bytes, 1.0, 1e-12);
  EXPECT_NEAR(replicated.times.comm_bytes() / bytes, 1.0, 1e-12);

  const ParallelStep zero1 = parallel_step(input_with(usual, Sharding::optimizer));
  EXPECT_NEAR(message_bytes(zero1, CollectiveKind::reduce_scatter) / bytes, 1.0, 1e-12);
  EXPECT_NEAR(message_bytes(zero1, CollectiveKind::all_gather) / bytes, 1.0, 1e-12);

  // Fully sharded: three times the parameters of the layers; the rest is gathered once.
  const ParallelStep zero3 = parallel_step(input_with(usual, Sharding::parameters));
  const double hidden = 768.0;
  const double layers = 2.0 * 12.0 * (12.0 * hidden * hidden + 13.0 * hidden);
  EXPECT_NEAR(zero3.times.comm_bytes() / (3.0 * layers + 2.0 * (bytes - layers)), 1.0, 1e-12);
  EXPECT_NEAR(message_bytes(zero3, CollectiveKind::reduce_scatter) / bytes, 1.0, 1e-12);
}

// Links that cost nothing leave the copies in memory. Of those a rank waits for the last bucket
// alone, which is full when the backward pass ends.
TEST(ParallelStep, ExposesTheLastBucketWhereLinksAreFree) {
  const ParallelStep step = parallel_step(input_with(fast, Sharding::none));
  const auto last =
      std::ranges::find(step.stages.front().launches.rbegin(), step.stages.front().launches.rend(),
                        1U, &CapturedLaunch::stream);
  constexpr double host_call_s = 5e-6;
  EXPECT_NEAR(step.times.exposed_s(), static_cast<double>(last->duration_ns) * s_per_ns,
              3.0 * host_call_s);
  EXPECT_LT(step.times.exposed_s(), 0.7 * step.times.comm_s());
}

// All buckets follow the first one without a gap: the step ends one communication after it is full.
TEST(ParallelStep, CommunicationDecidesWhereItIsSlow) {
  const ParallelStep step = parallel_step(input_with(slow, Sharding::none));
  const auto first = std::ranges::find(step.stages.front().launches, 1U, &CapturedLaunch::stream);
  EXPECT_NEAR(
      (static_cast<double>(first->start_ns) * s_per_ns + step.times.comm_s()) / step.times.step_s,
      1.0, 1e-6);
  EXPECT_GT(step.times.exposed_s(), 0.9 * step.times.comm_s());
}

// Between the two bounds: communication less what compute can hide, and all of it.
TEST(ParallelStep, ExposesAtLeastWhatComputeCannotHide) {
  for (const double bus_gbs : {0.5, 5.0, usual}) {
    for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::parameters}) {
      const ParallelStepTimes t = parallel_step(input_with(bus_gbs, sharding)).times;
      EXPECT_GE(t.exposed_s(), t.comm_s() - t.compute_s() - 1e-6);
      EXPECT_LE(t.exposed_s(), t.comm_s() + 0.01 * t.step_s);
    }
  }
}

TEST(ParallelStep, BucketsStartAsTheyFillAndTheOptimizerWaitsForThem) {
  ParallelStepInput input = input_with(5.0, Sharding::none);
  input.shape.optimizer = true;
  const ParallelStep step = parallel_step(input);
  std::int64_t reduced_ns = 0, first_ns = 0, update_ns = 0, backward_ns = 0;
  for (const CapturedLaunch& launch : step.stages.front().launches) {
    const Kernel& kernel = step.stages.front().kernels[index(launch.kernel)];
    if (launch.stream == 1 && first_ns == 0) first_ns = launch.start_ns;
    if (launch.stream == 1) reduced_ns = launch.end_ns();
    if (kernel.label == "grad norm") update_ns = launch.start_ns;
    if (kernel.name == "45_wte_bwd") backward_ns = launch.end_ns();
  }
  EXPECT_LT(first_ns, backward_ns / 2);
  EXPECT_GT(reduced_ns, backward_ns);
  EXPECT_GE(update_ns, reduced_ns);
}

TEST(ParallelStep, GathersEachLayerOneAhead) {
  const ParallelStep step = parallel_step(input_with(usual, Sharding::parameters));
  const std::vector<std::string> sent = on_stream(step, 1);
  EXPECT_EQ(std::ranges::count(sent, "f1_all_gather_layer"), 24);
  EXPECT_EQ(std::ranges::count(sent, "f2_reduce_scatter_layer"), 12);
  EXPECT_EQ(sent.front(), "f0_all_gather_root");
  EXPECT_EQ(sent.back(), "f3_reduce_scatter_root");
  // The second layer's parameters are sent while the first one runs, and it waits for them.
  std::vector<const CapturedLaunch*> gathers, layers;
  for (const CapturedLaunch& launch : step.stages.front().launches) {
    const std::string& name = step.stages.front().kernels[index(launch.kernel)].name;
    if (name == "f1_all_gather_layer") gathers.push_back(&launch);
    if (name == "02_gemm_qkv") layers.push_back(&launch);
  }
  for (std::size_t l = 0; l < 12; ++l) EXPECT_GE(layers[l]->start_ns, gathers[l]->end_ns()) << l;
  EXPECT_LT(gathers[2]->start_ns, layers[2]->start_ns);
  EXPECT_GE(gathers[2]->start_ns, layers[1]->start_ns - 1'000'000);
}

TEST(ParallelStep, ShardsTheOptimizersWork) {
  ParallelStepInput whole = input_with(usual, Sharding::none);
  whole.shape.optimizer = true;
  ParallelStepInput part = input_with(usual, Sharding::optimizer);
  part.shape.optimizer = true;
  const auto bytes = [](const ParallelStepInput& input) {
    const ParallelStep step = parallel_step(input);
    for (const CapturedLaunch& launch : step.stages.front().launches) {
      const Kernel& kernel = step.stages.front().kernels[index(launch.kernel)];
      if (kernel.name.starts_with("x6_adamw")) return *kernel.dram_bytes;
    }
    return 0.0;
  };
  EXPECT_GT(bytes(whole), 0.0);
  EXPECT_NEAR(bytes(part) * 8.0 / bytes(whole), 1.0, 1e-12);
}

// As an execution graph it is what it was made as: nothing inferred, and the same span.
TEST(ParallelStep, IsReadAsTheGraphItWasMadeAs) {
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::parameters}) {
    const ParallelStepInput input = input_with(5.0, sharding);
    const ParallelStep step = parallel_step(input);
    const CaptureGraph made = capture_graph(step.stages.front());
    const ArcCounts arcs = made.graph.count_arcs();
    for (const std::uint64_t inferred : arcs.inferred) EXPECT_EQ(inferred, 0U);
    EXPECT_GT(arcs.read[static_cast<std::size_t>(ArcKind::event)], 5U);
    // The graph begins with the first launch.
    const double first_s =
        static_cast<double>(step.stages.front().launches.front().start_ns) * s_per_ns;
    const double span_s = step.times.step_s - first_s;
    EXPECT_NEAR(made.graph.captured_span_s() / span_s, 1.0, 1e-9);
    std::vector<double> durations, starts(made.graph.size());
    for (const Activity& activity : made.graph.activities())
      durations.push_back(activity.duration_s);
    EXPECT_NEAR(earliest_starts(made.graph, durations, starts) / span_s, 1.0, 1e-9);
    // With every message twice as long, a step that communication decides takes longer.
    for (std::size_t i = 0; i < durations.size(); ++i) {
      const Activity& activity = made.graph.activities()[i];
      if (activity.kind == ActivityKind::launch &&
          made.graph.kernels()[index(activity.kernel)].collective)
        durations[i] *= 2.0;
    }
    EXPECT_GT(earliest_starts(made.graph, durations, starts), 1.2 * step.times.step_s);
  }
}

TEST(ParallelStep, RefusesWhatCannotBe) {
  ParallelStepInput input = input_with(usual, Sharding::none);
  input.shape.data_parallel = 5'000'000'000;
  expect_error<UsageError>([&] { return parallel_step(input); }, "dp is 5000000000;");
  input.shape.data_parallel = 65;
  expect_error<UsageError>([&] { return parallel_step(input); },
                           "tp 1 x cp 1 x dp 65 x pp 1 needs 65 GPUs; made-up has 64");
  input.shape.data_parallel = 8;
  input.shape.tensor_parallel = 5;
  expect_error<UsageError>([&] { return parallel_step(input); }, "tp 5 does not divide heads 12");
}

}  // namespace
}  // namespace rubato
