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
#include "explorer/results/first_row.hpp"
#include "explorer/results/plan_choice.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// The published results belong only beside this trace on this GPU under this power limit.
Json published_json(const Json& run) {
  Json rows = Json::array();
  constexpr double limit_w = 350.0;
  if (run["trace_name"] != "gpt3-xl-b40-s1024-tp1-dp1" || run["gpu"] != "rtx-3080-ti" ||
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
  const double host_power_w = stored_host_power_w(store, {.captured = false, .id = run});
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
  const auto iteration = clocked_groups(store, run,
                                        "SELECT 'iteration', clock, sum(time_s), sum(energy_j) "
                                        "FROM v_pass_grid WHERE kind = 'trace' AND "
                                        "run_id = ? GROUP BY clock_id ORDER BY clock_id");
  const auto passes = clocked_groups(
      store, run,
      fmt::format("SELECT {} AS unit, clock, sum(time_s), sum(energy_j) FROM v_pass_grid WHERE "
                  "kind = 'trace' AND run_id = ? GROUP BY unit, clock_id ORDER BY unit, clock_id",
                  pass_unit));
  const auto kernels = clocked_groups(
      store, run,
      "SELECT k.name, c.label, k.launches * x.time_s, k.launches * x.energy_j FROM kernels k "
      "JOIN profile_cells x USING (run_id, kernel_id) JOIN clocks c USING (run_id, clock_id) WHERE "
      "run_id = ? ORDER BY x.kernel_id, x.clock_id");
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

GpuSpec stored_spec(const ResultStore& store, std::int64_t run) {
  const auto row = first_row(store.query(
      "SELECT i.text, i.name FROM runs r JOIN inputs i ON i.input_hash = r.spec_hash WHERE "
      "r.run_id = ?",
      {run}));
  return parse_gpu_spec(value_as<std::string>(row[0]), value_as<std::string>(row[1]));
}

// The command line that plans like a run, made from its stored options; the page adds granularity
// and slack. Empty where the options are not those of a trace on a GPU.
std::string planning_line(const Json& run) {
  Json options = Json::parse(run["options_json"].get<std::string>());
  const auto text = [&](const char* name) { return options.value(name, Json("")); };
  const auto is_name = [](const Json& value) {
    return value.is_string() && !value.get_ref<const std::string&>().empty();
  };
  if (!is_name(text("trace")) || is_name(text("table")) || !options.contains("gpu")) return "";
  if (!is_name(text("gpu")) && !is_name(text("cluster")))
    options["gpu"] = run["gpu"];  // the default one
  std::string line = fmt::format("rubato explore {}", shell_word(text("trace").get<std::string>()));
  for (const char* name :
       {"gpu", "cluster", "captured_clock", "power", "clocks", "power_limit_w", "host_power_w",
        "switching", "switch_latency_us", "switch_stall_us", "switch_energy_j", "switch_dwell_us",
        "mem_switch_latency_us", "mem_switch_stall_us", "mem_switch_energy_j"}) {
    const Json value = text(name);
    if (!is_name(value) && !value.is_number()) continue;
    // Options are called as they are stored, but for the unit of power.
    std::string option = name;
    if (option == "host_power_w" && value == 0.0) continue;
    if (option.ends_with("power_limit_w") || option.ends_with("host_power_w"))
      option.resize(option.size() - std::string_view("_w").size());
    std::ranges::replace(option, '_', '-');
    line += fmt::format(" --{} {}", option,
                        value.is_string() ? shell_word(value.get<std::string>()) : value.dump());
  }
  return line;
}

Json page_data(const ResultStore& store, std::int64_t run, std::string_view db) {
  const auto rows = [&](std::string_view sql) {
    return rows_as_objects(store.query(fmt::format(fmt::runtime(sql), run)));
  };
  const Json run_row = rows("SELECT * FROM runs WHERE run_id = {}").front();
  const GpuSpec spec = stored_spec(store, run);
  return {
      {"run", run_row},
      {"gpu_title", spec.title},
      {"planning_line", planning_line(run_row)},
      {"play", play_commands(store.query("SELECT plan_id FROM plans WHERE run_id = ?", {run}),
                             fmt::format("run:{}", run), db)},
      {"errors", spec.fit_errors},
      {"coverage",
       rows("SELECT k.coefficients AS source, sum(d.time_s) AS time_s FROM plans p JOIN "
            "plan_kernels d USING (plan_id) JOIN kernels k ON k.run_id = p.run_id AND "
            "k.kernel_id = d.kernel_id WHERE p.run_id = {} AND p.goal = 'default' GROUP "
            "BY 1")},
      {"slider", slider_json(store, run, spec)},
      {"published", published_json(run_row)},
      {"plans", rows("SELECT * FROM v_trace_plans WHERE run_id = {} ORDER BY plan_id")},
      {"answers", rows("SELECT * FROM v_answer WHERE kind = 'trace' AND run_id = {} ORDER BY NOT "
                       "is_headline, slack_pct")},
      {"notes", rows("SELECT m.kind, m.reason FROM plans p JOIN plan_marks m USING (plan_id) WHERE "
                     "p.run_id = {} ORDER BY m.plan_id, m.kind")},
      {"verifications",
       rows("SELECT * FROM v_verifications WHERE run_id = {} ORDER BY verification_id")},
      {"front", rows("SELECT granularity, time_change_pct, energy_change_pct FROM v_front WHERE "
                     "kind = 'trace' AND run_id = {} "
                     "ORDER BY granularity, point_id")},
      // A kernel's first launch stands for all of them: only plans by segment give them several.
      {"kernels",
       rows(
           "SELECT s.plan_id, s.run_id, s.kernel_id, s.name, s.label, s.class, s.pass, s.launches, "
           "s.time_s, s.energy_j, s.default_time_s, s.default_energy_j, s.time_change_pct, "
           "s.energy_change_pct, s.saved_j, (SELECT c.clock FROM v_plan_clocks c WHERE c.plan_id "
           "= s.plan_id AND c.kernel = s.name ORDER BY c.site_id LIMIT 1) AS clock FROM v_kernels "
           "s JOIN plans p USING (plan_id) WHERE s.kind = 'trace' AND s.run_id = {} AND p.goal <> "
           "'default' ORDER BY s.plan_id, s.kernel_id")},
      {"grid",
       rows("SELECT g.pass, g.clock, g.mem_state, g.core_mhz, g.time_s, g.energy_j, c.is_default "
            "FROM v_pass_grid g "
            "JOIN clocks c USING (run_id, clock_id) WHERE g.kind = 'trace' AND g.run_id = {} ORDER "
            "BY g.pass, "
            "g.clock_id")}};
}

}  // namespace

std::string report_page(const ResultStore& store, std::int64_t run, std::string_view db) {
  return filled_page("Rubato report", {"what_to_set", "page"}, "script", page_data(store, run, db));
}

}  // namespace rubato
