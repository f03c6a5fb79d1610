#include "models/calibration/capture_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <Eigen/Core>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/version.hpp"
#include "models/gpu/spec_parameters.hpp"
#include "models/kernel/anchor.hpp"
#include "models/kernel/model.hpp"
#include "models/linear/levenberg_marquardt.hpp"
#include "models/linear/linear_algebra.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index fitted_times = 3;  // core cycles, DRAM bytes, fixed time: first of the coefficients

OperatingPoint point_at(const GpuSpec& spec, const KernelCoefficients& kernel,
                        const ClockPair& clock) {
  return operating_point(spec, kernel, clock, spec.power_limit.limit_w);
}

// One kernel's times at several clocks as a least squares problem in logarithms.
class KernelTimes {
 public:
  KernelTimes(const GpuSpec& spec, std::span<const CaptureObservation> captures, std::size_t kernel)
      : spec_(spec) {
    for (const CaptureObservation& capture : captures) {
      if (const auto& time = capture.times[kernel]) seen_.push_back({capture.clock, *time});
    }
  }

  [[nodiscard]] bool empty() const { return seen_.empty(); }
  [[nodiscard]] CapturePoint first() const {
    return {seen_.front().clock, seen_.front().time.time_s, spec_.power_limit.limit_w};
  }

  // Residuals of times, then of the prior: the distance of the three logarithms to `prior`. It is
  // wide, since splits are open.
  [[nodiscard]] VectorXd residuals(const KernelCoefficients& prior, const VectorXd& logs) const {
    static const Eigen::Vector3d sigma(1.5, 1.5, 1.0);
    const auto points = static_cast<Index>(seen_.size());
    VectorXd out(points + fitted_times);
    const KernelCoefficients kernel = with_times(prior, logs);
    for (Index i = 0; i < points; ++i) {
      const auto& [clock, time] = seen_[static_cast<std::size_t>(i)];
      out[i] = std::log(point_at(spec_, kernel, clock).time_s / time.time_s) / time.relative_error;
    }
    out.tail(fitted_times) =
        (logs - read_coefficients(prior).head(fitted_times)).cwiseQuotient(sigma);
    return out;
  }

  [[nodiscard]] MatrixXd jacobian(const KernelCoefficients& prior, const VectorXd& logs) const {
    constexpr double difference = 1e-5;
    const VectorXd now = residuals(prior, logs);
    MatrixXd out(now.size(), fitted_times);
    for (Index j = 0; j < fitted_times; ++j) {
      VectorXd moved = logs;
      moved[j] += difference;
      out.col(j) = (residuals(prior, moved) - now) / difference;
    }
    return out;
  }

  [[nodiscard]] static KernelCoefficients with_times(const KernelCoefficients& kernel,
                                                     const VectorXd& logs) {
    VectorXd all = read_coefficients(kernel);
    all.head(fitted_times) = logs;
    return make_coefficients(all);
  }

  // Adds up |fitted / observed - 1| weighted by observed time, and the weights.
  void add_error(const KernelCoefficients& kernel, double& error_s, double& all_s) const {
    for (const auto& [clock, time] : seen_) {
      error_s += std::abs(point_at(spec_, kernel, clock).time_s - time.time_s);
      all_s += time.time_s;
    }
  }

 private:
  struct Seen {
    ClockPair clock;
    TypicalTime time;
  };
  const GpuSpec& spec_;
  std::vector<Seen> seen_;
};

// A kernel's coefficients, and how its three times may be off: a draw is the coefficients times the
// exponential of root x a vector of independent Gaussians.
struct FittedKernel {
  KernelCoefficients coefficients;
  MatrixXd root;  ///< shape [3 x 3]
};

FittedKernel fit_times(const KernelTimes& times, const KernelCoefficients& prior,
                       const std::vector<KernelCoefficients>& starts) {
  constexpr int iterations = 30;
  constexpr double most_step = 1.0;
  const LeastSquaresProblem problem{
      [&](const VectorXd& logs) { return times.residuals(prior, logs); },
      [&](const VectorXd& logs, const VectorXd&) { return times.jacobian(prior, logs); }};
  VectorXd best;
  double least = std::numeric_limits<double>::infinity();
  for (const KernelCoefficients& start : starts) {
    const VectorXd found = levenberg_marquardt(problem, read_coefficients(start).head(fitted_times),
                                               iterations, most_step);
    const double cost = problem.residuals(found).squaredNorm();
    if (cost >= least) continue;
    least = cost;
    best = found;
  }
  const MatrixXd slope = times.jacobian(prior, best);
  const MatrixXd covariance = inverse(transposed_product(slope, slope));
  return {KernelTimes::with_times(prior, best), cholesky_factor(covariance)};
}

