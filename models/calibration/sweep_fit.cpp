#include "models/calibration/sweep_fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/version.hpp"
#include "models/calibration/kernel_information.hpp"
#include "models/calibration/sweep_problem.hpp"
#include "models/gpu/ensemble.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// ---- The frame of a full fit ----

// At most twelve of the swept clocks, evenly spread and never closer than a
// fortieth of the range.
std::vector<double> curve_points(const std::vector<double>& clocks) {
  constexpr std::size_t most = 12;
  constexpr double closest = 1.0 / 40.0;
  std::vector<double> points;
  const double span = clocks.back() - clocks.front();
  for (std::size_t i = 0; i < most; ++i) {
    const double wanted =
        clocks.front() + span * static_cast<double>(i) / static_cast<double>(most - 1);
    const double nearest = *std::ranges::min_element(
        clocks, {}, [&](double clock) { return std::abs(clock - wanted); });
    if (points.empty() || nearest - points.back() > closest * span) points.push_back(nearest);
  }
  if (points.back() < clocks.back()) points.push_back(clocks.back());
  return points;
}

double least_power_w(const Sweep& sweep) {
  double least = 1e9;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points)
      least = std::min(least, point.power_w.value_or(least));
  }
  return least;
}

std::vector<double> checked_curve_points(const std::vector<double>& points) {
  if (points.size() < 2 ||
      std::ranges::adjacent_find(points, std::greater_equal<>{}) != points.end())
    throw UsageError(
        fmt::format("the points of the voltage curve are {} MHz; expected two or more "
                    "that ascend",
                    fmt::join(points, ", ")));
  return points;
}

// The start of a fit: neutral values that depend only on constants of the GPU and the least power
// seen, so that a fit does not depend on an earlier one.
GpuSpec neutral_frame(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& options) {
  GpuSpec spec = frame;
  spec.kernels.clear();
  spec.ensemble.clear();
  const std::vector<double> clocks = swept_core_mhz(sweep);
  if (clocks.empty())
    throw DataError(fmt::format("{}: no row has a core clock in MHz", sweep.file));
  const double lowest = clocks.front(), highest = clocks.back(), least_w = least_power_w(sweep);
  const std::vector<double> points = options.curve_core_mhz.empty()
                                         ? curve_points(clocks)
                                         : checked_curve_points(options.curve_core_mhz);
  spec.voltage = {points, {1.0}};
  constexpr double flat_step = 0.02, steep_step = 0.10;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double x = (points[i] - lowest) / std::max(highest - lowest, 1.0);
    spec.voltage.relative_v.push_back(spec.voltage.relative_v.back() + flat_step +
                                      steep_step * x * x);
  }

  const MemState& top = *std::ranges::max_element(spec.mem_states, {}, &MemState::bandwidth_gbs);
  const double top_mhz = top.mem_mhz, top_gbs = top.bandwidth_gbs;
  constexpr double base_share = 0.35, clock_share = 0.1, leakage_share = 0.1,
                   crossbar_reserve = 3.0;
  for (MemState& state : spec.mem_states) {
    state.base_power_w = base_share * least_w * std::pow(state.mem_mhz / top_mhz, 0.6);
    state.voltage_scale = 1.0;
  }
  spec.shared.leakage_w = leakage_share * least_w;
  spec.shared.clock_w_per_mhz = clock_share * least_w / highest;
  spec.power_limit.regulated_frac = 0.98;
  if (options.power_only) return spec;

  spec.core.requested_mhz.clear();
  spec.core.effective_mhz.clear();
  if (constexpr double far_below = 0.25; lowest < far_below * highest) {
    spec.core.requested_mhz = {lowest, 2.0 * lowest};
    spec.core.effective_mhz = {lowest, 2.0 * lowest};
  }
  spec.crossbar = {points, std::vector<double>(points.size(), 1.0)};
  spec.shared.crossbar_bytes_per_cycle = crossbar_reserve * top_gbs * 1e3 / highest;
  constexpr double full_traffic_w = 60.0;
  spec.shared.dram_nj_per_byte = full_traffic_w / top_gbs;
  spec.shared.bandwidth_exponent = 6.0;
  spec.shared.overlap_exponent = 4.0;
  return spec;
}

double interval_factor(double sigma) { return std::exp(1.96 * sigma); }

