#include <algorithm>
#include <optional>

#include "explorer/report/page.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/results/plan_choice.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// Enough points for a line on a screen; a front of many kernels has hundreds.
constexpr std::size_t max_front_points = 32;
constexpr int max_heat_map_settings = 40;

Json units_json(const ResultStore& store, const std::string& id) {
  return rows_as_table(store.query(
      "SELECT scenario, run_id, plan_id, gpu, work AS trace_name, captured_clock, model, batch, "
      "sequence, tensor_parallel, data_parallel, stages, microbatches, schedule, power_limit_w, "
      "host_power_w, clock_grid, switch_stall_us, switch_energy_j, switch_latency_us, "
      "switch_dwell_us, seed, granularity, aggregation, goal, slack_pct, tolerance_pct, odds_pct, "
      "program_version, status, time_s, energy_j, in_time, is_answer, time_change_pct, "
      "energy_change_pct, energy_change_low_pct, energy_change_high_pct, clock_changes, "
      "applied_gap_pct AS gap_pct, caveats AS notes, gpu_calibrated, measured_pct, anchored_pct, "
      "scaled_pct, derived_pct, guessed_pct, guessed_split_pct "
      "FROM v_experiment_plans WHERE experiment_id = ? ORDER BY run_id, plan_id, scenario",
      {id}));
}

// Every run's fronts as [run, granularity, [time %, energy %, ...]], evenly thinned, both ends
// kept. Captured runs have the front of their single clocks, as granularity iteration.
Json fronts_json(const ResultStore& store, const std::string& id) {
  const QueryResult points = store.query(
      "SELECT run_id, granularity, time_change_pct, energy_change_pct FROM (SELECT f.run_id, "
      "f.granularity, f.time_change_pct, f.energy_change_pct FROM (SELECT DISTINCT run_id FROM "
      "v_experiment_plans WHERE experiment_id = ?1) r JOIN v_front f ON f.run_id = r.run_id WHERE "
      "f.energy_j NOT NULL UNION ALL SELECT c.run_id, 'iteration', c.time_change_pct, "
      "c.energy_change_pct FROM (SELECT DISTINCT run_id FROM v_experiment_plans WHERE "
      "experiment_id = ?1) r JOIN v_clocks c ON c.run_id = r.run_id AND c.kind = 'capture' WHERE "
      "NOT EXISTS (SELECT 1 FROM v_clocks d WHERE d.run_id = c.run_id AND d.time_s <= c.time_s AND "
      "d.energy_j < c.energy_j)) WHERE time_change_pct <= 100 ORDER BY run_id, granularity, "
      "time_change_pct",
      {id});
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
    fronts.push_back({value_as<std::int64_t>(points.rows[first][0]),
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
      "k.time_change_pct, 100.0 * k.default_energy_j / best.default_energy_j AS share_pct FROM "
      "(SELECT run_id, plan_id, default_energy_j FROM (SELECT run_id, plan_id, energy_change_pct, "
      "default_energy_j, row_number() OVER (PARTITION BY run_id ORDER BY is_answer DESC, energy_j, "
      "plan_id) AS rank FROM v_experiment_plans WHERE experiment_id = ?1 AND kind = 'trace' AND "
      "energy_j NOT NULL) WHERE rank = 1 ORDER BY energy_change_pct, run_id LIMIT ?2) best "
      "JOIN v_kernels k ON k.plan_id = best.plan_id ORDER BY k.run_id, k.unit_id",
      {id, std::int64_t{max_heat_map_settings}}));
}

// What the page calls the best, as units_json names plans.
Json best_plan(const ResultStore& store, const std::string& id) {
  const std::optional<std::int64_t> plan = best_unit(store, {.experiment_id = id});
  return plan ? Json(*plan) : Json(nullptr);
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
       rows_as_table(store.query("SELECT DISTINCT gpu, name, value FROM v_model_errors WHERE "
                                 "run_id IN (SELECT run_id FROM "
                                 "v_experiment_plans WHERE experiment_id = ?) ORDER BY 1, 2",
                                 {experiment_id}))}};
  return filled_page("Rubato experiment", {"experiment"}, "experiment_script", data);
}

}  // namespace rubato
