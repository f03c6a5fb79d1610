// Random execution graphs with the bounds found on them, as JSON, one graph a line: what
// tests/explorer/graph/graph_oracle.py gives to another solver.
// Usage: graph_lp_data FILE; how many and which: RC_PARAMS

#include <cstdlib>
#include <fstream>

#include <rapidcheck.h>
#include <nlohmann/json.hpp>

#include "explorer/graph/planner.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// Costs of every launch at its clocks, what waits for what, and the bound of launches alone at some
// deadlines.
nlohmann::json lp_data(const ExecutionGraph& graph, const ClockGrid& grid) {
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const LaunchCosts costs = LaunchCosts::for_bounds(model, grid);
  GraphPlanner planner(model, grid);
  nlohmann::json data{{"idle_w", costs.least_idle_w()}};
  const PipelineWork work = launch_work(costs);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    auto options = nlohmann::json::array();
    for (const ClockOption& option : work.type_of(id_at<PassId>(i)).options)
      options.push_back({option.time_s, option.energy_j});
    data["options"].push_back(std::move(options));
  }
  data["arcs"] = nlohmann::json::array();
  for (const Dependency& arc : work.schedule.dependencies)
    data["arcs"].push_back({index(arc.from), index(arc.to), arc.lag_s});
  std::vector<GraphQuestion> questions;
  for (const double slack : {0.0, 0.02, 0.2, 1.0})
    questions.push_back({Granularity::launch, slack});
  for (const GraphPlanResult& result : planner.plan(questions)) {
    data["bounds"].push_back({{"deadline_s", result.deadline_s},
                              {"bound_j", planner.bound_of_launches_j(result.deadline_s)}});
  }
  return data;
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  if (argc != 2) return EXIT_FAILURE;
  std::ofstream file(argv[1]);
  const bool good = rc::check("graphs", [&] {
    const rubato::ExecutionGraph graph = rubato::arbitrary_graph({.most_launches = 24});
    const auto clocks = *rc::gen::inRange<std::size_t>(2, 9);
    file << rubato::lp_data(graph, rubato::arbitrary_clocks(clocks)).dump() << '\n';
  });
  return good && file ? EXIT_SUCCESS : EXIT_FAILURE;
}
