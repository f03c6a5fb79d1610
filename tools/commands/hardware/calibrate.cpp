// rubato calibrate: fit a GPU's model to measurements.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <memory>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/confidence/campaigns.hpp"
#include "models/validation/error_growth.hpp"
#include "models/validation/errors.hpp"
#include "models/validation/model_errors.hpp"
#include "models/validation/shipped_fits.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/hardware/calibrate_captures.hpp"
#include "tools/commands/hardware/calibrate_tables.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/kernel_fits.hpp"
#include "tools/options/sweep.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

struct CalibrateOptions {
  SweepOptions sweep;
  CaptureCalibration captures;
  std::string gpu, out = "-", name, title;
  std::vector<std::string> shipped;
  FitOptions fit;
  bool kernels_only = false, no_validation = false;
  OutputFormat format = OutputFormat::table;
};

// Errors on what the fit has not seen.
void cross_validate(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& fit,
                    GpuSpec& spec, const RunContext& context) {
  constexpr std::size_t points = 5;
  constexpr std::ptrdiff_t enough_kernels = 3;
  const auto more_points = [](const SweepKernel& kernel) { return kernel.points.size() > points; };
  if (!std::ranges::all_of(sweep.kernels, more_points)) return;
  const auto add = [&](const char* prefix, Holdout holdout) {
    const ValidationOptions options{.holdout = holdout, .points = points, .fit = fit};
    add_errors(prefix, validate(frame, sweep, options, context), fit, spec);
  };
  add("k_fold", Holdout::folds);
  add("clocks_left_out", Holdout::clocks);
  const auto has_clocks = [](const SweepKernel& kernel) {
    return std::ranges::any_of(kernel.points,
                               [](const SweepPoint& p) { return p.clock.core_mhz.has_value(); });
  };
  if (std::ranges::count_if(sweep.kernels, has_clocks) >= enough_kernels) {
    const std::vector<ValidatedPoint> unseen = validate(
        frame, sweep, {.holdout = Holdout::kernels, .points = points, .fit = fit}, context);
    add_errors("kernels_left_out_5_points", unseen, fit, spec);
    write_errors(estimate_errors(unseen), spec);
    learn_errors(frame, sweep, {1, 3, 5, 0}, fit, spec, context);
  }
  learn_error_growth(frame, usable_points(sweep), model_errors(spec), fit, spec, context);
}

SweepFit fit_sweep(const CalibrateOptions& o, const RunContext& context) {
  const GpuSpec frame =
      o.kernels_only || o.gpu.empty() ? load_gpu_for_sweep(o.gpu, o.sweep) : load_gpu_spec(o.gpu);
  const Sweep sweep = load_sweep(o.sweep, frame);
  const SweepFitOptions options = fit_options(o.fit);
  SweepFit fit;
  if (o.kernels_only) {
    fit = fit_kernels_only(frame, sweep, options, !o.no_validation, context);
    fit.notes.push_back(frame_note(frame));
  } else {
    fit = calibrate_sweep(frame, sweep, options, context);
    fit.spec.fit_errors.clear();
    if (!o.no_validation) cross_validate(frame, sweep, options, fit.spec, context);
  }
  std::vector<ValidatedPoint> seen =
      validate(fit.spec, sweep, {.holdout = Holdout::known, .fit = {}});
  add_errors("residual", seen, options, fit.spec);
  return fit;
}

