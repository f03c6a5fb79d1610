#include "models/validation/measurement_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "models/calibration/kernel_information.hpp"
#include "models/gpu/spec_parameters.hpp"
#include "models/linear/linear_algebra.hpp"
#include "models/validation/model_errors.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// What is known of a kernel, what the changes in question depend on, and what each clock would add.
struct KernelDesign {
  MatrixXd precision;            ///< inverse covariance of the coefficients' logarithms
  MatrixXd moment;               ///< mean outer square of the changes' slopes by these
  std::vector<MatrixXd> gained;  ///< shape [clocks], precision (information) a measurement adds
};

// Prior precision of a kernel's coefficients: measured ones are known to about the error of the
// spec's cells, derived or guessed ones less well. The last three hardly ever move.
MatrixXd prior_precision(const GpuModel& model, const Kernel& kernel, KernelId id) {
  const double work = std::max(coefficient_error(model.spec(), kernel, model.source(id)),
                               cell_errors(model.spec()).energy);
  VectorXd sigma(kernel_parameters);
  sigma << work, work, 1.0, work, 0.02, 0.3, 0.1;
  return sigma.cwiseInverse().cwiseAbs2().asDiagonal();
}

// Slope of the change of time and of energy, from the usual clock to the planned one, by the
// coefficients' logarithms, as a share of `whole`. Columns: time, energy.
MatrixXd change_slope(const GpuModel& model, const KernelCoefficients& kernel,
                      const ClockPair& planned, const ClockPair& usual, const Cost& whole) {
  constexpr double difference = 1e-5;
  const auto change = [&](const KernelCoefficients& c) {
    const auto at = [&](const ClockPair& clock) {
      return operating_point(model.spec(), c, clock, model.power_limit_w());
    };
    const OperatingPoint before = at(usual), after = at(planned);
    return Eigen::Vector2d((after.time_s - before.time_s) / whole.time_s,
                           (after.energy_j - before.energy_j) / whole.energy_j);
  };
  const VectorXd at = read_coefficients(kernel);
  const Eigen::Vector2d now = change(kernel);
  MatrixXd slope(kernel_parameters, 2);
  for (Index j = 0; j < kernel_parameters; ++j) {
    VectorXd moved = at;
    moved[j] += difference;
    slope.row(j) = (change(make_coefficients(moved)) - now) / difference;
  }
  return slope;
}

// Mean square of the slopes: half for the plan's clock, half for all clocks that may be measured.
// Where the plan is the default, or will change with what is measured, its own change alone would
// say nothing.
MatrixXd moment_of_changes(const GpuModel& model, const KernelCoefficients& kernel,
                           const ClockPair& planned, const ClockPair& usual,
                           std::span<const ClockPair> others, const Cost& whole) {
  const auto square = [&](const ClockPair& clock) {
    const MatrixXd slope = change_slope(model, kernel, clock, usual, whole);
    return MatrixXd(0.5 * slope * slope.transpose());
  };
  MatrixXd moment = 0.5 * square(planned);
  for (const ClockPair& other : others)
    moment += 0.5 / static_cast<double>(others.size()) * square(other);
  return moment;
}

double variance(const KernelDesign& kernel, const MatrixXd& precision) {
  return solve_symmetric(precision, kernel.moment).trace();
}

// The clock in effect, kHz, rounded: fitted boost clocks differ by rounding errors.
std::pair<MemStateId, std::int64_t> effect_of(const GpuSpec& spec, const ClockPair& clock) {
  constexpr double khz = 1e3;
  return {clock.mem, std::llround(khz * effective_core_mhz(spec, clock))};
}

// Clocks within the fitted range, one request for each clock in effect; all clocks if none is.
std::vector<ClockId> candidates(const GpuSpec& spec, const ClockGrid& grid) {
  std::vector<ClockId> inside;
  std::vector<std::pair<MemStateId, std::int64_t>> seen;
  for (const bool any_range : {false, true}) {
    for (std::size_t c = 0; c < grid.size(); ++c) {
      const ClockPair& clock = grid.pairs()[c];
      const auto effect = effect_of(spec, clock);
      if (std::ranges::find(seen, effect) != seen.end()) continue;
      constexpr double same_clock = 1e-6;
      const double core_mhz = effective_core_mhz(spec, clock);
      const bool fitted =
          !spec.fitted_range || (core_mhz >= spec.fitted_range->min_core_mhz * (1.0 - same_clock) &&
                                 core_mhz <= spec.fitted_range->max_core_mhz * (1.0 + same_clock));
      if (!fitted && !any_range) continue;
      inside.push_back(id_at<ClockId>(c));
      seen.push_back(effect);
    }
    if (!inside.empty()) break;
  }
  return inside;
}

