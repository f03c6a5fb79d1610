#include "models/sweep_calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/version.hpp"
#include "models/arrow_least_squares.hpp"
#include "models/kernel_information.hpp"
#include "models/kernel_model.hpp"
#include "models/spec_parameters.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

enum Coefficient : Index { cycles, bytes, fixed, core_energy, limit_scale, overlap, idle };

// Grows like |r| beyond one sigma, so that single bad numbers do not rule the fit.
double robust(double r) {
  return std::copysign(std::sqrt(2.0 * (std::sqrt(1.0 + r * r) - 1.0)), r);
}

double core_mhz_of(const GpuSpec& spec, const ClockPair& clock, bool applied) {
  return applied ? applied_core_mhz(spec, clock) : effective_core_mhz(spec, clock);
}

// ---- What kernels are like before anything was measured ----

// Shares of the time of a launch and, for the core energy, of its energy.
VectorXd shares(const KernelCoefficients& kernel, const ClockState& state) {
  constexpr double least_share = 1e-3;
  const OperatingPoint point = unlimited_point(state, kernel);
  VectorXd out(kernel_parameters);
  out << kernel.core_cycles / (state.core_mhz * 1e6) / point.time_s,
      kernel.dram_bytes / state.dram_bytes_per_s / point.time_s, kernel.fixed_s / point.time_s,
      kernel.core_j * state.squared_voltage / point.energy_j, kernel.limit_scale,
      kernel.overlap_scale, kernel.idle_scale;
  return out.cwiseMax(least_share).array().log();
}

struct SharePrior {
  VectorXd mean, sigma;
};

// Enough for kernels of any kind: half core, half memory, a few per cent of latency.
SharePrior wide_prior() {
  SharePrior prior{VectorXd(kernel_parameters), VectorXd(kernel_parameters)};
  prior.mean << std::log(0.7), std::log(0.5), std::log(0.03), std::log(0.4), 0.0, 0.0, 0.0;
  prior.sigma << 3.0, 3.0, 1.5, 2.0, 0.02, 0.3, 0.1;
  return prior;
}

SharePrior share_prior(const GpuSpec& spec, const ClockState& state) {
  constexpr std::size_t enough_kernels = 8;
  SharePrior prior = wide_prior();
  if (spec.kernels.size() < enough_kernels) return prior;
  constexpr double least_sigma = 0.3, widening = 1.3;
  const auto kernels = static_cast<Index>(spec.kernels.size());
  MatrixXd all(kernel_parameters, kernels);
  for (Index k = 0; k < kernels; ++k)
    all.col(k) = shares(spec.kernels[static_cast<std::size_t>(k)].coefficients, state);
  for (const Index j : {cycles, bytes, fixed, core_energy}) {
    std::vector<double> values(all.row(j).begin(), all.row(j).end());
    std::ranges::sort(values);
    const auto at = [&](double share) {
      return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
    };
    constexpr double sigmas_between = 2.0 * 1.2816;  // the 10th and 90th percentiles of a Gaussian
    prior.mean[j] = at(0.5);
    prior.sigma[j] = std::max(widening * (at(0.9) - at(0.1)) / sigmas_between, least_sigma);
  }
  return prior;
}

const SweepPoint& fastest(const std::vector<SweepPoint>& points) {
  return *std::ranges::min_element(points, {}, [](const SweepPoint& p) {
    return p.time_s.value_or(p.clock.core_mhz ? 1.0 + 1.0 / *p.clock.core_mhz : 1.0);
  });
}