// What -o and --format ask for.
ExitStatus write_fit(const CalibrateOptions& o, SweepFit fit) {
  if (!o.name.empty()) fit.spec.name = o.name;
  if (!o.title.empty()) fit.spec.title = o.title;
  write_output(o.out, to_json(fit.spec));
  if (o.out == "-") return ExitStatus::done;
  const OutputTable parameters = parameter_table(fit), errors = error_table(fit.spec);
  if (o.format != OutputFormat::table) {
    print(o.format == OutputFormat::json
              ? render_json_object({{"parameters", &parameters}, {"errors", &errors}})
              : parameters.render(o.format));
    return ExitStatus::done;
  }
  print_notes(answer_text(
      fmt::format("{}, fitted to {}", printable(fit.spec.title), printable(o.sweep.file)),
      fit_answer(fit.spec)));
  const OutputTable mean_errors = mean_errors_table(fit.spec);
  if (mean_errors.rows() > 0) print_tables({{"errors", &mean_errors}}, o.format);
  if (parameters.rows() > 0) print_tables({{"parameters", &parameters}}, o.format);
  print_notes(fit_notes(fit, o.out));
  return ExitStatus::done;
}

// The options that a shipped spec was made with.
CalibrateOptions options_of(const ShippedFit& fit, const CalibrateOptions& asked) {
  CalibrateOptions o;
  o.gpu = fit.spec;
  o.sweep.file = fit.data;
  o.sweep.idle = fit.other;
  o.sweep.where.assign(fit.where.begin(), fit.where.end());
  o.fit = {.sigma = fit.sigma, .curve_core_mhz = fit.curve_core_mhz};
  o.no_validation = asked.no_validation;
  return o;
}

GpuSpec made_again(const ShippedFit& fit, const CalibrateOptions& asked,
                   const RunContext& context) {
  return fit_sweep(options_of(fit, asked), context).spec;
}

// What specs were fitted to is neither compiled into the program nor installed with it.
void check_in_a_clone(const ShippedFit& fit) {
  if (std::filesystem::exists(fit.data)) return;
  throw IoError(fmt::format("{}: there is no such file or folder here", fit.data),
                {.in = {},
                 .hint = "--shipped reads the measured numbers of a clone of Rubato: run it in the "
                         "folder at its top"});
}

// Shipped specs made again from the numbers they were fitted to, and how far they are from what is
// shipped.
ExitStatus fit_shipped(const CalibrateOptions& asked, const RunContext& context) {
  std::vector<const ShippedFit*> fits;
  for (const std::string& name : asked.shipped) {
    if (name != "all") {
      fits.push_back(&shipped_fit(name));
      continue;
    }
    for (const ShippedFit& fit : shipped_fits()) fits.push_back(&fit);
  }
  check_in_a_clone(*fits.front());
  if (asked.out != "-") {
    std::error_code reported_when_written;
    std::filesystem::create_directories(asked.out, reported_when_written);
  }
  OutputTable table({{"spec"},
                     {"fitted_to", "fitted to"},
                     {"cells"},
                     {"time_mean_pct", "time differs by %, mean", 3},
                     {"time_worst_pct", "worst", 2},
                     {"energy_mean_pct", "energy %, mean", 3},
                     {"energy_worst_pct", "worst", 2}});
  for (const ShippedFit* fit : fits) {
    const GpuSpec made = made_again(*fit, asked, context);
    refuse_if_interrupted();  // a fit that was stopped on its way is no calibration
    if (asked.out != "-")
      write_output((std::filesystem::path(asked.out) / fmt::format("{}.json", fit->spec)).string(),
                   to_json(made));
    const SpecDifference d = difference(*fit, "", load_gpu_spec(fit->spec), made);
    const auto shown = [](const ErrorQuantiles& q, double value) {
      return q.count > 0 ? Cell(value) : Cell();
    };
    table.add_row({std::string(fit->spec), std::string(fit->data),
                   static_cast<std::int64_t>(d.energy.count), shown(d.time, d.time.mean),
                   shown(d.time, d.time.worst), d.energy.mean, d.energy.worst});
  }
  print(table, asked.format);
  return ExitStatus::done;
}

// --captures and --shipped say themselves what is fitted, and refuse options that say it too.
void refuse_options(const CommandLine& line, std::string_view with,
                    std::initializer_list<const char*> options) {
  for (const char* option : options) {
    if (line.has(option)) throw UsageError(fmt::format("{} does nothing with {}", option, with));
  }
}

