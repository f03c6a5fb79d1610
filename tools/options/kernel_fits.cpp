#include "tools/options/kernel_fits.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "models/validation/model_errors.hpp"

namespace rubato {

namespace {

// Errors of kernels on points that were left out of their fit, with the GPU as it is.
std::vector<ValidatedPoint> own_points_left_out(const GpuSpec& frame, const Sweep& sweep,
                                                const SweepFitOptions& fit,
                                                const RunContext& context) {
  constexpr std::size_t enough_points = 4;  // of which three at least stay in each fit
  Sweep tested = sweep;
  std::erase_if(tested.kernels,
                [](const SweepKernel& kernel) { return kernel.points.size() < enough_points; });
  if (tested.kernels.empty()) return {};
  return validate(frame, tested, {.holdout = Holdout::own_folds, .fit = fit}, context);
}

}  // namespace

void add_errors(const std::string& prefix, const std::vector<ValidatedPoint>& points,
                const SweepFitOptions& fit, GpuSpec& spec) {
  const ErrorSummary errors = summarise(prefix, points);
  for (const auto& [what, quantiles] :
       {std::pair{"power", errors.power}, {"time", errors.time}, {"energy", errors.energy}}) {
    if (quantiles.count > 0)
      spec.fit_errors[fmt::format("{}_{}_mape_pct", prefix, what)] = quantiles.mean;
    if (fit.power_only) break;
  }
}

SweepFit fit_kernels_only(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& options,
                          bool validated, const RunContext& context) {
  if (sweep.kernels.empty())
    throw DataError(fmt::format("{}: idle power alone fits no kernel", printable(sweep.file)));
  SweepFit fit;
  fit.spec = frame;
  drop_reported_errors(fit.spec);
  std::vector<ValidatedPoint> unseen;
  if (validated) unseen = own_points_left_out(frame, sweep, options, context);
  if (!unseen.empty()) raise_errors(unseen, fit.spec);
  const RelativeErrors errors = cell_errors(fit.spec);
  fit.spec = with_kernels(fit.spec, sweep, options, errors.time, errors.energy);
  if (!unseen.empty()) add_errors("k_fold", unseen, options, fit.spec);
  fit.spec.sources["kernels"] = fmt::format(
      "{} of them fitted by rubato {} calibrate --kernels-only to {} points of {}; "
      "others: {}",
      sweep.kernels.size(), program_version(), sweep.points(), sweep.file,
      frame.sources.at("kernels"));
  if (unseen.empty() && validated)
    fit.notes.emplace_back(
        "No kernel has four points: how far its times and powers are off elsewhere is not known.");
  return fit;
}

}  // namespace rubato
