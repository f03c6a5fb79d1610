// rubato show: one run at a glance.

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/plan_file.hpp"
#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/screen.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

struct Section {
  std::string_view name, title;
  std::string_view sql;          ///< ? is the run
  std::string_view option = {};  ///< that shows it; empty: without options
};

// The plan that a run is known by.
#define RUBATO_HEADLINE \
  "(SELECT plan_id FROM v_answer WHERE run_id = ?1 ORDER BY NOT is_headline, slack_pct LIMIT 1)"

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
            "blocked_power_w, command FROM v_runs WHERE run_id = ?",
            "--run"},
    Section{"answer", "What to set",
            "SELECT plan_id, goal, slack_pct, granularity, set_to, energy_change_pct, "
            "time_change_pct FROM v_answer WHERE run_id = ? ORDER BY NOT is_headline, goal, "
            "slack_pct",
            "--answers"},
    Section{"passes", "By pass, in the plan to set",
            "SELECT pass, (SELECT CASE WHEN count(*) > 3 THEN min(core) || ' to ' || max(core) "
            "ELSE group_concat(core, ', ') END FROM (SELECT DISTINCT ifnull(CAST(core_mhz AS "
            "INTEGER), 'auto') AS core FROM v_plan_gpus g WHERE g.plan_id = p.plan_id AND g.pass = "
            "p.pass ORDER BY core)) AS core_MHz, printf('%.4g -> %.4g', "
            "default_time_s, time_s) AS time_s, time_change_pct, printf('%.4g -> %.4g', "
            "default_energy_j, energy_j) AS energy_j, energy_change_pct FROM v_passes p WHERE "
            "plan_id = " RUBATO_HEADLINE
            " UNION ALL SELECT 'step', NULL, printf('%.4g -> %.4g', default_time_s, time_s), "
            "time_change_pct, printf('%.4g -> %.4g', default_energy_j, energy_j), "
            "energy_change_pct FROM v_plans WHERE plan_id = " RUBATO_HEADLINE},
    Section{"coverage", "Share of the time by where times of kernels come from",
            "SELECT measured_pct, anchored_pct, guessed_split_pct, scaled_pct, derived_pct, "
            "guessed_pct, fixed_pct FROM v_trust WHERE run_id = ? AND measured_pct NOT NULL",
            "--trust"},
    Section{"model_errors", "What the fit of the GPU left",
            "SELECT name, value FROM v_model_errors WHERE run_id = ? AND (name LIKE '%mape_pct' OR "
            "name LIKE '%mae_points')",
            "--trust"},
    Section{"plans", "Plans as applied; change against the default clocks",
            "SELECT plan_id, granularity, aggregation, goal, slack_pct, status, time_s, energy_j, "
            "energy_change_pct, time_change_pct, energy_change_low_pct, energy_change_high_pct, "
            "in_time, clock_changes, gap_pct, caveats AS notes FROM v_plans WHERE run_id = ? ORDER "
            "BY plan_id",
            "--plans"},
    Section{"notes", "What to know beside these numbers",
            "SELECT plan_id, kind, reason FROM (SELECT NULL AS plan_id, label AS kind, text AS "
            "reason, position FROM screens WHERE run_id = ?1 AND label = 'note' UNION ALL SELECT "
            "plan_id, kind, reason, NULL FROM v_caveats WHERE run_id = ?1) ORDER BY position IS "
            "NULL, position, plan_id, kind",
            "--notes"},
    Section{
        "verifications", "Measured savings beside the promised ones, 90 % intervals",
        "SELECT plan_id, granularity, pairs, promised_energy_change_pct AS promised_pct, "
        "measured_energy_change_pct AS measured_pct, measured_energy_change_low_pct AS low_pct, "
        "measured_energy_change_high_pct AS high_pct, energy_verdict, time_verdict "
        "FROM v_verified WHERE run_id = ? ORDER BY measurement_id"},
    Section{"classes", "Saving by kernel class and pass, in the plan to set",
            "SELECT class, pass, launches, default_energy_j, saved_j, time_change_pct, "
            "energy_change_pct FROM v_classes WHERE plan_id = " RUBATO_HEADLINE
            " ORDER BY saved_j DESC",
            "--per-class"},
    Section{"kernels", "Kernels in the plan to set, those that save most first",
            "SELECT name AS kernel, gpu_label AS gpu, pass, launches, clock, saved_j, "
            "time_change_pct, energy_change_pct FROM v_kernels WHERE plan_id = " RUBATO_HEADLINE
            " ORDER BY saved_j DESC",
            "--per-kernel"},
};
#undef RUBATO_HEADLINE

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

struct ShowOptions {
  std::string db;
  std::vector<std::string> words, shown;  ///< shown: options of sections
  bool json = false, set = false, sql = false;
};

bool is_shown(const ShowOptions& o, const Section& section) {
  if (o.json) return section.name != "kernels" && section.name != "passes";
  if (section.option.empty()) return o.shown.empty();
  return std::ranges::find(o.shown, section.option) != o.shown.end();
}

void show_section(const Section& section, QueryResult result, bool titled) {
  if (section.name != "passes") use_fitting_units(result);
  if (section.name == "run") result = without_nothing(result);
  if (result.rows.empty()) {
    if (section.name == "notes") print_notes("No notes.\n");
    return;
  }
  if (titled) print(fmt::format("{}:\n", section.title));
  const OutputTable table = as_table(result, Titles::words);
  if (section.name == "run") {
    print(on_lines(table));
  } else if (section.name == "notes") {
    print_notes(notes_text(result));
  } else {
    print(table, OutputFormat::table);
  }
  print("\n");
}

