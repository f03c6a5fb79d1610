#include "explorer/graph/contention/paid_graph.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "explorer/graph/planner.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// Layers of launches on one stream, and after each an all-reduce on another beside the next one.
ExecutionGraph reduced_beside_compute() {
  constexpr int layers = 12, launches = 20;
  constexpr double launch_s = 1e-4;
  SmallGraph graph(1);
  for (int layer = 0; layer < layers; ++layer) {
    DraftId last{};
    for (int i = 0; i < launches; ++i)
      last = graph.launch(0, fmt::format("gemm {}", i % 3), KernelClass::gemm,
                          launch_s * (1.0 + 0.5 * (i % 3)));
    if (layer + 1 < layers) graph.collective({1}, 0.6 * launches * launch_s, {{last}});
  }
  return std::move(graph).build();
}

ClockGrid some_clocks() {
  const GpuSpec& spec = small_graph_spec();
  std::vector<ClockPair> pairs{spec.default_clock};
  for (const double mhz : {1290.0, 1170.0, 1050.0, 930.0})
    pairs.push_back({.mem = spec.default_clock.mem, .core_mhz = mhz});
  return {spec, std::move(pairs)};
}

// What runs beside a collective is slower, and worth another clock: plans that take launches to be
// as slow as at the default clocks are 0.37 to 0.81 % dearer than the bound here.
TEST(PaidGraph, PlansKnowWhatRunsBesideWhat) {
  const ExecutionGraph graph = reduced_beside_compute();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  GraphPlanner planner(model, some_clocks());
  std::vector<GraphQuestion> questions;
  for (const double slack : {0.01, 0.02, 0.05, 0.1})
    questions.push_back({Granularity::launch, slack});
  for (const GraphPlanResult& result : planner.plan(questions)) {
    ASSERT_TRUE(result.found());
    EXPECT_LT(result.gap_frac, 0.0025) << result.question.slack_frac;
  }
}

// Alone: the least sum of energy and priced time, launch by launch.
TEST(PaidGraph, WithoutCompanyClocksAreThoseOfLaunchesAlone) {
  SmallGraph made(1);
  for (int i = 0; i < 6; ++i)
    made.launch(0, fmt::format("gemm {}", i), KernelClass::gemm, 1e-4 * (i + 1.0));
  const ExecutionGraph graph = std::move(made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = some_clocks();
  const LaunchCosts costs(model, grid);
  PairCosts pairs(costs, grid);
  const std::vector<double> nothing(graph.size(), 0.0);
  PaidGraph paid(costs, pairs, gpu_lanes(costs), nothing, nothing);
  const GraphRun run = GraphSimulator(model, grid).run(uniform_plan(graph, ClockId{0}));
  std::vector<std::uint32_t> own(graph.size());
  for (std::uint32_t i = 0; i < own.size(); ++i) own[i] = i;
  const LaunchUnits units(costs, static_cast<std::uint32_t>(own.size()), own);
  std::size_t slowed = 0;
  for (const double price_w : {0.0, 100.0, 300.0, 1000.0}) {
    ArcFlow flow = arc_flow(graph, std::vector<double>(graph.arcs(), 0.0));
    raise_latest_path(graph, run.end_s, price_w, flow);
    paid.pay(flow);
    const std::vector<ClockId> clocks = paid.cheapest_clocks({run.start_s, run.end_s}, units);
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      if (!costs.is_clocked(i)) continue;
      const auto at = [&](ClockId clock) {
        return costs.cost_j(i, clock) + flow.node_w[i] * costs.time_s(i, clock);
      };
      slowed += clocks[i] != ClockId{0};
      for (std::size_t c = 0; c < grid.size(); ++c)
        EXPECT_LE(at(clocks[i]), at(id_at<ClockId>(c)) * (1.0 + rounding)) << i << " " << price_w;
    }
  }
  EXPECT_GT(slowed, 0U);
}

}  // namespace
}  // namespace rubato
