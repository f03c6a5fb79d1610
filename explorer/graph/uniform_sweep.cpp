#include "explorer/graph/uniform_sweep.hpp"

#include <algorithm>
#include <optional>

#include <tbb/parallel_for.h>

#include "sim/graph/simulators.hpp"

namespace rubato {

std::vector<UniformRun> sweep_uniform(const GraphModel& model, const ClockGrid& grid,
                                      const RunContext& context) {
  std::vector<std::optional<UniformRun>> found(grid.size());
  GraphSimulators simulators(model, grid);
  tbb::parallel_for(std::size_t{0}, grid.size(), [&](std::size_t c) {
    const auto clock = id_at<ClockId>(c);
    if (context.stop_requested() && clock != grid.default_clock()) return;
    const GraphRun run = simulators.run(uniform_plan(model.graph(), clock));
    found[c] = {clock, run.span_s, run.total_energy_j};
  });
  std::vector<UniformRun> runs;
  for (const auto& one : found) {
    if (one) runs.push_back(*one);
  }
  return runs;
}

double slowest_s(const std::vector<UniformRun>& runs) {
  return std::ranges::max_element(runs, {}, &UniformRun::span_s)->span_s;
}

}  // namespace rubato
