#include "sim/graph/replay_state.hpp"

namespace rubato {

std::vector<HeldClock> asked_clocks(const GraphModel& model, const GraphPlan& plan, RunEnd end) {
  const ExecutionGraph& graph = model.graph();
  const std::vector<std::uint32_t> main = main_streams(graph);
  std::vector<HeldClock> clocks(graph.gpus().size());
  for (std::size_t g = 0; g < plan.timed.size(); ++g)
    clocks[g].clock = (end == RunEnd::first ? plan.timed[g].front() : plan.timed[g].back()).clock;
  if (!plan.timed.empty()) return clocks;
  std::vector<int> known(clocks.size(), 0);  // 1: of some stream, 2: of the main one
  const bool only_main = end == RunEnd::last || plan.only_main_streams_ask;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    const auto gpu = graph.gpu_of(activity);
    if (!gpu || model.work()[i] <= 0.0) continue;
    const std::size_t g = index(*gpu);
    const int rank = only_main && activity.stream == main[g] ? 2 : 1;
    if (known[g] > rank || (known[g] == rank && end == RunEnd::first)) continue;
    known[g] = rank;
    clocks[g].clock = plan.clock_of_activity[i];
  }
  return clocks;
}

}  // namespace rubato
