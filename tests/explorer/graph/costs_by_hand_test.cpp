// Bounds and prices of a few launches, each worked out apart.

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/graph/sequences/gpu_sequence.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// A slow launch, then a quick one whose time is dear: the change between them stalls the GPU at the
// idle power of the clock that it leads to. By the definition, over all clocks of both.
TEST(GpuSequence, AStallCostsIdlePowerBeyondTheLeast) {
  SmallGraph made(1);
  made.launch(0, "a", KernelClass::gemm, 1e-3);
  made.launch(0, "b", KernelClass::gemm, 1e-3);
  const ExecutionGraph graph = std::move(made).build();
  const ClockGrid grid = two_clocks();
  const GraphModel model(graph, small_graph_spec(), grid[ClockId{0}]);
  const LaunchCosts costs(model, grid);
  const std::vector<LeadingLaunches> leading = leading_launches(costs, no_repeats(graph));
  ASSERT_EQ(leading[0].launches.size(), 2U);
  const std::uint32_t first = leading[0].launches[0], second = leading[0].launches[1];
  const GpuSequence sequence(costs, grid, leading[0], std::vector<double>(4, 1.0));
  std::vector<double> flow_w(graph.size(), 0.0);
  flow_w[second] = 1e4;
  SwitchModel switching;
  switching.core.stall_s = 1e-4;
  double least_j = std::numeric_limits<double>::infinity(), of_stall_j = 0.0;
  for (const ClockId a : {ClockId{0}, ClockId{1}}) {
    for (const ClockId b : {ClockId{0}, ClockId{1}}) {
      const double stall_j =
          a == b ? 0.0 : 1e-4 * (model.idle_power_w(grid[b]) - costs.least_idle_w());
      const double value = costs.cost_j(first, a) + costs.cost_j(second, b) +
                           flow_w[second] * costs.time_s(second, b) + stall_j;
      if (value >= least_j) continue;
      least_j = value;
      of_stall_j = stall_j;
    }
  }
  ASSERT_GT(of_stall_j, 1e-4 * least_j);
  EXPECT_NEAR(sequence.relaxed(flow_w, switching).value, least_j, 1e-9 * least_j);
}

}  // namespace
}  // namespace rubato