// The Gaussian knows nothing of bounds: core cycles hidden behind DRAM time, for example, may be
// any number below it. So draws that fit far worse are pulled in: first the shared parameters, then
// kernel by kernel.
ArrowPoint pulled_in(const ArrowProblem& problem, const ArrowPoint& best, const ArrowResiduals& at,
                     double variance, ArrowPoint draw) {
  constexpr double shorter = 0.7;
  constexpr int most_pulls = 20;
  const double allowed = 2.0 * variance * static_cast<double>(draw.shared.size());
  for (int i = 0; i < most_pulls; ++i) {
    const ArrowPoint moved{best.shared + draw.shared, best.blocks};
    if (problem.residuals(moved, {}).cost() <= at.cost() + allowed) break;
    draw.shared *= shorter;
  }
  const VectorXd costs = block_costs(problem, at);
  constexpr double allowed_block = 2.0 * static_cast<double>(kernel_parameters);
  for (int i = 0; i < most_pulls; ++i) {
    const VectorXd moved =
        block_costs(problem, problem.residuals({best.shared, best.blocks + draw.blocks}, {}));
    bool done = true;
    for (Index k = 0; k < costs.size(); ++k) {
      if (moved[k] <= costs[k] + allowed_block * variance) continue;
      draw.blocks.col(k) *= shorter;
      done = false;
    }
    if (done) break;
  }
  return draw;
}

// Notes what the sweep cannot tell of the voltage: a curve that hardly rises up to its top, and
// clocks beyond its last point.
void note_voltage(const GpuSpec& spec, std::vector<std::string>& notes) {
  constexpr double rises = 1.05;
  const VoltageCurve& curve = spec.voltage;
  if (curve.relative_v.back() < rises) {
    notes.push_back(
        fmt::format("voltage: rises by {:.1f} % only up to {} MHz; a knee, if there is one, lies "
                    "outside the sweep",
                    100.0 * (curve.relative_v.back() - 1.0), format_number(curve.core_mhz.back())));
  }
  if (curve.core_mhz.back() < spec.core.max_mhz) {
    notes.push_back(fmt::format("voltage: extrapolated from {} to {} MHz",
                                format_number(curve.core_mhz.back()),
                                format_number(spec.core.max_mhz)));
  }
}

// With the coefficients of a fitted point.
std::vector<CalibratedKernel> kernels_at(const ArrowPoint& point, const Sweep& sweep) {
  std::vector<CalibratedKernel> kernels;
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    kernels.push_back({.name = sweep.kernels[k].name,
                       .kind = sweep.kernels[k].kind,
                       .flops = {},
                       .dram_bytes = {},
                       .gemm = {},
                       .coefficients = make_coefficients(point.blocks.col(static_cast<Index>(k)))});
  }
  return kernels;
}

// ---- The steps of a full fit ----

// The best point: descents, and restarts of all kernels for as long as these gain something.
ArrowPoint best_point(const SweepProblem& sweep_problem, const SweepFitOptions& options,
                      const RunContext& context) {
  constexpr int iterations = 40;
  const ArrowProblem& problem = sweep_problem.problem();
  ArrowPoint point = fit_arrow(problem, sweep_problem.start(), iterations);
  double cost = problem.residuals(point, {}).cost();
  for (int round = 0; round < options.rounds && !context.stop_requested(); ++round) {
    context.report({.done = static_cast<std::size_t>(round) + 1,
                    .total = static_cast<std::size_t>(options.rounds) + 1,
                    .note = fmt::format("cost {:.1f}", cost)});
    const double before = cost;
    point = sweep_problem.restart(point);
    cost = problem.residuals(point, {}).cost();
    if (constexpr double enough_gain = 1e-4; cost > before * (1.0 - enough_gain)) break;
    point = fit_arrow(problem, std::move(point), iterations);
    cost = problem.residuals(point, {}).cost();
  }
  return point;
}

GpuSpec fitted_spec(const SweepProblem& problem, const ArrowPoint& point, const Sweep& sweep,
                    const SweepFitOptions& options) {
  GpuSpec spec = problem.spec_at(point.shared);
  spec.calibrated = !options.power_only;
  std::ranges::move(kernels_at(point, sweep), std::back_inserter(spec.kernels));
  const std::string source = fmt::format("fitted by rubato {} calibrate on {} kernels, {} points{}",
                                         program_version(), sweep.kernels.size(), sweep.points(),
                                         sweep.gpu.empty() ? "" : " of " + sweep.gpu);
  for (const char* key : {"core_power", "kernels"}) spec.sources[key] = source;
  if (!options.power_only) spec.sources["memory"] = source;
  const std::vector<double> clocks = swept_core_mhz(sweep);
  spec.fitted_range =
      FittedRange{clocks.front(), clocks.back(), sweep.kernels.size(), sweep.points()};
  return spec;
}

