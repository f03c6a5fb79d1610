#include "explorer/report/run_report.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "common/text.hpp"
#include "explorer/pareto.hpp"
#include "explorer/published.hpp"
#include "explorer/report/page.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/plan_choice.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// The published results belong only beside this trace on this GPU under this power limit.
Json published_json(const Json& run) {
  Json rows = Json::array();
  constexpr double limit_w = 350.0;
  if (run["work"] != "gpt3-xl-b40-s1024-tp1-dp1" || run["gpu"] != "rtx-3080-ti" ||
      run["power_limit_w"] != limit_w)
    return rows;
  for (const PublishedTotal& row : published_table2()) {
    rows.push_back({{"granularity", name_of(row.granularity)},
                    {"aggregation", name_of(row.aggregation)},
                    {"goal", row.goal},
                    {"time_change_pct", row.time_change_pct},
                    {"energy_change_pct", row.energy_change_pct}});
  }
  return rows;
}

// A kernel, a pass or the iteration at every clock of the grid, summed over all its launches in an
// iteration.
struct ClockedGroup {
  std::string name;
  std::vector<std::string> clocks;
  std::vector<double> time_s, energy_j;
};

// @param sql  selects group, clock, time and energy of the GPU; rows of a group are neighbours
// @return energies include the rest of the node, as totals do
std::vector<ClockedGroup> clocked_groups(const ResultStore& store, std::int64_t run,
                                         std::string_view sql) {
  const double host_power_w = stored_host_power_w(store, run);
  std::vector<ClockedGroup> groups;
  for (const auto& row : store.query(sql, {run}).rows) {
    const auto& name = value_as<std::string>(row[0]);
    if (groups.empty() || groups.back().name != name) groups.push_back({name, {}, {}, {}});
    groups.back().clocks.push_back(value_as<std::string>(row[1]));
    groups.back().time_s.push_back(value_as<double>(row[2]));
    groups.back().energy_j.push_back(value_as<double>(row[3]) +
                                     host_power_w * value_as<double>(row[2]));
  }
  return groups;
}

// [clock, time, energy] of what a plan may choose, fastest first.
Json options_json(const ClockedGroup& group, const std::vector<std::size_t>& positions) {
  Json options = Json::array();
  for (const std::size_t i : positions)
    options.push_back({group.clocks[i], group.time_s[i], group.energy_j[i]});
  return options;
}

// The passes of the paper, joined as choice_units joins them.
constexpr std::string_view pass_unit =
    "CASE WHEN pass IN ('embedding', 'forward', 'loss') THEN 'forward' WHEN pass IN ('backward', "
    "'embedding_backward') THEN 'backward' ELSE pass END";

// For the page's slider: the Pareto front of each kernel, each pass and the iteration. At clocks on
// a front of a pass or the iteration also the cells of all kernels.
Json slider_json(const ResultStore& store, std::int64_t run, const GpuSpec& spec) {
  const auto iteration =
      clocked_groups(store, run,
                     "SELECT 'iteration', clock, sum(time_s), sum(energy_j) "
                     "FROM v_pass_grid WHERE run_id = ? GROUP BY clock_id ORDER BY clock_id");
  const auto passes = clocked_groups(
      store, run,
      fmt::format("SELECT {} AS unit, clock, sum(time_s), sum(energy_j) FROM v_pass_grid WHERE "
                  "run_id = ? GROUP BY unit, clock_id ORDER BY unit, clock_id",
                  pass_unit));
  const auto kernels = clocked_groups(
      store, run,
      "SELECT name, clock, launches * time_s, launches * energy_j FROM v_cells WHERE run_id = ? "
      "ORDER BY unit_id, clock_id");
  Json whole = Json::array(), by_pass = Json::array(), by_kernel = Json::array();
  Json lines = Json::object();
  std::set<std::size_t> shared;
  for (const ClockedGroup& group : iteration) {
    const std::vector<std::size_t> kept = pareto_front(group.time_s, group.energy_j);
    shared.insert(kept.begin(), kept.end());
    whole.push_back({{"name", group.name}, {"options", options_json(group, kept)}});
    for (const std::size_t i : kept) {
      const auto commands = setting_commands(spec, parse_clock_pair(spec, group.clocks[i]));
      lines[group.clocks[i]] = {commands.set, commands.back};
    }
  }
  for (const ClockedGroup& group : passes) {
    const std::vector<std::size_t> kept = pareto_front(group.time_s, group.energy_j);
    shared.insert(kept.begin(), kept.end());
    by_pass.push_back({{"name", group.name}, {"options", options_json(group, kept)}});
  }
  for (const ClockedGroup& group : kernels) {
    by_kernel.push_back(
        {{"name", group.name},
         {"options", options_json(group, pareto_front(group.time_s, group.energy_j))},
         {"cells", options_json(group, {shared.begin(), shared.end()})}});
  }
  return {{"iteration", std::move(whole)},
          {"pass", std::move(by_pass)},
          {"kernel", std::move(by_kernel)},
          {"lines", std::move(lines)}};
}

