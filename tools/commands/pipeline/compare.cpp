// rubato pipeline compare: our plans beside those of other methods.

#include <memory>

#include <fmt/format.h>

#include "explorer/pipeline/baselines.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/terminal/exploration_tables.hpp"

namespace rubato {

namespace {

struct CompareOptions {
  PipelineInput input;
  double step_ms = 0.5;
  OutputFormat format = OutputFormat::table;
};

Cell energy_change(const std::optional<PipelineResult>& ours, const PipelineRun& theirs) {
  if (!ours) return std::monostate{};
  return change_pct(ours->energy_j, theirs.energy_j);
}

Cell time_change(const std::optional<PipelineResult>& ours, const PipelineRun& theirs) {
  if (!ours) return std::monostate{};
  return change_pct(ours->run.time_s, theirs.time_s);
}

ExitStatus run_compare(const CompareOptions& o, const RunContext& context) {
  const LoadedPipeline loaded = load_pipeline(o.input);
  const PipelineWork& work = loaded.work;
  const PlannerOptions options = planner_options(o.input);
  const PipelinePlanner planner(work, options, context);
  const auto intervals = intervals_of(loaded, options.switching);
  const double unit_s = 1e-3 * o.step_ms * o.input.profile_scale;
  OutputTable table({{.key = "method", .whole = true},
                     {"source"},
                     {"time_s", "time s", 4, false, Room::spare},
                     {"energy_j", "energy J", 1, false, Room::spare},
                     {"time_change_pct", "time %", 2},
                     {"energy_change_pct", "energy %", 2},
                     {.key = "energy_change_low_pct", .for_programs = true},
                     {.key = "energy_change_high_pct", .for_programs = true},
                     range_column(intervals.has_value()),
                     {"ours_energy_change_pct", "ours, energy %", 2},
                     {.key = "ours_energy_change_low_pct", .for_programs = true},
                     {.key = "ours_energy_change_high_pct", .for_programs = true},
                     range_column(intervals.has_value()),
                     {"ours_time_change_pct", "time %", 2, false, Room::detail}});
  const PipelineRun& base = planner.baseline();
  for (const BaselineResult& b :
       compare_baselines(planner, switch_model(o.input), unit_s, context)) {
    std::vector<Cell> row{b.method,
                          b.source,
                          b.run.time_s,
                          b.run.energy_j,
                          change_pct(b.run.time_s, base.time_s),
                          change_pct(b.run.energy_j, base.energy_j)};
    add_energy_interval(row, intervals, b.plan);
    row.push_back(energy_change(b.at_equal_time, b.run));
    add_energy_interval(row, intervals, b.at_equal_time ? b.at_equal_time->plan : PipelinePlan{},
                        {.against = &b.plan, .until_vs_default = {}, .switching = nullptr});
    row.push_back(time_change(b.at_equal_energy, b.run));
    table.add_row(std::move(row));
  }
  print_with_notes(
      table,
      fmt::format("\n{}. Change is against the {}; ours: energy of our plan that ends no "
                  "later than the row's, and time of our fastest that uses no more "
                  "energy, against the row. The other methods are emulated, lowtime "
                  "with steps of {:.4g} ms; see docs/pipeline.md.\n",
                  describe(o.input, work), baseline_name(o.input), o.step_ms) +
          interval_note(loaded),
      o.format);
  return ExitStatus::done;
}

}  // namespace

Action setup_pipeline_compare(CommandLine& app) {
  auto o = std::make_shared<CompareOptions>();
  add_pipeline_options(app, o->input);
  app.add_option("--lowtime-step-ms", o->step_ms, "Time step of the emulated lowtime, ms")
      ->capture_default_str();
  add_format_options(app, o->format);
  app.footer(
      "\nExample:\n  rubato pipeline compare --profile a100.csv --blocked-power 83.64 "
      "--microbatches 12");
  return [o](const RunContext& context) { return run_compare(*o, context); };
}

}  // namespace rubato