// Shares become coefficients by what the fastest point measured.
KernelPrior absolute_prior(const SharePrior& shares, const GpuSpec& spec, const ClockState& state,
                           const SweepPoint& seen) {
  const double time_s = seen.time_s.value_or(1.0);
  const double energy_j = time_s * seen.power_w.value_or(0.5 * spec.power_limit.limit_w);
  KernelPrior prior{shares.mean, shares.sigma};
  prior.mean[cycles] += std::log(time_s * state.core_mhz * 1e6);
  prior.mean[bytes] += std::log(time_s * state.dram_bytes_per_s);
  prior.mean[fixed] += std::log(time_s);
  prior.mean[core_energy] += std::log(energy_j / state.squared_voltage);
  if (seen.dram_bytes) {
    constexpr double counter_sigma = 0.15;  // what caches and refresh leave open
    constexpr double least_bytes = 1.0;
    prior.mean[bytes] = std::log(std::max(*seen.dram_bytes, least_bytes));
    prior.sigma[bytes] = counter_sigma;
    if (*seen.dram_bytes < 0.01 * time_s * state.dram_bytes_per_s) prior.sigma[bytes] = 1.0;
  }
  return prior;
}

// ---- Residuals ----

// The points of one kernel under power limits, each found once for a memory state and cap.
class RegulatedPoints {
 public:
  RegulatedPoints(const GpuSpec& spec, const KernelCoefficients& kernel)
      : spec_(spec), kernel_(kernel) {}

  [[nodiscard]] OperatingPoint limited(const SweepPoint& point, const ClockState& state) {
    const double limit_w = point.power_cap_w.value_or(spec_.power_limit.limit_w);
    const OperatingPoint unlimited = unlimited_point(state, kernel_);
    if (within_limit(spec_, kernel_, unlimited, limit_w)) return unlimited;
    const MemStateId mem = point.clock.mem;
    const auto known = std::ranges::find_if(
        found_, [&](const Found& f) { return f.mem == mem && f.limit_w == limit_w; });
    if (known != found_.end()) return known->point;
    found_.push_back(
        {mem, limit_w, regulated_point(spec_, kernel_, spec_.mem_states[index(mem)], limit_w)});
    return found_.back().point;
  }

 private:
  struct Found {
    MemStateId mem;
    double limit_w;
    OperatingPoint point;
  };
  const GpuSpec& spec_;
  const KernelCoefficients& kernel_;
  std::vector<Found> found_;
};