void shift_base_power(GpuSpec& spec, double offset_w) {
  constexpr double least_w = 1.0;
  for (MemState& state : spec.mem_states)
    state.base_power_w = std::max(state.base_power_w + offset_w, least_w);
}

// Which GPU parameters the draws may move: those of power. Times were measured, so another
// bandwidth would only come with other bytes of every kernel.
std::vector<bool> power_parameters(const GpuSpec& spec) {
  std::vector<bool> chosen;
  for (const SpecParameter& parameter : spec_parameters(spec)) {
    const auto is = [&](const char* name) { return parameter.name.starts_with(name); };
    chosen.push_back(is("voltage") || is("leakage") || is("clock_power") || is("dram_energy") ||
                     is("base_power"));
  }
  return chosen;
}

// Sixteen draws. Of the GPU: those of its own ensemble. Of kernels: one vector of Gaussians and one
// error of core energy for a whole class, since what captures leave open of one kernel they leave
// open of all.
std::vector<std::vector<double>> draws_of(const GpuSpec& frame, const Trace& step,
                                          const std::vector<FittedKernel>& kernels,
                                          const PowerScales& scales) {
  constexpr std::size_t members = 16;
  std::mt19937_64 random(20260113);
  std::normal_distribution<double> gaussian;
  const std::size_t shared = parameter_count(frame), classes = all_names<KernelClass>().size();
  const std::vector<bool> of_power = power_parameters(frame);
  std::vector<std::vector<double>> draws;
  for (std::size_t i = 0; i < members; ++i) {
    std::vector<double>& draw = draws.emplace_back();
    for (std::size_t j = 0; j < shared; ++j)
      draw.push_back(frame.ensemble.empty() || !of_power[j]
                         ? 0.0
                         : frame.ensemble[i % frame.ensemble.size()][j]);
    std::vector<Eigen::Vector3d> common(classes);
    std::vector<double> energy(classes);
    for (std::size_t c = 0; c < classes; ++c) {
      for (double& value : common[c]) value = gaussian(random);
      energy[c] = scales.sigma[c] / scales.factor[c] * gaussian(random);
    }
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const auto kind = static_cast<std::size_t>(step.kernels[k].kind);
      const VectorXd times = product(kernels[k].root, common[kind]);
      const std::array<double, KernelCoefficients::count> own{
          times[0], times[1], times[2], energy[kind], 0.0, 0.0, 0.0};
      draw.insert(draw.end(), own.begin(), own.end());
    }
    // Four decimals are far below what the draws differ by.
    for (double& value : draw) value = std::round(value * 1e4) / 1e4;
  }
  return draws;
}

std::vector<ClassEnergy> class_energies(const Trace& step, const PowerScales& scales) {
  constexpr double mostly_prior = 0.7;
  std::vector<ClassEnergy> classes;
  for (std::size_t c = 0; c < all_names<KernelClass>().size(); ++c) {
    const auto kind = static_cast<KernelClass>(c);
    if (std::ranges::find(step.kernels, kind, &Kernel::kind) == step.kernels.end()) continue;
    const double sigma = scales.sigma[c], factor = scales.factor[c];
    classes.push_back({kind, factor, sigma / factor, sigma < mostly_prior * unread_core_energy});
  }
  return classes;
}

constexpr const char* power_error_key = "residual_power_mape_pct";
constexpr const char* captured_powers_key = "captures_with_power";

std::string captured_clock_key(std::size_t capture) {
  return fmt::format("capture_{}_core_mhz", capture + 1);
}

void write_errors(const CaptureFit& fit, std::span<const CaptureObservation> captures,
                  std::size_t logged, GpuSpec& spec) {
  spec.fit_errors["residual_time_mape_pct"] = percent * fit.time_error;
  spec.fit_errors.erase(captured_powers_key);  // of what the frame was fitted to
  if (logged > 0) {
    spec.fit_errors[power_error_key] = percent * fit.power_error;
    spec.fit_errors[captured_powers_key] = static_cast<double>(logged);
  }
  for (std::size_t i = 0; i < captures.size(); ++i)
    spec.fit_errors[captured_clock_key(i)] = effective_core_mhz(spec, captures[i].clock);
}