// Variance of the residuals, in units of the expected one (reduced chi-squared); at least 1.
double residual_variance(const ArrowPoint& point, const ArrowResiduals& residuals,
                         std::size_t values) {
  const auto parameters = static_cast<std::size_t>(point.blocks.size() + point.shared.size());
  const auto freedom = static_cast<double>(values - std::min(values - 1, parameters));
  return std::max(1.0, residuals.blocks.squaredNorm() / freedom);
}

std::vector<FittedParameter> fitted_parameters(const SweepProblem& problem, const ArrowPoint& point,
                                               const VectorXd& sigma) {
  constexpr double mostly_prior = 0.7;
  std::vector<FittedParameter> parameters;
  for (Index j = 0; j < sigma.size(); ++j) {
    const SpecParameter& parameter = problem.parameters()[static_cast<std::size_t>(j)];
    const double value = std::exp(point.shared[j]);
    parameters.push_back({parameter.name, parameter.unit, value, value / interval_factor(sigma[j]),
                          value * interval_factor(sigma[j]),
                          sigma[j] < mostly_prior * parameter.prior_sigma});
  }
  return parameters;
}

// A draw as it is kept in a spec.
std::vector<double> kept_draw(const ArrowPoint& draw) {
  constexpr Index most_kernels = 64;  // beyond, draws hold what kernels share only
  std::vector<double> member(draw.shared.begin(), draw.shared.end());
  if (draw.blocks.cols() <= most_kernels) {
    for (const double value : draw.blocks.reshaped()) member.push_back(value);
  }
  // Four decimals are far below what the draws differ by.
  for (double& value : member) value = std::round(value * 1e4) / 1e4;
  return member;
}

}  // namespace

std::vector<double> swept_core_mhz(const Sweep& sweep) {
  std::vector<double> clocks;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points) {
      if (point.clock.core_mhz) clocks.push_back(*point.clock.core_mhz);
    }
  }
  std::ranges::sort(clocks);
  clocks.erase(std::unique(clocks.begin(), clocks.end()), clocks.end());
  return clocks;
}

OperatingPoint predict(const GpuSpec& spec, const KernelCoefficients& kernel,
                       const SweepPoint& point, bool applied_clock) {
  return limited_point(spec, kernel, spec.mem_states[index(point.clock.mem)],
                       clock_state(spec, point.clock, applied_clock),
                       point.power_cap_w.value_or(spec.power_limit.limit_w));
}

MatrixXd point_sensitivity(const GpuSpec& spec, const KernelCoefficients& kernel,
                           const SweepPoint& point, bool applied_clock) {
  constexpr double difference = 1e-5;
  const auto logs = [&](const KernelCoefficients& c) {
    const OperatingPoint found = predict(spec, c, point, applied_clock);
    return Eigen::Vector2d(std::log(found.time_s), std::log(found.energy_j / found.time_s));
  };
  const VectorXd at = read_coefficients(kernel);
  const Eigen::Vector2d now = logs(kernel);
  MatrixXd out(2, kernel_parameters);
  for (Index j = 0; j < kernel_parameters; ++j) {
    VectorXd moved = at;
    moved[j] += difference;
    out.col(j) = (logs(make_coefficients(moved)) - now) / difference;
  }
  return out;
}

SweepFit calibrate_sweep(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& options,
                         const RunContext& context) {
  const SweepProblem sweep_problem(neutral_frame(frame, sweep, options), sweep, options, nullptr);
  const ArrowProblem& problem = sweep_problem.problem();
  const ArrowPoint point = best_point(sweep_problem, options, context);
  SweepFit fit{fitted_spec(sweep_problem, point, sweep, options), {}, {}};

  const ArrowResiduals residuals = problem.residuals(point, {});
  const double variance = residual_variance(point, residuals, 2 * sweep.points());
  const ArrowPosterior posterior(arrow_normal(problem, point, residuals), variance);
  fit.parameters = fitted_parameters(sweep_problem, point, posterior.shared_sigma());
  note_voltage(fit.spec, fit.notes);

  std::mt19937_64 random(20260113);
  std::normal_distribution<double> gaussian;
  for (int i = 0; i < options.ensemble; ++i) {
    fit.spec.ensemble.push_back(kept_draw(pulled_in(
        problem, point, residuals, variance, posterior.draw([&] { return gaussian(random); }))));
  }
  fit.spec.sources["uncertainty"] =
      "draws from the Gaussian around the fit, its width scaled by the residuals";
  return fit;
}

