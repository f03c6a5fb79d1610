#include <algorithm>
#include <iterator>
#include <optional>

#include "explorer/report/page.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/results/unit_choice.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// Enough points for a line on a screen; a front of many kernels has hundreds.
constexpr std::size_t max_front_points = 32;
constexpr int max_heat_map_settings = 40;

Json units_json(const ResultStore& store, const std::string& id) {
  return rows_as_table(store.query(
      "SELECT scenario, coalesce(run_id, 'graph:' || graph_run_id) AS run_id, "
      "coalesce(plan_id, 'graph:' || graph_plan_id) AS plan_id, gpu, trace_name, captured_clock, "
      "model, batch, sequence, tensor_parallel, "
      "data_parallel, pipeline_parallel, microbatches, schedule, power_limit_w, host_power_w, "
      "clock_grid, "
      "switch_stall_us, switch_energy_j, switch_latency_us, switch_dwell_us, seed, "
      "granularity, "
      "aggregation, goal, slack_pct, tolerance_pct, program_version, status, time_s, energy_j, "
      "in_time, is_answer, "
      "time_change_pct, energy_change_pct, energy_change_low_pct, energy_change_high_pct, "
      "clock_switches, gap_pct, notes, "
      "gpu_calibrated, "
      "measured_pct, anchored_pct, scaled_pct, derived_pct, guessed_pct, guessed_split_pct "
      "FROM v_experiment_units u WHERE experiment_id = ? "
      "ORDER BY u.run_id, graph_run_id, u.plan_id, graph_plan_id, scenario",
      {id}));
}

// Every run's fronts as [run, granularity, [time %, energy %, ...]], evenly thinned, both ends
// kept. Captured runs have the front of their single clocks, as granularity iteration.
Json fronts_json(const ResultStore& store, const std::string& id) {
  QueryResult points = store.query(
      "SELECT f.run_id, f.granularity, f.time_change_pct, f.energy_change_pct FROM "
      "(SELECT DISTINCT u.run_id FROM experiment_units e JOIN units u USING (unit_id) WHERE "
      "e.experiment_id = ?) r JOIN v_front f ON f.kind = 'trace' AND f.run_id = r.run_id WHERE "
      "f.time_change_pct <= 100 "
      "ORDER BY f.run_id, f.granularity, f.point_id",
      {id});
  std::ranges::move(
      store
          .query("SELECT 'graph:' || r.graph_run_id, 'iteration', 100.0 * (c.time_s / r.default_s "
                 "- 1), 100.0 * (c.energy_j / r.default_j - 1) FROM "
                 "(SELECT DISTINCT u.graph_run_id FROM experiment_units e JOIN units u USING "
                 "(unit_id) WHERE e.experiment_id = ?) s JOIN graph_runs r USING (graph_run_id) "
                 "JOIN graph_clocks c USING (graph_run_id) WHERE c.time_s <= 2 * r.default_s AND "
                 "NOT EXISTS (SELECT 1 FROM graph_clocks d WHERE d.graph_run_id = c.graph_run_id "
                 "AND d.time_s <= c.time_s AND d.energy_j < c.energy_j) "
                 "ORDER BY r.graph_run_id, c.time_s",
                 {id})
          .rows,
      std::back_inserter(points.rows));
  Json fronts = Json::array();
  for (std::size_t first = 0; first < points.rows.size();) {
    std::size_t last = first;
    while (last < points.rows.size() && points.rows[last][0] == points.rows[first][0] &&
           points.rows[last][1] == points.rows[first][1])
      ++last;
    const std::size_t count = last - first, kept = std::min(count, max_front_points);
    Json line = Json::array();
    for (std::size_t i = 0; i < kept; ++i) {
      const auto& row = points.rows[first + (kept > 1 ? i * (count - 1) / (kept - 1) : 0)];
      line.push_back(value_as<double>(row[2]));
      line.push_back(value_as<double>(row[3]));
    }
    const SqlValue& run = points.rows[first][0];
    const auto* captured = std::get_if<std::string>(&run);
    fronts.push_back({captured != nullptr ? Json(*captured) : Json(value_as<std::int64_t>(run)),
                      value_as<std::string>(points.rows[first][1]), std::move(line)});
    first = last;
  }
  return fronts;
}

// Kernels under the answer of the settings that save most, or where none is under the plan that
// saves most.
Json kernels_json(const ResultStore& store, const std::string& id) {
  return rows_as_table(store.query(
      "SELECT k.run_id, k.plan_id, k.name, k.class, k.pass, k.energy_change_pct, "
      "k.time_change_pct, "
      "100.0 * k.default_energy_j / b.energy_j AS share_pct FROM "
      "(SELECT run_id, plan_id FROM (SELECT run_id, plan_id, energy_change_pct, row_number() OVER "
      "(PARTITION BY run_id ORDER BY is_answer DESC, energy_j, plan_id) AS rank FROM "
      "v_experiment_units WHERE experiment_id = ?1 AND plan_id IS NOT NULL AND energy_j IS NOT "
      "NULL) WHERE rank = 1 ORDER BY energy_change_pct, run_id LIMIT ?2) best "
      "JOIN v_kernels k ON k.kind = 'trace' AND k.plan_id = best.plan_id "
      "JOIN plans b ON b.run_id = best.run_id AND b.goal = 'default' ORDER BY k.run_id, "
      "k.kernel_id",
      {id, std::int64_t{max_heat_map_settings}}));
}

// What the page calls the best, as units_json names plans.
Json best_plan(const ResultStore& store, const std::string& id) {
  const std::optional<std::string> unit = best_unit(store, {.experiment_id = id});
  if (!unit) return nullptr;
  return rows_as_objects(store.query("SELECT coalesce(plan_id, 'graph:' || graph_plan_id) AS "
                                     "plan_id FROM units WHERE unit_id = ?",
                                     {*unit}))
      .front()["plan_id"];
}

}  // namespace

std::string experiment_page(const ResultStore& store, const std::string& experiment_id) {
  const Json data{
      {"experiment",
       rows_as_objects(
           store.query("SELECT * FROM v_experiments WHERE experiment_id = ?", {experiment_id}))
           .front()},
      {"file", rows_as_objects(store.query("SELECT text FROM experiments WHERE experiment_id = ?",
                                           {experiment_id}))
                   .front()["text"]},
      {"units", units_json(store, experiment_id)},
      {"best", best_plan(store, experiment_id)},
      {"fronts", fronts_json(store, experiment_id)},
      {"kernels", kernels_json(store, experiment_id)},
      {"errors",
       rows_as_table(store.query(
           "SELECT DISTINCT r.gpu, m.name, m.value FROM experiment_units e JOIN units u USING "
           "(unit_id) "
           "JOIN runs r ON r.run_id = u.run_id JOIN model_errors m ON m.spec_hash = r.spec_hash "
           "WHERE e.experiment_id = ?1 UNION "
           "SELECT r.gpu, m.name, m.value FROM experiment_units e JOIN units u USING (unit_id) "
           "JOIN graph_runs r ON r.graph_run_id = u.graph_run_id JOIN graph_settings s ON "
           "s.graph_run_id = u.graph_run_id JOIN model_errors m ON m.spec_hash = s.spec_hash "
           "WHERE e.experiment_id = ?1 ORDER BY 1, 2",
           {experiment_id}))}};
  return filled_page("Rubato experiment", {"experiment"}, "experiment_script", data);
}

}  // namespace rubato
