// rubato show: one run of a trace, or one captured run, at a glance.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

struct Section {
  std::string_view name, title;
  std::string_view sql;  ///< ? is the run
};

constexpr std::array run_sections{
    Section{
        "run", "",
        "SELECT run_id, created_utc, host, program_version || ' ' || source_revision AS version, "
        "trace_name AS trace, gpu, power_limit_w, clock_grid, 1e6 * switch_stall_s AS "
        "switch_stall_us, switch_energy_j, 1e6 * (switch_lead_s + switch_stall_s) AS "
        "switch_latency_us, 1e6 * switch_dwell_s AS switch_dwell_us, command FROM runs WHERE "
        "run_id = ?"},
    Section{"answer", "What to set",
            "SELECT plan_id, goal, slack_pct, granularity, set_to, energy_change_pct, "
            "time_change_pct FROM v_answer WHERE kind = 'trace' AND run_id = ? ORDER BY NOT "
            "is_headline, goal, slack_pct"},
    Section{
        "coverage", "Default time in kernels by how their model came about",
        "SELECT k.coefficients, 100.0 * sum(pk.time_s) / b.time_s AS time_pct, count(*) AS kernels "
        "FROM plans b JOIN plan_kernels pk USING (plan_id) JOIN kernels k ON k.run_id = b.run_id "
        "AND k.kernel_id = pk.kernel_id WHERE b.run_id = ? AND b.goal = 'default' GROUP BY 1"},
    Section{
        "model_errors", "What the fit of the GPU left",
        "SELECT name, value FROM model_errors WHERE spec_hash = (SELECT spec_hash FROM runs WHERE "
        "run_id = ?)"},
    Section{"plans", "Plans; change against the default clocks",
            "SELECT plan_id, granularity, aggregation, goal, slack_pct, status, "
            "time_s, energy_j, energy_change_pct, time_change_pct, energy_change_low_pct, "
            "energy_change_high_pct, clock_switches, gap_pct, notes FROM v_trace_plans "
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
    Section{"classes", "Saving by kernel class and pass, in the plan to set",
            "SELECT class, pass, launches, default_energy_j, saved_j, time_change_pct, "
            "energy_change_pct "
            "FROM v_classes WHERE kind = 'trace' AND plan_id = (SELECT plan_id FROM v_answer WHERE "
            "kind = 'trace' AND run_id = ? ORDER BY NOT is_headline, slack_pct LIMIT 1) ORDER BY "
            "saved_j DESC"},
};

constexpr std::array captured_sections{
    Section{
        "run", "",
        "SELECT r.graph_run_id, r.created_utc, r.program_version AS version, r.captures, r.gpu, "
        "r.captured_clock, r.captured_clock_source, r.power_limit_w, s.clock_grid, 1e6 * "
        "(s.switch_lead_s + s.switch_stall_s) AS switch_latency_us, r.ranks, r.gpus, "
        "r.launches, 1e3 * r.captured_s AS captured_ms, 1e3 * r.reproduced_s AS reproduced_ms, "
        "1e3 * r.default_s AS default_ms, r.default_j, r.command FROM graph_runs r LEFT JOIN "
        "graph_settings s USING (graph_run_id) WHERE r.graph_run_id = ?"},
    Section{"answer", "What to set",
            "SELECT plan_id, goal, slack_pct, granularity, set_to, energy_change_pct, "
            "time_change_pct FROM v_answer WHERE kind = 'capture' AND run_id = ? ORDER BY NOT "
            "is_headline, goal, slack_pct"},
    Section{"coverage", "GPU time by what is known of the kernels",
            "SELECT 100.0 * source_measured_s / all_s AS measured_pct, 100.0 * source_anchored_s / "
            "all_s AS anchored_pct, 100.0 * source_guessed_split_s / all_s AS guessed_split_pct, "
            "100.0 * source_fixed_s / all_s AS no_clock_changes_pct FROM (SELECT *, "
            "source_measured_s + source_anchored_s + source_fixed_s AS all_s FROM graph_runs WHERE "
            "graph_run_id = ?)"},
    Section{"plans", "Plans; change against the default clocks, as made and as played",
            "SELECT graph_plan_id, granularity, slack_pct, status, time_s, energy_j, "
            "energy_change_pct, time_change_pct, energy_change_low_pct, energy_change_high_pct, "
            "gap_pct, counted_time_change_pct AS played_time_pct, counted_energy_change_pct AS "
            "played_energy_pct, counted_in_time AS in_time, notes FROM v_graph_plans WHERE "
            "graph_run_id = ? ORDER BY graph_plan_id"},
    Section{"notes", "What to know beside these numbers",
            "SELECT NULL AS graph_plan_id, kind, reason FROM graph_run_marks WHERE graph_run_id = "
            "?1 UNION ALL SELECT m.graph_plan_id, m.kind, m.reason FROM graph_plans p JOIN "
            "graph_plan_marks m USING (graph_plan_id) WHERE p.graph_run_id = ?1 ORDER BY 1, 2"},
    Section{
        "verifications", "Measured savings beside the promised ones, 90 % intervals",
        "SELECT graph_plan_id, granularity, pairs, promised_energy_change_pct AS promised_pct, "
        "measured_energy_change_pct AS measured_pct, measured_energy_change_low_pct AS low_pct, "
        "measured_energy_change_high_pct AS high_pct, energy_verdict, time_verdict "
        "FROM v_verifications WHERE graph_run_id = ? ORDER BY verification_id"},
};

// A plain number is a run of a trace if there is one of that number, else a captured run.
StoredRun run_named(const ResultStore& store, const std::string& name) {
  if (name.empty()) return find_stored_run(store, "latest");
  const auto number = parse_count(name);
  const bool run =
      number &&
      !store.query("SELECT 1 FROM runs WHERE run_id = ?", {static_cast<std::int64_t>(*number)})
           .rows.empty();
  return find_stored_run(store, run ? "run:" + name : name);
}

// Times in the unit that suits the longest of a column, which the column's name says.
void use_fitting_units(QueryResult& result) {
  for (std::size_t c = 0; c < result.columns.size(); ++c) {
    std::string& name = result.columns[c];
    constexpr std::array units{TimeUnit{"_us", us_per_s}, TimeUnit{"_ms", ms_per_s},
                               TimeUnit{"_s", 1.0}};
    const auto unit = std::ranges::find_if(
        units, [&](const TimeUnit& known) { return name.ends_with(known.name); });
    if (unit == units.end()) continue;
    double longest_s = 0.0;
    for (const auto& row : result.rows) {
      if (const auto* value = std::get_if<double>(&row[c]))
        longest_s = std::max(longest_s, std::abs(*value) / unit->per_s);
    }
    const TimeUnit fitting = time_unit(longest_s);
    name.resize(name.size() - unit->name.size());
    name += fmt::format("_{}", fitting.name);
    for (auto& row : result.rows) {
      if (auto* value = std::get_if<double>(&row[c])) *value *= fitting.per_s / unit->per_s;
    }
  }
}

// A table of one row, a line for each of its columns.
std::string on_lines(const OutputTable& table) {
  const std::vector<std::vector<std::string>> shown = table.shown(TableStyle::no_limit);
  std::size_t longest = 0;
  for (const std::string& title : shown[0]) longest = std::max(longest, title.size());
  std::string text;
  for (std::size_t c = 0; c < shown[0].size(); ++c)
    text += fmt::format("{:<{}}  {}\n", shown[0][c], longest, shown[1][c]);
  return text;
}

// Each pair of kind and reason once, with the plans that have it.
// @param notes  plan or nothing, kind and reason
std::string notes_text(const QueryResult& notes) {
  std::vector<std::pair<std::string, std::string>> lines;  // what is said, of which plans
  for (const auto& row : notes.rows) {
    const std::string said =
        fmt::format("{}: {}", value_as<std::string>(row[1]), value_as<std::string>(row[2]));
    auto line = std::ranges::find(lines, said, &std::pair<std::string, std::string>::first);
    if (line == lines.end()) line = lines.insert(line, {said, {}});
    if (const auto* plan = std::get_if<std::int64_t>(&row[0]))
      line->second += fmt::format("{}{}", line->second.empty() ? "" : ", ", *plan);
  }
  std::string text;
  for (const auto& [said, plans] : lines)
    text += fmt::format("{}{}{}.\n", printable(said), plans.empty() ? "" : "; plan ", plans);
  return text;
}

void show(const ResultStore& store, const StoredRun& run, std::span<const Section> sections,
          OutputFormat format) {
  std::vector<OutputTable> tables;
  std::string notes;
  for (const Section& section : sections) {
    QueryResult result = store.query(section.sql, {run.id});
    if (format == OutputFormat::table) use_fitting_units(result);
    if (section.name == "notes") notes = notes_text(result);
    tables.push_back(as_table(result, Titles::words));
  }
  if (format == OutputFormat::json) {
    std::vector<NamedTable> named;
    for (std::size_t i = 0; i < sections.size(); ++i)
      named.push_back({sections[i].name, &tables[i]});
    print(render_json_object(named));
    return;
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (tables[i].rows() == 0) continue;
    print(fmt::format("{}{}{}", i > 0 ? "\n" : "", sections[i].title, i > 0 ? ":\n" : ""));
    if (sections[i].name == "run") {
      print(on_lines(tables[i]));
    } else if (sections[i].name == "notes") {
      print_notes(notes);
    } else {
      print(tables[i], OutputFormat::table);
    }
  }
}

}  // namespace

Action setup_show(CommandLine& app) {
  struct Options {
    std::string db, run;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("RUN", o->run,
                 "Run: its number, or run:N and graph:N where a captured run has the same number "
                 "[the latest]");
  app.add_option("--db", o->db, "Result database")->required();
  app.add_flag_callback(
      "--json", [o] { o->format = OutputFormat::json; }, "JSON on standard output");
  app.footer("\nExample:\n  rubato show 3 --db results.db");
  return [o](const RunContext&) {
    const ResultStore store = read_results(o->db);
    const StoredRun run = run_named(store, o->run);
    if (run.captured) {
      show(store, run, captured_sections, o->format);
    } else {
      show(store, run, run_sections, o->format);
    }
    return ExitStatus::done;
  };
}

}  // namespace rubato