std::vector<CalibratedKernel> fit_kernels(const GpuSpec& spec, const Sweep& sweep,
                                          const SweepFitOptions& options) {
  // Times repeat better than powers, and the form follows them closer; with less room the prior
  // pulls less. Chosen on points left out of eight sweeps: docs/models.md, section 6.
  constexpr double times_of_powers = 0.5;
  SweepFitOptions closer = options;
  closer.time_sigma *= times_of_powers;
  const SweepProblem problem(spec, sweep, closer, &spec);
  const ArrowPoint point = problem.restart(problem.start());
  return kernels_at(point, sweep);
}

GpuSpec with_kernels(GpuSpec spec, const Sweep& sweep, const SweepFitOptions& options,
                     double time_error, double power_error) {
  const std::vector<CalibratedKernel> fitted = fit_kernels(spec, sweep, options);
  SweepFitOptions errors = options;
  errors.time_sigma = std::max(options.time_sigma, time_error);
  errors.power_sigma = std::max(options.power_sigma, power_error);
  const auto shared = static_cast<Index>(parameter_count(spec));
  const auto is_new = [&](const std::string& name) {
    return std::ranges::find(fitted, name, &CalibratedKernel::name) != fitted.end();
  };
  std::vector<std::vector<double>> ensemble(static_cast<std::size_t>(options.ensemble));
  parallel_for(ensemble.size(), [&](std::size_t m) {
    std::mt19937_64 random(20260113 + m);
    std::normal_distribution<double> gaussian;
    const GpuSpec member = ensemble_member(spec, m);
    // What the spec's kernels are like is known as the spec has it.
    SweepProblem problem(member, sweep, errors, &spec);
    problem.perturb([&] { return gaussian(random); });
    const ArrowPoint draw = problem.restart(problem.start());
    VectorXd offsets = read_parameters(member) - read_parameters(spec);
    std::vector<double>& out = ensemble[m];
    out.assign(offsets.begin(), offsets.begin() + shared);
    for (std::size_t k = 0; k < spec.kernels.size(); ++k) {
      if (is_new(spec.kernels[k].name)) continue;
      offsets = read_coefficients(member.kernels[k].coefficients) -
                read_coefficients(spec.kernels[k].coefficients);
      out.insert(out.end(), offsets.begin(), offsets.end());
    }
    for (std::size_t k = 0; k < fitted.size(); ++k) {
      offsets = draw.blocks.col(static_cast<Index>(k)) - read_coefficients(fitted[k].coefficients);
      out.insert(out.end(), offsets.begin(), offsets.end());
    }
    for (double& value : out) value = std::round(value * 1e4) / 1e4;
  });
  std::erase_if(spec.kernels, [&](const CalibratedKernel& old) { return is_new(old.name); });
  spec.kernels.insert(spec.kernels.end(), fitted.begin(), fitted.end());
  spec.ensemble = std::move(ensemble);
  std::size_t fewest = sweep.kernels.front().points.size();
  for (const SweepKernel& kernel : sweep.kernels) fewest = std::min(fewest, kernel.points.size());
  spec.fit_errors[kernel_points_key] = static_cast<double>(fewest);
  spec.sources["uncertainty"] =
      "draws of the GPU around its fit; kernels fitted to points and priors moved by their errors";
  return spec;
}

std::vector<KernelPosterior> kernel_posteriors(const GpuSpec& spec, const Sweep& sweep,
                                               const SweepFitOptions& options) {
  const SweepProblem problem(spec, sweep, options, &spec);
  const ArrowPoint point = problem.restart(problem.start());
  const ArrowNormal normal =
      arrow_normal(problem.problem(), point, problem.problem().residuals(point, {}), false);
  std::vector<KernelPosterior> out;
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k)
    out.push_back({make_coefficients(point.blocks.col(static_cast<Index>(k))), normal.own[k]});
  return out;
}

}  // namespace rubato
