// rubato pipeline compare: our plans beside those of other methods.

#include <cmath>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/pipeline/baselines.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"

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

// What our plan saves against the highest clocks, and against the method that leaves it least.
// @param methods  the baseline first
std::string compare_answer(const std::vector<BaselineResult>& methods,
                           const std::optional<Interval>& ours) {
  const auto gained = [](const BaselineResult& b) {
    return change_pct(b.at_equal_time->energy_j, b.run.energy_j);
  };
  const BaselineResult& base = methods.front();
  const BaselineResult* closest = nullptr;
  for (const BaselineResult& b : std::span(methods).subspan(1)) {
    if (b.at_equal_time && (closest == nullptr || gained(b) > gained(*closest))) closest = &b;
  }
  std::string answer;
  if (base.at_equal_time) {
    answer = fmt::format("Our plan in the time of the {}: energy {}, time {}. ", base.method,
                         change_words(gained(base), ours),
                         change_words(change_pct(base.at_equal_time->run.time_s, base.run.time_s)));
  }
  if (closest != nullptr) {
    answer += fmt::format(
        "Closest is {} ({}): energy {}, time {}; in its time ours takes {} % {}.", closest->method,
        closest->source, change_words(change_pct(closest->run.energy_j, base.run.energy_j)),
        change_words(change_pct(closest->run.time_s, base.run.time_s)),
        format_fixed(std::abs(gained(*closest)), 2), gained(*closest) > 0.0 ? "more" : "less");
  }
  return answer;
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
  const std::vector<BaselineResult> methods =
      compare_baselines(planner, switch_model(o.input), unit_s, context);
  std::optional<Interval> first;
  std::vector<const PipelinePlan*> shown;
  for (const BaselineResult& b : methods) {
    shown.push_back(&b.plan);
    if (b.at_equal_time) shown.push_back(&b.at_equal_time->plan);
    std::vector<Cell> row{b.method,
                          b.source,
                          b.run.time_s,
                          b.run.energy_j,
                          change_pct(b.run.time_s, base.time_s),
                          change_pct(b.run.energy_j, base.energy_j)};
    add_interval(row, energy_interval(intervals, b.plan));
    row.push_back(energy_change(b.at_equal_time, b.run));
    const std::optional<Interval> ours =
        energy_interval(intervals, b.at_equal_time ? b.at_equal_time->plan : PipelinePlan{},
                        {.against = &b.plan, .until_vs_default = {}, .switching = nullptr});
    if (&b == &methods.front()) first = ours;
    add_interval(row, ours);
    row.push_back(time_change(b.at_equal_energy, b.run));
    table.add_row(std::move(row));
  }
  print_answered(describe(o.input, work), compare_answer(methods, first), table,
                 fmt::format("\nChange is against the {}; ours: energy of our plan that ends no "
                             "later than the row's, and time of our fastest that uses no more "
                             "energy, against the row. The other methods are emulated, lowtime "
                             "with steps of {:.4g} ms; see docs/pipeline.md.\n",
                             baseline_name(o.input), o.step_ms) +
                     interval_note(loaded, shown),
                 o.format);
  return ExitStatus::done;
}

}  // namespace

Action setup_pipeline_compare(CommandLine& app) {
  auto o = std::make_shared<CompareOptions>();
  add_pipeline_options(app, o->input);
  app.add_option("--lowtime-step-ms", o->step_ms, "Time step of the emulated lowtime, ms")
      ->in_range(1e-3, 1e6)
      ->capture_default_str();
  add_format_options(app, o->format);
  return [o](const RunContext& context) { return run_compare(*o, context); };
}

}  // namespace rubato