// All kernels of the step, each fitted to its times, with the core energies of `scales`.
std::vector<FittedKernel> fit_all_times(const GpuSpec& spec, const Trace& step,
                                        std::span<const CaptureObservation> captures,
                                        const PowerScales& scales, CaptureFit& fit) {
  std::vector<FittedKernel> kernels;
  double error_s = 0.0, all_s = 0.0;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    const KernelTimes times(spec, captures, k);
    // A kernel that only the reference knows keeps its time there, at the first capture's clock.
    const CapturePoint at =
        times.empty() ? CapturePoint{captures.front().clock, kernel.measured_time_s.value_or(1e-6),
                                     spec.power_limit.limit_w}
                      : times.first();
    std::vector<KernelCoefficients> starts;
    for (const double lean : {0.5, 0.02, 0.25, 0.75, 0.98}) {
      KernelCoefficients start = anchored(spec, kernel, at, lean).coefficients;
      start.core_j *= scales.factor[static_cast<std::size_t>(kernel.kind)];
      starts.push_back(scaled_to(spec, start, at));
    }
    kernels.push_back(fit_times(times, starts.front(), starts));
    times.add_error(kernels.back().coefficients, error_s, all_s);
  }
  fit.time_error = all_s > 0.0 ? error_s / all_s : 0.0;
  return kernels;
}

}  // namespace

std::vector<double> captured_core_mhz(const GpuSpec& spec) {
  std::vector<double> clocks;
  auto found = spec.fit_errors.find(captured_clock_key(0));
  for (; found != spec.fit_errors.end();
       found = spec.fit_errors.find(captured_clock_key(clocks.size())))
    clocks.push_back(found->second);
  return clocks;
}

std::size_t captured_powers(const GpuSpec& spec) {
  const auto found = spec.fit_errors.find(captured_powers_key);
  if (found != spec.fit_errors.end()) return static_cast<std::size_t>(found->second);
  // Specs that were fitted before this was written say only that there was a log.
  return !captured_core_mhz(spec).empty() && spec.fit_errors.contains(power_error_key) ? 1 : 0;
}

CaptureFit fit_captures(const GpuSpec& frame, const Trace& step,
                        std::span<const CaptureObservation> captures) {
  const bool none = std::ranges::none_of(captures, [](const CaptureObservation& capture) {
    return std::ranges::any_of(capture.times, [](const auto& time) { return time.has_value(); });
  });
  if (none) throw DataError("the captures have no kernel of the step in common");
  CaptureFit fit;
  fit.spec = frame;
  fit.spec.kernels.clear();
  PowerScales scales = unscaled_powers();
  std::vector<FittedKernel> kernels = fit_all_times(fit.spec, step, captures, scales, fit);
  // Where the power limit binds, times depend on energies; twice is enough.
  std::vector<LoggedWindows> runs;
  for (const CaptureObservation& capture : captures) {
    if (!capture.power.empty()) runs.push_back({capture.clock, capture.power});
  }
  for (int round = 0; round < 2; ++round) {
    std::vector<WindowedKernel> windowed;
    for (std::size_t k = 0; k < kernels.size(); ++k)
      windowed.push_back({step.kernels[k].kind, kernels[k].coefficients});
    PowerScales found = scale_powers(fit.spec, windowed, runs);
    for (std::size_t c = 0; c < found.factor.size(); ++c) {
      found.factor[c] *= scales.factor[c];
      found.sigma[c] *= found.factor[c];
    }
    if (!runs.empty())
      fit.spec = with_waiting_power(std::move(fit.spec), found, runs.front().clock);
    shift_base_power(fit.spec, found.offset_w);
    found.offset_w += scales.offset_w;
    scales = std::move(found);
    kernels = fit_all_times(fit.spec, step, captures, scales, fit);
  }
  fit.base_power_offset_w = scales.offset_w;
  fit.power_error = scales.mean_error;
  fit.classes = class_energies(step, scales);
  fit.spec.ensemble = draws_of(frame, step, kernels, scales);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Kernel& kernel = step.kernels[k];
    fit.spec.kernels.push_back({.name = kernel.name,
                                .kind = kernel.kind,
                                .flops = {},
                                .dram_bytes = {},
                                .gemm = {},
                                .coefficients = kernels[k].coefficients});
  }
  fit.spec.calibrated = true;
  write_errors(fit, captures, runs.size(), fit.spec);
  fit.spec.sources["kernels"] = fmt::format("fitted by rubato {} calibrate to {} captures of {}",
                                            program_version(), captures.size(), step.name);
  fit.spec.sources["uncertainty"] =
      "draws of the GPU's own fit, and of what the captures leave open, the same for all kernels "
      "of a class";
  return fit;
}

}  // namespace rubato