// A sweep as a least squares problem: shared parameters are those of
// spec_parameters, blocks are kernels.
class SweepProblem {
 public:
  SweepProblem(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& options,
               const GpuSpec* like)
      : frame_(frame), sweep_(sweep), options_(options), parameters_(spec_parameters(frame)) {
    for (const SweepKernel& kernel : sweep.kernels) {
      for (const SweepPoint& point : kernel.points) clock_of_.push_back(clock_index(point.clock));
    }
    centre_.shared = read_parameters(frame);
    centre_.blocks.resize(kernel_parameters, static_cast<Index>(sweep.kernels.size()));
    sigma_.resizeLike(centre_.blocks);
    problem_.first.push_back(0);
    for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
      const auto& points = sweep.kernels[k].points;
      problem_.first.push_back(problem_.first.back() + 2 * static_cast<Index>(points.size()) +
                               kernel_parameters);
      const KernelPrior prior = prior_of(points, like);
      centre_.blocks.col(static_cast<Index>(k)) = prior.mean;
      sigma_.col(static_cast<Index>(k)) = prior.sigma;
    }
    problem_.residuals = [this](const ArrowPoint& at, const BlockMask& mask) {
      return residuals(at, mask);
    };
  }
  SweepProblem(const SweepProblem&) = delete;
  SweepProblem& operator=(const SweepProblem&) = delete;

  [[nodiscard]] const ArrowProblem& problem() const { return problem_; }
  [[nodiscard]] const ArrowPoint& start() const { return centre_; }
  [[nodiscard]] std::span<const SpecParameter> parameters() const { return parameters_; }

  [[nodiscard]] GpuSpec spec_at(const VectorXd& shared) const {
    GpuSpec spec = frame_;
    write_parameters(shared, spec);
    return spec;
  }

  /// Starts every kernel again from bounds it may lie at, and keeps what is best.
  [[nodiscard]] ArrowPoint restart(const ArrowPoint& point) const {
    // Of cycles, bytes, fixed, core energy: bound by the core, by DRAM, by
    // neither, by latency; much and little core energy.
    static constexpr std::array<std::array<double, 4>, 6> starts{{{0.3, -1.5, 0.0, 0.0},
                                                                  {-1.5, 0.6, 0.0, 0.0},
                                                                  {0.0, 0.3, 0.0, -0.7},
                                                                  {-0.7, -0.7, 2.5, 0.0},
                                                                  {0.3, -0.5, -1.0, 0.7},
                                                                  {0.0, 0.0, 0.0, -1.5}}};
    constexpr int iterations = 30;
    ArrowPoint best = fit_blocks(problem_, point, iterations);
    VectorXd costs = block_costs(problem_, residuals(best));
    for (const auto& offsets : starts) {
      ArrowPoint from = centre_;
      from.shared = point.shared;
      for (Index j = 0; j < 4; ++j)
        from.blocks.row(j).array() += offsets[static_cast<std::size_t>(j)];
      const ArrowPoint found = fit_blocks(problem_, std::move(from), iterations);
      const VectorXd tried = block_costs(problem_, residuals(found));
      for (Index k = 0; k < costs.size(); ++k) {
        if (tried[k] >= costs[k]) continue;
        costs[k] = tried[k];
        best.blocks.col(k) = found.blocks.col(k);
      }
    }
    return best;
  }

 private:
  [[nodiscard]] std::size_t clock_index(const ClockPair& clock) {
    const auto found = std::ranges::find(clocks_, clock);
    if (found != clocks_.end()) return static_cast<std::size_t>(found - clocks_.begin());
    clocks_.push_back(clock);
    return clocks_.size() - 1;
  }

  [[nodiscard]] ClockState state_at(const GpuSpec& spec, const ClockPair& clock) const {
    return clock_state(spec, spec.mem_states[index(clock.mem)],
                       core_mhz_of(spec, clock, sweep_.applied_clocks));
  }

  [[nodiscard]] KernelPrior prior_of(const std::vector<SweepPoint>& points,
                                     const GpuSpec* like) const {
    if (points.empty()) return {wide_prior().mean, wide_prior().sigma};
    const SweepPoint& seen = fastest(points);
    const GpuSpec& spec = like != nullptr ? *like : frame_;
    const ClockState state = state_at(spec, seen.clock);
    return absolute_prior(like != nullptr ? share_prior(spec, state) : wide_prior(), spec, state,
                          seen);
  }

  [[nodiscard]] ArrowResiduals residuals(const ArrowPoint& at, const BlockMask& mask = {}) const {
    const GpuSpec spec = spec_at(at.shared);
    std::vector<ClockState> states;
    states.reserve(clocks_.size());
    for (const ClockPair& clock : clocks_) states.push_back(state_at(spec, clock));

    ArrowResiduals out{VectorXd::Zero(problem_.first.back()),
                       VectorXd(centre_.shared.size() + static_cast<Index>(sweep_.idle.size()))};
    tbb::parallel_for(std::size_t{0}, sweep_.kernels.size(), [&](std::size_t k) {
      if (!mask.empty() && !mask[k]) return;
      const auto column = static_cast<Index>(k);
      const KernelCoefficients kernel = make_coefficients(at.blocks.col(column));
      Index row = problem_.first[k];
      auto clock = clock_of_.begin() + (row - kernel_parameters * column) / 2;
      RegulatedPoints regulated(spec, kernel);
      for (const SweepPoint& point : sweep_.kernels[k].points) {
        const OperatingPoint found = regulated.limited(point, states[*clock++]);
        out.blocks[row++] =
            point.time_s ? robust(std::log(found.time_s / *point.time_s) / options_.time_sigma)
                         : 0.0;
        out.blocks[row++] = point.power_w
                                ? robust(std::log(found.energy_j / found.time_s / *point.power_w) /
                                         options_.power_sigma)
                                : 0.0;
      }
      out.blocks.segment(row, kernel_parameters) =
          (at.blocks.col(column) - centre_.blocks.col(column)).cwiseQuotient(sigma_.col(column));
    });

    const auto shared = centre_.shared.size();
    for (Index j = 0; j < shared; ++j)
      out.shared[j] =
          (at.shared[j] - centre_.shared[j]) / parameters_[static_cast<std::size_t>(j)].prior_sigma;
    for (std::size_t i = 0; i < sweep_.idle.size(); ++i) {
      const IdlePoint& idle = sweep_.idle[i];
      const double power_w = idle_power_w(spec, spec.mem_states[index(idle.clock.mem)],
                                          core_mhz_of(spec, idle.clock, sweep_.applied_clocks));
      out.shared[shared + static_cast<Index>(i)] =
          robust(std::log(power_w / idle.power_w) / options_.power_sigma);
    }
    return out;
  }

  GpuSpec frame_;
  const Sweep& sweep_;
  SweepFitOptions options_;
  std::vector<SpecParameter> parameters_;
  std::vector<ClockPair> clocks_;      ///< distinct ones
  std::vector<std::size_t> clock_of_;  ///< of all points, kernel after kernel
  ArrowPoint centre_;
  MatrixXd sigma_;
  ArrowProblem problem_;
};

