#include "sim/graph/replay_state.hpp"

namespace rubato {

std::vector<HeldClock> asked_clocks(const ExecutionGraph& graph,
                                    std::span<const std::uint32_t> main,
                                    std::span<const double> work, const GraphPlan& plan,
                                    RunEnd end) {
  std::vector<HeldClock> clocks(graph.gpus().size());
  for (std::size_t g = 0; g < plan.timed.size(); ++g)
    clocks[g].clock = (end == RunEnd::first ? plan.timed[g].front() : plan.timed[g].back()).clock;
  if (!plan.timed.empty()) return clocks;
  std::vector<int> known(clocks.size(), 0);  // a clock from: 1 any stream, 2 the main one
  const bool only_main = end == RunEnd::last || plan.only_main_streams_ask;
  const int best = only_main ? 2 : 1;
  // From that end of the run on, until no GPU's clock can still change.
  std::size_t open = clocks.size();
  for (std::size_t k = 0; k < graph.size() && open > 0; ++k) {
    const std::size_t i = end == RunEnd::first ? k : graph.size() - 1 - k;
    const Activity& activity = graph.activities()[i];
    const auto gpu = graph.gpu_of(activity);
    if (!gpu || (!work.empty() && work[i] <= 0.0)) continue;
    const std::size_t g = index(*gpu);
    const int rank = only_main && activity.stream == main[g] ? 2 : 1;
    if (known[g] >= rank) continue;
    known[g] = rank;
    clocks[g].clock = plan.clock_of_activity[i];
    if (rank == best) --open;
  }
  return clocks;
}

}  // namespace rubato
