#include "models/calibration/sweep_problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "common/algorithms/parallel.hpp"
#include "models/calibration/kernel_prior.hpp"
#include "models/kernel/model.hpp"
#include "models/linear/robust_loss.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

const SweepPoint& fastest(const std::vector<SweepPoint>& points) {
  return *std::ranges::min_element(points, {}, [](const SweepPoint& p) {
    return p.time_s.value_or(p.clock.core_mhz ? 1.0 + 1.0 / *p.clock.core_mhz : 1.0);
  });
}

// Whether all measured points of a kernel are at the power limit.
bool always_at_limit(const GpuSpec& spec, const std::vector<SweepPoint>& points) {
  return !points.empty() && std::ranges::all_of(points, [&](const SweepPoint& point) {
    return is_at_limit(spec, point);
  });
}

// Whether the points tell how a kernel follows the power limit.
bool has_several_limits(const std::vector<SweepPoint>& points) {
  return std::ranges::any_of(points, [&](const SweepPoint& point) {
    return point.power_cap_w != points.front().power_cap_w;
  });
}

KernelPrior prior_of(const GpuSpec& frame, const std::vector<SweepPoint>& points,
                     const GpuSpec* like, bool applied_clock) {
  if (points.empty()) return unmeasured_kernel_prior();
  const SweepPoint& seen = fastest(points);
  if (like == nullptr) return any_kernel_prior(frame, seen, applied_clock);
  KernelPrior prior = kernel_prior(*like, seen, applied_clock);
  // What waits in between, as whole epochs do, is held at less than its mean power: the limit acts
  // on the busy part. Chosen on limits left out of epochs of three GPUs: docs/gpus.md.
  constexpr Index limit_scale = 4;
  constexpr double sigma_of_epochs = 0.05;
  if (has_several_limits(points)) prior.sigma[limit_scale] = sigma_of_epochs;
  return prior;
}

// The share of a standard Gaussian below `value` (its distribution function).
double gaussian_share(double value) { return 0.5 * std::erfc(-value / std::numbers::sqrt2); }

// The points of one kernel under power limits. The regulated point of a memory state and cap is
// searched for once.
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

}  // namespace

SweepProblem::SweepProblem(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& options,
                           const GpuSpec* like)
    : frame_(frame), sweep_(sweep), options_(options), parameters_(spec_parameters(frame)) {
  for (SpecParameter& parameter : parameters_) {
    if (options.power_only && !parameter.of_power) parameter.prior_sigma = held_sigma;
  }
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
    auto& limited = limited_.emplace_back();
    if (like != nullptr && always_at_limit(*like, points))
      limited.emplace(*like, frame_, fastest(points), sweep.applied_clocks);
    constexpr double middle = 0.5;
    const KernelPrior prior =
        limited ? limited->at(middle) : prior_of(frame, points, like, sweep.applied_clocks);
    centre_.blocks.col(static_cast<Index>(k)) = prior.mean;
    sigma_.col(static_cast<Index>(k)) = prior.sigma;
  }
  noise_ = VectorXd::Zero(problem_.first.back());
  problem_.residuals = [this](const ArrowPoint& at, const BlockMask& mask) {
    return residuals(at, mask);
  };
}

GpuSpec SweepProblem::spec_at(const VectorXd& shared) const {
  GpuSpec spec = frame_;
  write_parameters(shared, spec);
  return spec;
}

void SweepProblem::perturb(const std::function<double()>& standard_normal) {
  // A spec's kernels are few: priors are widened. Kernels of one sweep differ from them together.
  constexpr Index of_work = 4, core_energy = 3;
  constexpr double widening = 1.5, in_common = 0.7, own = 0.714;  // squares add up to 1
  sigma_.topRows(of_work) *= widening;
  VectorXd common(kernel_parameters);
  for (double& value : common) value = in_common * standard_normal();
  for (Index k = 0; k < centre_.blocks.cols(); ++k) {
    VectorXd moved(kernel_parameters);
    for (Index j = 0; j < kernel_parameters; ++j) moved[j] = common[j] + own * standard_normal();
    if (const auto& limited = limited_[static_cast<std::size_t>(k)]) {
      // The clock in effect is drawn; then what is left open of the core energy.
      const KernelPrior prior = limited->at(gaussian_share(moved[core_energy]));
      centre_.blocks.col(k) = prior.mean;
      sigma_(core_energy, k) = prior.sigma[core_energy];
      moved[core_energy] = standard_normal();
    }
    centre_.blocks.col(k) += sigma_.col(k).cwiseProduct(moved);
  }
  for (double& value : noise_) value = standard_normal();
}

ArrowPoint SweepProblem::restart(const ArrowPoint& point) const {
  // Shifts of the logarithms of cycles, bytes, fixed time, core energy: kernels
  // bound by the core, by DRAM, by neither, by latency; much and little core energy.
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

std::size_t SweepProblem::clock_index(const ClockPair& clock) {
  const auto found = std::ranges::find(clocks_, clock);
  if (found != clocks_.end()) return static_cast<std::size_t>(found - clocks_.begin());
  clocks_.push_back(clock);
  return clocks_.size() - 1;
}

ArrowResiduals SweepProblem::residuals(const ArrowPoint& at, const BlockMask& mask) const {
  const GpuSpec spec = spec_at(at.shared);
  std::vector<ClockState> states;
  states.reserve(clocks_.size());
  for (const ClockPair& clock : clocks_)
    states.push_back(clock_state(spec, clock, sweep_.applied_clocks));

  ArrowResiduals out{VectorXd::Zero(problem_.first.back()),
                     VectorXd(centre_.shared.size() + static_cast<Index>(sweep_.idle.size()))};
  parallel_for(sweep_.kernels.size(), [&](std::size_t k) {
    if (!mask.empty() && !mask[k]) return;
    const auto column = static_cast<Index>(k);
    const KernelCoefficients kernel = make_coefficients(at.blocks.col(column));
    Index row = problem_.first[k];
    auto clock = clock_of_.begin() + (row - kernel_parameters * column) / 2;
    RegulatedPoints regulated(spec, kernel);
    for (const SweepPoint& point : sweep_.kernels[k].points) {
      const OperatingPoint found = regulated.limited(point, states[*clock++]);
      const auto residual = [&](double model, const std::optional<double>& measured, double sigma) {
        const double noise = noise_[row];
        return measured ? robust(std::log(model / *measured) / sigma - noise) : 0.0;
      };
      out.blocks[row] = residual(found.time_s, point.time_s, options_.time_sigma);
      ++row;
      out.blocks[row] =
          residual(found.energy_j / found.time_s, point.power_w, options_.power_sigma);
      ++row;
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
    const double power_w = clock_state(spec, idle.clock, sweep_.applied_clocks).idle_w;
    out.shared[shared + static_cast<Index>(i)] =
        robust(std::log(power_w / idle.power_w) / options_.power_sigma);
  }
  return out;
}

}  // namespace rubato
