// rubato validate: how far a model is from measurements it has not seen.

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/error.hpp"
#include "models/utilisation_power.hpp"
#include "models/validation.hpp"
#include "tools/command.hpp"
#include "tools/output.hpp"
#include "tools/sweep_options.hpp"

namespace rubato {

namespace {

OutputTable summary_table(const std::vector<ErrorSummary>& summaries) {
  OutputTable table({{"group"},
                     {"points"},
                     {"time_mape_pct", "time %", 2},
                     {"time_p50_pct", "p50", 2},
                     {"time_p90_pct", "p90", 2},
                     {"time_worst_pct", "worst", 1},
                     {"power_mape_pct", "power %", 2},
                     {"power_p50_pct", "p50", 2},
                     {"power_p90_pct", "p90", 2},
                     {"power_worst_pct", "worst", 1},
                     {"energy_mape_pct", "energy %", 2},
                     {"energy_p50_pct", "p50", 2},
                     {"energy_p90_pct", "p90", 2},
                     {"energy_worst_pct", "worst", 1}});
  for (const ErrorSummary& s : summaries) {
    std::vector<Cell> row{s.group,
                          static_cast<std::int64_t>(std::max(s.time.count, s.power.count))};
    for (const ErrorQuantiles* q : {&s.time, &s.power, &s.energy}) {
      for (const double value : {q->mean, q->p50, q->p90, q->worst})
        row.push_back(q->count > 0 ? Cell(value) : Cell());
    }
    table.add_row(std::move(row));
  }
  return table;
}

// Powers of a utilisation model; nothing is fitted.
std::vector<ErrorSummary> utilisation_summaries(const GpuSpec& spec, const SweepOptions& options) {
  std::vector<ValidatedPoint> points;
  const UtilisationSweep sweep = read_utilisation_sweep(options.file, spec, sweep_columns(options));
  for (const UtilisationPoint& point : sweep.points) {
    SweepPoint measured;
    measured.clock = point.clock;
    measured.power_w = point.power_w;
    points.push_back(
        {point.kernel, measured, {.time_s = 1.0, .energy_j = utilisation_power_w(spec, point)}});
  }
  return summaries(spec, points);
}

}  // namespace

Action setup_validate(CLI::App& app) {
  struct Options {
    SweepOptions sweep;
    std::string gpu = "rtx-3080-ti";
    std::size_t folds = 5, points = 5;
    bool known = false, k_fold = false, leave_kernels_out = false, power_caps = false;
    double sigma = 0.01;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  add_sweep_options(app, o->sweep);
  app.add_option("--gpu", o->gpu, "Spec: a shipped name or a file")->capture_default_str();
  app.add_option("--points", o->points, "Measured points a kernel is fitted to")
      ->capture_default_str();
  app.add_option("--folds", o->folds, "Folds, or groups of kernels")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000));
  auto* known =
      app.add_flag("--known", o->known, "Kernels by name from the spec; nothing is fitted");
  auto* k_fold =
      app.add_flag("--k-fold", o->k_fold, "Fit everything anew without each fold of the points")
          ->excludes(known);
  auto* leave = app.add_flag("--leave-kernels-out", o->leave_kernels_out,
                             "Fit the GPU anew without each group of kernels, those from --points")
                    ->excludes(known)
                    ->excludes(k_fold);
  app.add_flag("--power-caps", o->power_caps,
               "Fit anew under the largest power_cap_w, test the others")
      ->excludes(known)
      ->excludes(k_fold)
      ->excludes(leave);
  app.add_option("--sigma", o->sigma, "Relative error of a measurement that the fit may leave")
      ->capture_default_str();
  add_format_options(app, o->format);
  return [o](const RunContext& context) {
    const GpuSpec spec = load_gpu_spec(o->gpu);
    if (spec.utilisation && is_utilisation_sweep(o->sweep.file)) {
      print(summary_table(utilisation_summaries(spec, o->sweep)).render(o->format));
      return ExitStatus::done;
    }
    const Sweep sweep = load_sweep(o->sweep, spec);
    const Holdout holdout = o->known               ? Holdout::known
                            : o->k_fold            ? Holdout::folds
                            : o->leave_kernels_out ? Holdout::kernels
                            : o->power_caps        ? Holdout::power_caps
                                                   : Holdout::few_points;
    const auto points = validate(spec, sweep,
                                 {.holdout = holdout,
                                  .points = o->points,
                                  .folds = o->folds,
                                  .fit = {.time_sigma = o->sigma, .power_sigma = o->sigma}},
                                 context);
    print(summary_table(summaries(spec, points)).render(o->format));
    return ExitStatus::done;
  };
}

}  // namespace rubato
