// rubato suggest: which clocks to measure next.

#include <memory>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/choice.hpp"
#include "explorer/solver.hpp"
#include "models/table/fill.hpp"
#include "models/validation/measurement_plan.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/explore.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/sweep.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/terminal/next_capture.hpp"
#include "tools/terminal/output.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

struct SuggestOptions {
  std::string trace = "gpt3-xl", gpu, clocks, measured;
  std::size_t points = 5;
  double noise_pct = 1.0, slack_pct = 0.0;
  CapturedClockOptions captured;
  OutputFormat format = OutputFormat::table;
};

// At which other clock to capture a run again.
ExitStatus suggest_capture(const SuggestOptions& o, const CommandLine& line,
                           const RunContext& context) {
  constexpr double usual_slack_pct = 5.0;
  refuse(line, {"--measured", "--points", "--noise"}, "does nothing for a captured run");
  ExploreOptions captured;
  captured.work = {o.trace};
  if (line.has("--gpu")) captured.gpu = o.gpu;
  captured.clocks = o.clocks;
  captured.captured = o.captured;
  CapturedRun run = captured_run(captured, context);
  const double slack_pct = line.has("--slack") ? o.slack_pct : usual_slack_pct;
  run.input.questions = {{Granularity::run, Aggregation::global, LeastWaste{slack_pct / percent}}};
  const GraphExploration found = explore_captured(run.input, context);
  const auto next = next_measurement(found);
  if (o.format == OutputFormat::table)
    print_notes(next ? "Next: " + next_text(next, *found.model, !o.captured.power.empty()) + '\n'
                     : "No other clock of this grid would tell more.\n");
  print(next_table(next), o.format);
  return ExitStatus::done;
}

ExitStatus run(const SuggestOptions& o, const CommandLine& line, const RunContext& context) {
  if (names_capture(o.trace)) return suggest_capture(o, line, context);
  refuse(line, {"--captured-clock", "--power"}, "does nothing for a trace");
  const Trace trace = load_trace(o.trace);
  const GpuModel model(load_gpu(o.gpu.empty() ? usual_gpu() : o.gpu), trace);
  const ClockGrid grid = make_clock_grid(model.spec(), o.clocks);
  const ProfileTable per_launch = fill_profile_table(model, grid);
  const ChoiceUnits units = choice_units(trace, Granularity::kernel);
  const Solution best =
      solve_global(unit_table(per_launch, trace, units), LeastWaste{o.slack_pct / 100.0, 0.0},
                   grid.default_clock(), context);
  const std::vector<std::uint64_t> launches = launch_counts(trace);
  const PlannedKernels planned{best.clock_of_unit, {launches.begin(), launches.end()}};
  std::optional<Sweep> measured;
  if (!o.measured.empty()) {
    SweepOptions options;
    options.file = o.measured;
    measured = load_sweep(options, model.spec());
  }
  const MeasurementPlan found = suggest_measurements(
      model, trace, grid, planned, measured ? &*measured : nullptr, o.noise_pct / 100.0, o.points);

  OutputTable table({{"step"}, {"mem"}, {"core"}, {"change_sigma_pct", "change known to %", 3}});
  const bool for_people = o.format == OutputFormat::table;  // programs read clocks alone
  if (for_people)
    table.add_row({std::string("now"), std::monostate{}, std::monostate{}, found.sigma_now_pct});
  for (std::size_t i = 0; i < found.points.size(); ++i) {
    const std::string& label = grid.label(found.points[i].clock);
    const auto slash = label.find('/');
    table.add_row({std::to_string(i + 1), label.substr(0, slash), label.substr(slash + 1),
                   found.points[i].change_sigma_pct});
  }
  if (for_people)
    table.add_row(
        {std::string("all clocks"), std::monostate{}, std::monostate{}, found.sigma_full_pct});
  if (for_people && !found.points.empty())
    print_notes(answer_text(
        fmt::format("{} on {}, {} clocks", printable(trace.name), printable(model.spec().title),
                    grid.size()),
        std::string().append(fmt::format(
            "Measure every kernel at {} clocks next: the plan's change is then known to {:.2f} %, "
            "now to {:.2f} %.",
            found.points.size(), found.points.back().change_sigma_pct, found.sigma_now_pct))));
  print(table, o.format);
  if (for_people)
    print_notes(fmt::format(
        "\nchange known to: standard error of the change of time and energy by the plan per kernel "
        "on {}, where a measured number is off by {} %.\n",
        printable(trace.name), format_number(o.noise_pct)));
  return ExitStatus::done;
}

}  // namespace

Action setup_suggest(CommandLine& app) {
  auto o = std::make_shared<SuggestOptions>();
  app.add_option("TRACE", o->trace,
                 "Kernels to plan for: shipped name or file; or a capture, to capture again")
      ->capture_default_str()
      ->reads_file();
  app.add_option("--gpu NAME", o->gpu, "GPU model; 'rubato gpus' lists them [rtx-3080-ti]");
  app.add_option("--clocks", o->clocks, "Clocks to choose from [full]");
  app.add_option("--measured", o->measured, "Sweep with the points there are already");
  app.add_option("--points", o->points, "How many clock pairs to suggest")
      ->in_range(1, 100'000)
      ->capture_default_str();
  app.add_option("--noise", o->noise_pct, "Standard error of a measured time or power, %")
      ->capture_default_str();
  app.add_option("--slack", o->slack_pct, "Time allowed beyond the default clocks, %")
      ->capture_default_str();
  add_captured_clock_options(app, o->captured);
  add_format_options(app, o->format);
  app.footer(
      "Each row is the clock pair that, once measured for every kernel, narrows the uncertainty "
      "most: half that of the plan, half that of all clocks, since the plan may change. The first "
      "rows are the default clocks, another core clock and another memory clock. Only clocks "
      "within "
      "the range of the GPU model's fit are named; the last row is all of them. Errors of the "
      "parameters that kernels share are not counted.\n"
      "For a capture: the core clock at which to capture the run again, what one clock for all "
      "then "
      "saves, and how well its time is known (slack 5 % unless given).");
  return [o, &app](const RunContext& context) { return run(*o, app, context); };
}

}  // namespace rubato