ExitStatus fit_captured(const CalibrateOptions& o, const CommandLine& line) {
  refuse_options(
      line, "--captures",
      {"--shipped", "--idle", "--column", "--where", "--keep-implausible", "--kernels-only",
       "--sigma", "--curve-points", "--power-only", "--no-validation"});
  if (!o.sweep.file.empty()) throw UsageError("give either a SWEEP or --captures, not both");
  CaptureCalibration asked = o.captures;
  asked.gpu = o.gpu;
  asked.out = o.out;
  asked.name = o.name;
  asked.title = o.title;
  asked.format = o.format;
  return calibrate_captures(asked);
}

void add_capture_options(CommandLine& app, CaptureCalibration& captures) {
  const char* group = "One step captured at several clocks";
  Option* files = app.add_option(
      "--captures", captures.captures,
      "FILE@MEMORY/CORE or FILE@CORE ...: what rubato trace import reads; kernels are named after "
      "the first");
  files->group(group);
  add_phase_option(app, captures.import)->needs(files)->group(group);
  Option* power = app.add_option("--power", captures.power, "Power logs, one for each capture");
  power->group(group);
  app.add_option("--power-gpu", captures.log.gpu,
                 "Which GPU of the logs: its index, bus id, UUID, name or host")
      ->needs(power)
      ->group(group);
  app.add_option("--power-period", captures.log.period_s,
                 "Distance of samples in s, for logs without times such as dcgmi dmon")
      ->positive()
      ->needs(power)
      ->group(group);
  app.add_option("--power-zone", captures.power_zone_h,
                 "Hours the logs' local time is ahead of UTC")
      ->in_range(-12.0, 14.0)
      ->needs(power)
      ->group(group);
}

}  // namespace

Action setup_calibrate(CommandLine& app) {
  auto o = std::make_shared<CalibrateOptions>();
  add_sweep_options(app, o->sweep);
  app.add_option(
      "--gpu", o->gpu,
      "Spec that supplies names, clocks, memory states and power limit [the one of the GPU "
      "that SWEEP or --captures name, else rtx-3080-ti]");
  add_capture_options(app, o->captures);
  app.add_flag("--kernels-only", o->kernels_only,
               "Keep the GPU's parameters; fit only the kernels, from one or more points each");
  add_fit_options(app, o->fit);
  app.add_flag("--no-validation", o->no_validation, "Do not cross-validate");
  app.add_option("--shipped", o->shipped,
                 "Make shipped specs again, 'all' or by name, from the numbers in "
                 "models/data/measured (run it in the root of a clone), and say how far they are "
                 "from what is shipped; -o is a folder");
  app.add_option("--name", o->name, "Name of the fitted spec [the frame's]");
  app.add_option("--title", o->title, "Title of the fitted spec [the frame's]");
  app.add_option("-o,--output", o->out, "Fitted spec; - is standard output")->capture_default_str();
  add_format_options(app, o->format);
  app.group("Fit",
            {"--kernels-only", "--sigma", "--curve-points", "--power-only", "--no-validation"});
  app.footer("The fitted spec carries its errors on points and kernels that were held out.");
  return [o, &app](const RunContext& context) {
    if (!o->captures.captures.empty()) return fit_captured(*o, app);
    if (!o->shipped.empty()) {
      if (!o->sweep.file.empty() || !o->gpu.empty())
        throw UsageError("--shipped says itself which SWEEP and --gpu: leave them out");
      refuse_options(app, "--shipped",
                     {"--idle", "--column", "--where", "--keep-implausible", "--kernels-only",
                      "--sigma", "--curve-points", "--power-only", "--name", "--title", "--power",
                      "--power-gpu", "--power-period", "--power-zone"});
      return fit_shipped(*o, context);
    }
    if (o->sweep.file.empty()) throw UsageError("give a SWEEP, or captures with --captures");
    return write_fit(*o, fit_sweep(*o, context));
  };
}

}  // namespace rubato