// Position among `ids` of the clock in effect at the default clocks; nothing if it was measured.
std::optional<std::size_t> unmeasured_default(const GpuSpec& spec, const ClockGrid& grid,
                                              const std::vector<ClockId>& ids,
                                              const Sweep* measured) {
  const auto usual = effect_of(spec, grid[grid.default_clock()]);
  if (measured != nullptr) {
    for (const SweepKernel& kernel : measured->kernels) {
      const auto is_usual = [&](const SweepPoint& p) { return effect_of(spec, p.clock) == usual; };
      if (std::ranges::any_of(kernel.points, is_usual)) return std::nullopt;
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (effect_of(spec, grid[ids[i]]) == usual) return i;
  }
  return std::nullopt;
}

// Which clocks a step may choose. Changing one axis at a time tells core and memory apart whatever
// the kernels are like: after the default clocks (step 0) others of the same memory clock, then the
// highest of another memory clock, then any.
std::vector<bool> axis_clocks(const GpuSpec& spec, const std::vector<ClockPair>& clocks,
                              std::size_t usual, std::size_t step) {
  const auto mem_mhz = [&](const ClockPair& clock) {
    return spec.mem_states[index(clock.mem)].mem_mhz;
  };
  std::vector<bool> open(clocks.size(), false);
  for (std::size_t c = 0; c < clocks.size(); ++c) {
    const bool same = mem_mhz(clocks[c]) == mem_mhz(clocks[usual]);
    const auto higher = [&](const ClockPair& other) {
      return other.mem == clocks[c].mem &&
             effective_core_mhz(spec, other) > effective_core_mhz(spec, clocks[c]);
    };
    if (step == 1) open[c] = same && c != usual;
    if (step == 2) open[c] = !same && std::ranges::none_of(clocks, higher);
  }
  if (std::ranges::find(open, true) == open.end()) open.assign(clocks.size(), true);
  return open;
}

Cost default_cost(const GpuModel& model, const PlannedKernels& plan, const ClockPair& usual) {
  Cost whole;
  for (std::size_t k = 0; k < model.kernels(); ++k) {
    const OperatingPoint point = model.evaluate(id_at<KernelId>(k), usual);
    whole.time_s += plan.launches[k] * point.time_s;
    whole.energy_j += plan.launches[k] * point.energy_j;
  }
  return whole;
}

// Variance of the changes, with one more measurement of every kernel at `clock`, if one is given.
double variance_of_saving(const std::vector<KernelDesign>& designs,
                          const std::optional<std::size_t>& clock) {
  double sum = 0.0;
  for (const KernelDesign& design : designs) {
    sum += variance(design,
                    clock ? MatrixXd(design.precision + design.gained[*clock]) : design.precision);
  }
  return sum;
}

double variance_with_all(const std::vector<KernelDesign>& designs) {
  double sum = 0.0;
  for (const KernelDesign& design : designs) {
    MatrixXd all = design.precision;
    for (const MatrixXd& gained : design.gained) all += gained;
    sum += variance(design, all);
  }
  return sum;
}

}  // namespace

MeasurementPlan suggest_measurements(const GpuModel& model, const Trace& trace,
                                     const ClockGrid& grid, const PlannedKernels& plan,
                                     const Sweep* measured, double noise, std::size_t count) {
  if (!(noise > 0.0)) throw UsageError("the noise of a measurement must be > 0");
  std::vector<KernelDesign> designs(trace.kernels.size());
  const ClockPair& usual = grid[grid.default_clock()];
  const Cost whole = default_cost(model, plan, usual);
  const std::vector<ClockId> ids = candidates(model.spec(), grid);
  std::vector<ClockPair> clocks;
  for (const ClockId id : ids) clocks.push_back(grid[id]);
  std::vector<KernelPosterior> known;
  if (measured != nullptr) {
    known = kernel_posteriors(model.spec(), *measured, {.time_sigma = noise, .power_sigma = noise});
  }
  parallel_for(designs.size(), [&](std::size_t k) {
    const auto id = id_at<KernelId>(k);
    KernelDesign& design = designs[k];
    const KernelCoefficients& c = model.coefficients(id);
    design.precision = prior_precision(model, trace.kernels[k], id);
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (measured->kernels[i].name == trace.kernels[k].name) design.precision = known[i].precision;
    }
    design.moment = plan.launches[k] * plan.launches[k] *
                    moment_of_changes(model, c, grid[plan.clock[k]], usual, clocks, whole);
    for (const ClockPair& clock : clocks) {
      const SweepPoint point{.clock = clock,
                             .time_s = {},
                             .power_w = {},
                             .power_cap_w = model.power_limit_w(),
                             .dram_bytes = {}};
      const MatrixXd by_coefficient = point_sensitivity(model.spec(), c, point, false) / noise;
      design.gained.emplace_back(by_coefficient.transpose() * by_coefficient);
    }
  });
  const auto sigma_pct = [](double squared) { return 100.0 * std::sqrt(squared); };
  MeasurementPlan out;
  out.sigma_now_pct = sigma_pct(variance_of_saving(designs, {}));
  out.sigma_full_pct = sigma_pct(variance_with_all(designs));
  std::vector<bool> chosen(clocks.size(), false);
  const std::optional<std::size_t> usual_first =
      unmeasured_default(model.spec(), grid, ids, measured);
  for (std::size_t step = 0; step < std::min(count, clocks.size()); ++step) {
    std::vector<double> after(clocks.size(), std::numeric_limits<double>::infinity());
    const std::vector<bool> open = usual_first
                                       ? axis_clocks(model.spec(), clocks, *usual_first, step)
                                       : std::vector<bool>(clocks.size(), true);
    parallel_for(clocks.size(), [&](std::size_t c) {
      if (!chosen[c] && open[c]) after[c] = variance_of_saving(designs, c);
    });
    // The default clocks come first: all changes are against them.
    const auto best =
        step == 0 && usual_first
            ? *usual_first
            : static_cast<std::size_t>(std::ranges::min_element(after) - after.begin());
    chosen[best] = true;
    for (KernelDesign& design : designs) design.precision += design.gained[best];
    out.points.push_back({ids[best], sigma_pct(after[best])});
  }
  return out;
}

}  // namespace rubato
