// rubato show: one run at a glance.

#include <array>
#include <memory>

#include <fmt/format.h>

#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

namespace {

struct Section {
  std::string_view name, title;
  std::string_view sql;  ///< ? is the run
};

constexpr std::array sections{
    Section{
        "run", "",
        "SELECT run_id, created_utc, host, program_version || ' ' || source_revision AS version, "
        "trace_name AS trace, gpu, power_limit_w, clock_grid, 1e6 * switch_stall_s AS "
        "switch_stall_us, switch_energy_j, 1e6 * (switch_lead_s + switch_stall_s) AS "
        "switch_latency_us, 1e6 * switch_dwell_s AS switch_dwell_us, command FROM runs WHERE "
        "run_id = ?"},
    Section{
        "coverage", "Default time in kernels by how their model came about",
        "SELECT k.coefficients, 100.0 * sum(pk.time_s) / b.time_s AS time_pct, count(*) AS kernels "
        "FROM plans b JOIN plan_kernels pk USING (plan_id) JOIN kernels k ON k.run_id = b.run_id "
        "AND k.kernel_id = pk.kernel_id WHERE b.run_id = ? AND b.goal = 'default' GROUP BY 1"},
    Section{
        "model_errors", "What the fit of the GPU left",
        "SELECT name, value FROM model_errors WHERE spec_hash = (SELECT spec_hash FROM runs WHERE "
        "run_id = ?)"},
    Section{
        "plans", "Plans; change against the default clocks",
        "SELECT plan_id, granularity, aggregation, goal, 100.0 * slack_frac AS slack_pct, status, "
        "time_s, energy_j, time_change_pct, energy_change_pct, energy_change_low_pct, "
        "energy_change_high_pct, clock_switches, 100.0 * gap_frac AS gap_pct, notes FROM v_plans "
        "WHERE run_id = ? ORDER BY plan_id"},
    Section{
        "notes", "What to know beside these numbers",
        "SELECT m.plan_id, m.kind, m.reason FROM plans p JOIN plan_marks m USING (plan_id) WHERE "
        "p.run_id = ? ORDER BY 1, 2"},
    Section{
        "verifications", "Measured savings beside the promised ones, 90 % intervals",
        "SELECT plan_id, granularity, pairs, promised_energy_change_pct AS promised_pct, "
        "measured_energy_change_pct AS measured_pct, measured_energy_change_low_pct AS low_pct, "
        "measured_energy_change_high_pct AS high_pct, energy_verdict, time_verdict "
        "FROM v_verifications WHERE run_id = ? ORDER BY verification_id"},
    Section{
        "classes", "Saving by kernel class and pass, in the plan that is best without more time",
        "SELECT class, pass, launches, default_energy_j, saved_j, time_change_pct, "
        "energy_change_pct "
        "FROM v_class_savings WHERE plan_id = (SELECT plan_id FROM v_best_plan WHERE run_id = ?) "
        "ORDER BY saved_j DESC"},
};

}  // namespace

Action setup_show(CommandLine& app) {
  struct Options {
    std::string db;
    std::int64_t run = 0;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("RUN", o->run, "Run [the latest]");
  app.add_option("--db", o->db, "Result database")->required();
  app.add_flag_callback(
      "--json", [o] { o->format = OutputFormat::json; }, "JSON on standard output");
  app.footer("\nExample:\n  rubato show 3 --db results.db");
  return [o](const RunContext&) {
    const ResultStore store = ResultStore::open_read_only(o->db);
    const std::int64_t run = o->run > 0 ? o->run : latest_run(store);
    require_run(store, run);
    std::vector<OutputTable> tables;
    for (const Section& section : sections)
      tables.push_back(as_table(store.query(section.sql, {run})));
    if (o->format == OutputFormat::json) {
      std::vector<NamedTable> named;
      for (std::size_t i = 0; i < sections.size(); ++i)
        named.push_back({sections[i].name, &tables[i]});
      print(render_json_object(named));
      return ExitStatus::done;
    }
    for (std::size_t i = 0; i < sections.size(); ++i) {
      if (tables[i].rows() == 0) continue;
      print(fmt::format("{}{}{}", i > 0 ? "\n" : "", sections[i].title, i > 0 ? ":\n" : "") +
            tables[i].render(OutputFormat::table));
    }
    return ExitStatus::done;
  };
}

}  // namespace rubato
