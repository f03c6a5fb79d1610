// Which passes keep a step late.

#include "explorer/graph/late_passes.hpp"

#include <map>

#include <gtest/gtest.h>

#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// Rank 0 runs a, b and c, all of them critical, beside a collective that it posted ahead. Rank 1
// joins that after d, which is slow; its e comes later and keeps nobody waiting.
TEST(LatePasses, AreThoseOfTheCriticalPathThenThoseThatKeepMessagesBesideItWaiting) {
  SmallGraph made(2);
  made.launch(0, "a", KernelClass::gemm, 5e-4);
  made.launch(0, "b", KernelClass::gemm, 5e-4);
  made.launch(0, "c", KernelClass::gemm, 5e-4);
  const DraftId d = made.launch(2, "d", KernelClass::gemm, 2e-4);
  made.collective({1, 3}, {{}, {{d}}}, 1e-5);
  made.launch(2, "e", KernelClass::gemm, 1e-5, {{d, 1e-4}});
  const ExecutionGraph graph = std::move(made).build();
  const ClockGrid grid = two_clocks();
  const GraphModel model(graph, small_graph_spec(), grid[ClockId{0}]);
  GraphSimulator simulator(model, grid);
  const std::map<std::string, std::uint32_t> pass_of_name{
      {"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}, {"e", 4}};
  std::vector<std::optional<std::uint32_t>> pass_of_activity(graph.size());
  GraphPlan plan = uniform_plan(graph, ClockId{0});
  const GraphRun baseline = simulator.run(plan);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (activity.kind != ActivityKind::launch) continue;
    const std::string& name = graph.kernels()[index(activity.kernel)].name;
    pass_of_activity[i] = pass_of_name.at(name);
    if (name == "d") plan.clock_of_activity[i] = ClockId{1};
  }
  const LatePasses late(graph, baseline, pass_of_activity);
  using Sets = std::vector<std::set<std::uint32_t>>;
  EXPECT_EQ(late.of(simulator.run(plan)), (Sets{{0, 1, 2}, {3}}));
  EXPECT_EQ(late.of(baseline), (Sets{{0, 1, 2}}));  // it waits as long as ever
}

}  // namespace
}  // namespace rubato