// ---- The frame of a full fit ----

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

// Neutral values that depend on the constants of the GPU and the least power
// seen, so that a fit does not depend on an earlier one.
GpuSpec neutral_frame(const GpuSpec& frame, const Sweep& sweep) {
  GpuSpec spec = frame;
  spec.kernels.clear();
  spec.ensemble.clear();
  const std::vector<double> clocks = swept_core_mhz(sweep);
  if (clocks.empty())
    throw DataError(fmt::format("{}: no row has a core clock in MHz", sweep.file));
  const double lowest = clocks.front(), highest = clocks.back(), least_w = least_power_w(sweep);
  const std::vector<double> points = curve_points(clocks);

  spec.core.requested_mhz.clear();
  spec.core.effective_mhz.clear();
  if (constexpr double far_below = 0.25; lowest < far_below * highest) {
    spec.core.requested_mhz = {lowest, 2.0 * lowest};
    spec.core.effective_mhz = {lowest, 2.0 * lowest};
  }
  spec.voltage = {points, {1.0}};
  constexpr double flat_step = 0.02, steep_step = 0.10;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double x = (points[i] - lowest) / std::max(highest - lowest, 1.0);
    spec.voltage.relative_v.push_back(spec.voltage.relative_v.back() + flat_step +
                                      steep_step * x * x);
  }
  spec.crossbar = {points, std::vector<double>(points.size(), 1.0)};

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
  spec.shared.crossbar_bytes_per_cycle = crossbar_reserve * top_gbs * 1e3 / highest;
  constexpr double full_traffic_w = 60.0;
  spec.shared.dram_nj_per_byte = full_traffic_w / top_gbs;
  spec.shared.bandwidth_exponent = 6.0;
  spec.shared.overlap_exponent = 4.0;
  spec.power_limit.regulated_frac = 0.98;
  return spec;
}

double interval_factor(double sigma) { return std::exp(1.96 * sigma); }

// The Gaussian knows nothing of bounds (cycles hidden behind DRAM may be any
// number below its time), so draws that fit far worse are pulled in: first the
// shared parameters, then kernel by kernel.
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

// Clocks at the lower end that all have the floor's voltage, or a curve that
// has not begun to rise at the top.
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

}  // namespace