// The five lines as they were said when the run was asked for; of a unit of an experiment the
// answer.
void show_screen(const ResultStore& store, std::int64_t run_id) {
  const QueryResult run = store.query(
      "SELECT (SELECT count(*) FROM runs), created_utc, command FROM runs WHERE run_id "
      "= ?",
      {run_id});
  const auto& about = run.rows.front();
  print_notes(fmt::format("Run {} of {}, {}: {}\n\n", run_id, value_as<std::int64_t>(about[0]),
                          value_as<std::string>(about[1]).substr(0, 10),
                          printable(value_as<std::string>(about[2]))));
  ScreenLines lines;
  const QueryResult said = store.query(
      "SELECT label, text FROM screens WHERE run_id = ? AND label <> 'note' ORDER BY position",
      {run_id});
  for (const auto& row : said.rows)
    lines.emplace_back(value_as<std::string>(row[0]), value_as<std::string>(row[1]));
  if (!lines.empty()) return print(screen_text(lines) + '\n');
  show_section(sections[1], store.query(sections[1].sql, {run_id}), true);
}

void show(const ResultStore& store, std::int64_t run_id, const ShowOptions& o) {
  if (o.sql) {
    for (const Section& section : sections) {
      std::string sql(section.sql);
      for (const std::string_view mark : {" ?1", " ?"}) {
        for (std::size_t at = sql.find(mark); at != std::string::npos; at = sql.find(mark))
          sql.replace(at, mark.size(), fmt::format(" {}", run_id));
      }
      print(fmt::format("-- {}\n{};\n\n", section.name, sql));
    }
    return;
  }
  if (o.json) {
    std::vector<OutputTable> tables;
    std::vector<NamedTable> named;
    tables.reserve(sections.size());
    for (const Section& section : sections) {
      if (!is_shown(o, section)) continue;
      QueryResult result = store.query(section.sql, {run_id});
      if (section.name == "run") result = without_nothing(result);
      named.push_back({section.name, &tables.emplace_back(as_table(result, Titles::words))});
    }
    return print(render_json_object(named));
  }
  if (o.shown.empty()) show_screen(store, run_id);
  for (const Section& section : sections) {
    if (is_shown(o, section))
      show_section(section, store.query(section.sql, {run_id}),
                   o.shown.size() > 1 || section.name == "verifications");
  }
  if (!o.shown.empty()) return;
  std::vector<std::string> notes;
  for (const auto& row :
       store
           .query("SELECT text FROM screens WHERE run_id = ? AND label = 'note' ORDER BY position",
                  {run_id})
           .rows)
    notes.push_back(value_as<std::string>(row[0]));
  if (!notes.empty()) print_notes(first_notes(notes, "--notes") + '\n');
  print_notes(
      fmt::format("More: --plans, --notes, --per-kernel, --set, --sql; rubato report --db "
                  "{}\n",
                  shell_word(o.db)));
}

// A line for each GPU whose clocks the plan holds for the whole step.
ExitStatus show_setting(const ResultStore& store, std::int64_t run_id, const std::string& db) {
  const PlanFile file = plan_file(store, {.run = fmt::to_string(run_id)});
  const PlanFilePlan& plan = file.plans.front();
  const bool known =
      value_as<std::int64_t>(
          store
              .query("SELECT known FROM v_answer WHERE run_id = ? ORDER BY NOT is_headline LIMIT 1",
                     {run_id})
              .rows.front()
              .front()) != 0;
  if (!known)
    throw NoPlanError(
        "nothing to set yet: the plan may save nothing, zero is within its 90 % interval",
        {.in = {}, .hint = "line Next of rubato show says what to measure"});
  const std::vector<TargetClock> targets = clock_of_each_target(file, plan);
  std::string lines;
  for (const TargetClock& target : targets) lines += setting_lines_of(*file.gpu->known, target);
  if (!plan.verdict.applicable || lines.empty())
    throw NoPlanError("the plan's clocks change during a step: nvidia-smi cannot set them",
                      {.in = {},
                       .hint = fmt::format("rubato export --plan {} --db {} -o plan.json, then "
                                           "sudo -E rubato apply plan.json -- python3 train.py",
                                           run_id, shell_word(db))});
  print(lines);
  return ExitStatus::done;
}

}  // namespace

Action setup_show(CommandLine& app) {
  auto o = std::make_shared<ShowOptions>();
  app.add_option("WORDS DATABASE RUN", o->words,
                 "Result database, unless --db says it, and a run by its number [the latest that "
                 "was asked for]");
  app.add_option("--db", o->db, "Result database");
  app.add_flag("--set", o->set, "Print the lines that set the plan's clocks, one for each GPU");
  for (const auto& [option, help] : std::initializer_list<std::pair<const char*, const char*>>{
           {"--plans", "Show all plans"},
           {"--notes", "Show all notes in full, and marks with the plans that have them"},
           {"--per-kernel", "Show every kernel in the plan"},
           {"--per-class", "Show classes of kernels in the plan"},
           {"--answers", "Show the answer to every goal and slack"},
           {"--trust", "Show where times come from, and errors of the GPU model"},
           {"--run", "Show how the run was asked"}})
    app.add_flag_callback(
        option, [o, name = option] { o->shown.emplace_back(name); }, help);
  app.add_flag("--sql", o->sql, "Print the SQL of all of these");
  app.add_flag("--json", o->json, "Print JSON")->group(output_group);
  return [o](const RunContext&) {
    std::string run = "latest";
    if (!o->words.empty() && is_run(o->words.back())) {
      run = o->words.back();
      o->words.pop_back();
    }
    take_database(o->words, o->db, 0);
    const ResultStore store = read_results(o->db);
    const std::int64_t id = find_stored_run(store, run).id;
    if (o->set) return show_setting(store, id, o->db);
    show(store, id, *o);
    return ExitStatus::done;
  };
}

}  // namespace rubato
