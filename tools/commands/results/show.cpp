// rubato show: one run at a glance.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
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

// What does not apply to a kind of run is NULL and left out.
constexpr std::array sections{
    Section{"run", "",
            "SELECT run_id, kind, created_utc, host, program_version AS version, CASE interrupted "
            "WHEN 1 THEN 'early: plans are the best known by then' END AS ended, work, gpu, "
            "power_limit_w, clock_grid, NULLIF(host_power_w, 0.0) AS host_power_w, model, batch, "
            "sequence, tensor_parallel, data_parallel, stages, microbatches, schedule, 1e6 * "
            "switch_stall_s AS switch_stall_us, switch_energy_j, 1e6 * (switch_lead_s + "
            "switch_stall_s) AS switch_latency_us, 1e6 * switch_dwell_s AS switch_dwell_us, "
            "captured_clock, captured_clock_source, gpus, 1e3 * captured_s AS captured_ms, 1e3 * "
            "reproduced_s AS reproduced_ms, 1e3 * default_time_s AS default_ms, default_energy_j, "
            "blocked_power_w, command FROM v_runs WHERE run_id = ?"},
    Section{"answer", "What to set",
            "SELECT plan_id, goal, slack_pct, granularity, set_to, energy_change_pct, "
            "time_change_pct FROM v_answer WHERE run_id = ? ORDER BY NOT is_headline, goal, "
            "slack_pct"},
    Section{"coverage", "Share of the time by where times of kernels come from",
            "SELECT measured_pct, anchored_pct, guessed_split_pct, scaled_pct, derived_pct, "
            "guessed_pct, fixed_pct FROM v_trust WHERE run_id = ? AND measured_pct NOT NULL"},
    Section{"model_errors", "What the fit of the GPU left",
            "SELECT name, value FROM v_model_errors WHERE run_id = ? AND (name LIKE '%mape_pct' OR "
            "name LIKE '%mae_points')"},
    Section{"plans", "Plans as applied; change against the default clocks",
            "SELECT plan_id, granularity, aggregation, goal, slack_pct, status, time_s, energy_j, "
            "energy_change_pct, time_change_pct, energy_change_low_pct, energy_change_high_pct, "
            "in_time, clock_changes, gap_pct, caveats AS notes FROM v_plans WHERE run_id = ? ORDER "
            "BY plan_id"},
    Section{"notes", "What to know beside these numbers",
            "SELECT plan_id, kind, reason FROM v_caveats WHERE run_id = ? ORDER BY 1, 2"},
    Section{
        "verifications", "Measured savings beside the promised ones, 90 % intervals",
        "SELECT plan_id, granularity, pairs, promised_energy_change_pct AS promised_pct, "
        "measured_energy_change_pct AS measured_pct, measured_energy_change_low_pct AS low_pct, "
        "measured_energy_change_high_pct AS high_pct, energy_verdict, time_verdict "
        "FROM v_verified WHERE run_id = ? ORDER BY measurement_id"},
    Section{"classes", "Saving by kernel class and pass, in the plan to set",
            "SELECT class, pass, launches, default_energy_j, saved_j, time_change_pct, "
            "energy_change_pct FROM v_classes WHERE plan_id = (SELECT plan_id FROM v_answer WHERE "
            "run_id = ? ORDER BY NOT is_headline, slack_pct LIMIT 1) ORDER BY saved_j DESC"},
};

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

// The columns that say something.
QueryResult without_nothing(const QueryResult& result) {
  QueryResult kept;
  kept.rows.resize(result.rows.size());
  for (std::size_t c = 0; c < result.columns.size(); ++c) {
    if (std::ranges::all_of(result.rows, [&](const auto& row) {
          return std::holds_alternative<std::monostate>(row[c]);
        }))
      continue;
    kept.columns.push_back(result.columns[c]);
    for (std::size_t r = 0; r < result.rows.size(); ++r) kept.rows[r].push_back(result.rows[r][c]);
  }
  return kept;
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

void show(const ResultStore& store, std::int64_t run_id, OutputFormat format) {
  std::vector<OutputTable> tables;
  std::string notes;
  for (const Section& section : sections) {
    QueryResult result = store.query(section.sql, {run_id});
    if (section.name == "run") result = without_nothing(result);
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
  app.add_option("RUN", o->run, "Run, by its number [the latest that was asked for]");
  app.add_option("--db", o->db, "Result database")->required();
  app.add_flag_callback(
      "--json", [o] { o->format = OutputFormat::json; }, "JSON on standard output");
  app.footer("\nExample:\n  rubato show 3 --db results.db");
  return [o](const RunContext&) {
    const ResultStore store = read_results(o->db);
    show(store, find_stored_run(store, o->run.empty() ? "latest" : o->run).id, o->format);
    return ExitStatus::done;
  };
}

}  // namespace rubato