OperatingPoint predict(const GpuSpec& spec, const KernelCoefficients& kernel,
                       const SweepPoint& point, bool applied_clock) {
  const MemState& mem = spec.mem_states[index(point.clock.mem)];
  return limited_point(spec, kernel, mem,
                       clock_state(spec, mem, core_mhz_of(spec, point.clock, applied_clock)),
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

KernelPrior kernel_prior(const GpuSpec& spec, const SweepPoint& seen, bool applied_clock) {
  const ClockState state = clock_state(spec, spec.mem_states[index(seen.clock.mem)],
                                       core_mhz_of(spec, seen.clock, applied_clock));
  return absolute_prior(share_prior(spec, state), spec, state, seen);
}

SweepFit calibrate_sweep(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& options,
                         const RunContext& context) {
  constexpr int iterations = 40;
  const SweepProblem sweep_problem(neutral_frame(frame, sweep), sweep, options, nullptr);
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

  SweepFit fit{sweep_problem.spec_at(point.shared), {}, {}};
  GpuSpec& spec = fit.spec;
  spec.calibrated = true;
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    spec.kernels.push_back(
        {.name = sweep.kernels[k].name,
         .kind = KernelClass::other,
         .flops = {},
         .dram_bytes = {},
         .gemm = {},
         .coefficients = make_coefficients(point.blocks.col(static_cast<Index>(k)))});
  }
  const std::string source = fmt::format("fitted by rubato {} calibrate on {} kernels, {} points{}",
                                         program_version(), sweep.kernels.size(), sweep.points(),
                                         sweep.gpu.empty() ? "" : " of " + sweep.gpu);
  for (const char* key : {"core_power", "memory", "kernels"}) spec.sources[key] = source;
  const std::vector<double> clocks = swept_core_mhz(sweep);
  spec.fitted_range =
      FittedRange{clocks.front(), clocks.back(), sweep.kernels.size(), sweep.points()};

  const ArrowResiduals residuals = problem.residuals(point, {});
  const auto values = 2 * sweep.points();
  const auto freedom = static_cast<double>(
      values -
      std::min(values - 1, static_cast<std::size_t>(point.blocks.size() + point.shared.size())));
  const double variance = std::max(1.0, residuals.blocks.squaredNorm() / freedom);
  const ArrowPosterior posterior(arrow_normal(problem, point, residuals), variance);
  const VectorXd sigma = posterior.shared_sigma();
  for (Index j = 0; j < sigma.size(); ++j) {
    const SpecParameter& parameter = sweep_problem.parameters()[static_cast<std::size_t>(j)];
    constexpr double mostly_prior = 0.7;
    const double value = std::exp(point.shared[j]);
    fit.parameters.push_back({parameter.name, parameter.unit, value,
                              value / interval_factor(sigma[j]), value * interval_factor(sigma[j]),
                              sigma[j] < mostly_prior * parameter.prior_sigma});
  }
  note_voltage(spec, fit.notes);

  constexpr std::size_t most_kernels = 64;  // beyond, the draws hold what kernels share only
  std::mt19937_64 random(20260113);
  std::normal_distribution<double> gaussian;
  for (int i = 0; i < options.ensemble; ++i) {
    const ArrowPoint draw = pulled_in(problem, point, residuals, variance,
                                      posterior.draw([&] { return gaussian(random); }));
    std::vector<double>& member = spec.ensemble.emplace_back();
    member.assign(draw.shared.begin(), draw.shared.end());
    if (sweep.kernels.size() <= most_kernels) {
      for (const double value : draw.blocks.reshaped()) member.push_back(value);
    }
    // Four decimals are far below what the draws differ by.
    for (double& value : member) value = std::round(value * 1e4) / 1e4;
  }
  spec.sources["uncertainty"] =
      "draws from the Gaussian around the fit, its width scaled by the residuals";
  return fit;
}

std::vector<CalibratedKernel> fit_kernels(const GpuSpec& spec, const Sweep& sweep,
                                          const SweepFitOptions& options) {
  const SweepProblem problem(spec, sweep, options, &spec);
  const ArrowPoint point = problem.restart(problem.start());
  std::vector<CalibratedKernel> kernels;
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    kernels.push_back({.name = sweep.kernels[k].name,
                       .kind = KernelClass::other,
                       .flops = {},
                       .dram_bytes = {},
                       .gemm = {},
                       .coefficients = make_coefficients(point.blocks.col(static_cast<Index>(k)))});
  }
  return kernels;
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