// The command line that plans like a run, made from its stored options; the page adds granularity
// and slack. Empty where the options are not those of a trace on a GPU.
std::string planning_line(const Json& run) {
  Json options = Json::parse(run["options_json"].get<std::string>());
  if (!options.contains("WORK") || options.contains("table")) return "";
  if (!options.contains("gpu") && !options.contains("cluster")) options["gpu"] = run["gpu"];
  std::string line =
      fmt::format("rubato explore {}", shell_word(options["WORK"].get<std::string>()));
  for (const char* name : {"gpu", "cluster", "captured-clock", "power", "clocks", "power-limit",
                           "host-power", "switching"}) {
    if (options.contains(name))
      line += fmt::format(" --{} {}", name, shell_word(options[name].get<std::string>()));
  }
  return line;
}

Json page_data(const ResultStore& store, std::int64_t run, std::string_view db) {
  const auto rows = [&](std::string_view sql) { return rows_as_objects(store.query(sql, {run})); };
  const Json run_row = rows("SELECT * FROM v_runs WHERE run_id = ?").front();
  const GpuSpec spec = stored_spec(store, run).value();
  return {
      {"run", run_row},
      {"gpu_title", spec.title},
      {"planning_line", planning_line(run_row)},
      {"play", play_commands(store.query("SELECT plan_id FROM v_plans WHERE run_id = ?", {run}),
                             fmt::format("{}", run), db)},
      {"errors", spec.fit_errors},
      {"slider", slider_json(store, run, spec)},
      {"published", published_json(run_row)},
      {"plans", rows("SELECT *, caveats AS notes FROM v_plans WHERE run_id = ? ORDER BY plan_id")},
      {"answers",
       rows("SELECT * FROM v_answer WHERE run_id = ? ORDER BY NOT is_headline, slack_pct")},
      {"notes", rows("SELECT kind, reason FROM v_caveats WHERE run_id = ? ORDER BY plan_id, kind")},
      {"verifications", rows("SELECT * FROM v_verified WHERE run_id = ? ORDER BY measurement_id")},
      {"front", rows("SELECT granularity, time_change_pct, energy_change_pct FROM v_front WHERE "
                     "run_id = ? ORDER BY granularity, point_id")},
      {"kernels",
       rows("SELECT plan_id, unit_id, name, label, class, pass, launches, time_s, energy_j, "
            "default_time_s, default_energy_j, time_change_pct, energy_change_pct, saved_j, "
            "ifnull(clock, clocks || ' clocks') AS clock FROM v_kernels WHERE run_id = ? ORDER BY "
            "plan_id, unit_id")},
      {"grid",
       rows("SELECT pass, clock, substr(clock, 1, instr(clock, '/') - 1) AS mem_state, core_mhz, "
            "time_s, energy_j, is_default FROM v_pass_grid WHERE run_id = ? ORDER BY pass, "
            "clock_id")}};
}

}  // namespace

std::string run_page(const ResultStore& store, const StoredRun& run, std::string_view db) {
  return run.kind == "trace" ? trace_page(store, run.id, db) : captured_page(store, run.id, db);
}

std::string trace_page(const ResultStore& store, std::int64_t run_id, std::string_view db) {
  return filled_page("Rubato report", {"what_to_set", "page"}, "script",
                     page_data(store, run_id, db));
}

}  // namespace rubato
