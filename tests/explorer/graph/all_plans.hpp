#pragma once
// Every plan of a small graph, replayed: what bounds and searches are held to.

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "explorer/graph/questions.hpp"
#include "tests/small_graph.hpp"

namespace rubato {

// Fewer clocks for more launches: at most 4096 plans.
inline std::size_t clocks_for(std::size_t launches) {
  return launches <= 4 ? 4 : launches <= 6 ? 3 : 2;
}

inline std::size_t clocked_launches(const GraphModel& model) {
  std::size_t count = 0;
  for (const double work : model.work()) count += work > 0.0;
  return count;
}

// Which launches share a clock, by the words of Granularity.
inline std::vector<std::uint32_t> units_by_definition(const GraphModel& model, Granularity grain,
                                                      std::uint32_t& count) {
  const ExecutionGraph& graph = model.graph();
  std::map<std::string, std::uint32_t> known;
  std::vector<std::uint32_t> unit(graph.size(), 0);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (model.work()[i] <= 0.0) continue;
    const Activity& activity = graph.activities()[i];
    std::string key;
    if (grain != Granularity::run) key += fmt::format("gpu {} ", index(*graph.gpu_of(activity)));
    if (grain > Granularity::gpu) key += fmt::format("pass {} ", static_cast<int>(activity.pass));
    if (grain > Granularity::pass) key += fmt::format("kernel {} ", index(activity.kernel));
    if (grain > Granularity::kernel) key += fmt::format("launch {}", i);
    unit[i] = known.emplace(key, static_cast<std::uint32_t>(known.size())).first->second;
  }
  count = static_cast<std::uint32_t>(known.size());
  return unit;
}

// Every plan of a grain, replayed.
struct AllPlans {
  struct One {
    double span_s, energy_j;
  };
  std::vector<One> plans;

  AllPlans(const GraphModel& model, const ClockGrid& grid, Granularity grain) {
    std::uint32_t count = 0;
    const auto unit = units_by_definition(model, grain, count);
    GraphSimulator simulator(model, grid);
    std::vector<std::size_t> clock(count, 0);
    while (true) {
      GraphPlan plan = uniform_plan(model.graph(), grid.default_clock());
      for (std::size_t i = 0; i < unit.size(); ++i) {
        if (model.work()[i] > 0.0) plan.clock_of_activity[i] = id_at<ClockId>(clock[unit[i]]);
      }
      const GraphRun run = simulator.run(plan);
      plans.push_back({run.span_s, run.total_energy_j});
      std::size_t u = 0;
      while (u < count && ++clock[u] == grid.size()) clock[u++] = 0;
      if (u == count) return;
    }
  }

  [[nodiscard]] double least_j(double deadline_s) const {
    double least = std::numeric_limits<double>::infinity();
    for (const One& one : plans) {
      if (one.span_s <= deadline_s) least = std::min(least, one.energy_j);
    }
    return least;
  }
};

}  // namespace rubato
