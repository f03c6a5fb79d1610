// Energy at the default clocks, of captured runs.

#include <utility>

#include <gtest/gtest.h>

#include "explorer/graph/plan_interval.hpp"
#include "models/gpu/spec.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// Low and high end.
std::pair<double, double> default_energy_j(const ExecutionGraph& graph, const GpuSpec& spec) {
  const ClockGrid grid(spec, {spec.default_clock});
  const GraphModel model(graph, spec, spec.default_clock);
  const GraphRun usual = GraphSimulator(model, grid).run(uniform_plan(graph, grid.default_clock()));
  const auto ends_j = GraphPlanIntervals(model, model, grid, usual).default_energy_j();
  EXPECT_LE(ends_j.first, usual.total_energy_j);
  EXPECT_GE(ends_j.second, usual.total_energy_j);
  return ends_j;
}

// Captured times say nothing of absolute power; measured kernels do.
TEST(DefaultEnergy, IsAnIntervalWhereNoPowerIsKnown) {
  const ExecutionGraph graph = one_launch(0.01);
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const auto [low_j, high_j] = default_energy_j(graph, spec);
  EXPECT_GT(high_j / low_j, 1.5);
  // Passes of large models run at the power limit, and nothing runs above it.
  EXPECT_NEAR(high_j, 0.01 * spec.power_limit.limit_w, 0.0125 * high_j);
  spec.ensemble.clear();
  for (const Kernel& kernel : graph.kernels()) {
    CalibratedKernel& fitted = spec.kernels.emplace_back();
    fitted.name = kernel.name;
    fitted.coefficients = {.core_cycles = 1e7, .dram_bytes = 1.2e10, .core_j = 1.0};
  }
  const auto [least_j, most_j] = default_energy_j(graph, spec);
  EXPECT_NEAR(most_j / least_j, 1.0, 1e-9);
}

}  // namespace
}  // namespace rubato
