#include "models/validation/uncertainty.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <Eigen/Core>

#include "models/calibration/capture_fit.hpp"
#include "models/gpu/ensemble.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/validation/measured_shapes.hpp"

namespace rubato {

namespace {

constexpr double guess = 0.3;  // relative error of what nobody measured

// What all kernels of a class have in common in each draw, since nobody knows it of any. Captured
// kernels: where in the open range their times split, and how far their core energy is off. Others:
// how far coefficients derived from their work are off.
struct ClassDraws {
  std::vector<double> lean, core_energy;
  std::array<std::vector<double>, 3> work;  ///< of cycles, bytes and core energy, in sigmas
};

// Fisher and Yates; std::shuffle differs between libraries.
void shuffle(std::vector<double>& values, std::mt19937_64& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

// Values that lie evenly in [0, 1], in random order (stratified sampling).
std::vector<double> even_shares(std::size_t count, std::mt19937_64& random) {
  std::vector<double> shares;
  for (std::size_t i = 0; i < count; ++i)
    shares.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(count));
  shuffle(shares, random);
  return shares;
}

// The even_shares with the order of `values`, which must differ.
std::vector<double> even_ranks(const std::vector<double>& values) {
  std::vector<double> shares;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [&](double other) { return other < value; });
    shares.push_back((static_cast<double>(below) + 0.5) / static_cast<double>(values.size()));
  }
  return shares;
}

// The quantile of a standard Gaussian, 0 < share < 1.
double gaussian_quantile(double share) {
  double low = -8.0, high = 8.0;
  for (int i = 0; i < 50; ++i) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < share ? low : high) = middle;
  }
  return low;
}

// Stratified draws of a standard Gaussian: a few that spread as many would.
std::vector<double> even_gaussians(std::size_t count, std::mt19937_64& random) {
  std::vector<double> values = even_shares(count, random);
  for (double& value : values) value = gaussian_quantile(value);
  return values;
}

std::vector<ClassDraws> class_draws(std::size_t count, std::mt19937_64& random) {
  std::vector<ClassDraws> classes(all_names<KernelClass>().size());
  for (ClassDraws& shared : classes) {
    shared.lean = even_shares(count, random);
    for (const double value : even_gaussians(count, random))
      shared.core_energy.push_back(std::exp(guess * value));
    for (std::vector<double>& values : shared.work) values = even_gaussians(count, random);
  }
  return classes;
}

// Draws of captured kernels. One that was never measured is like some measured kernel: which one is
// drawn for each function, a quarter of it for all functions together. docs/graphs.md, section 3.
class CapturedDraws {
 public:
  CapturedDraws(const GpuSpec& spec, const std::vector<ClassDraws>& classes)
      : spec_(spec),
        priors_(spec),
        captured_mhz_(captured_core_mhz(spec)),
        powers_(captured_powers(spec)),
        classes_(classes),
        quantiles_(classes.front().lean.size()) {}

  KernelCoefficients of(const GpuSpec& member, const Kernel& kernel, const CapturePoint& at,
                        std::size_t draw) {
    const ClassDraws& of_class = classes_[static_cast<std::size_t>(kernel.kind)];
    AnchoredKernel own = anchored(member, kernel, at, of_class.lean[draw]);
    if (own.split == SplitSource::fit) {
      if (captured_mhz_.size() < 2) return own.coefficients;
      const KernelCoefficients drawn =
          seen(member, kernel, at, quantiles_.of(function_of(kernel))[draw]);
      return member.logged.empty() && powers_ == 0 ? drawn
                                                   : as_logged(member, kernel, at, drawn, draw);
    }
    if (own.split == SplitSource::work || own.split == SplitSource::class_prior) {
      const std::string& function = function_of(kernel);
      const KernelShape like = priors_.with_any_power(kernel.kind, quantiles_.of(function)[draw],
                                                      powers_of(function)[draw]);
      const KernelCoefficients drawn = scaled_to(member, coefficients_of(member, like), at);
      return member.logged.empty() ? drawn : as_logged(member, kernel, at, drawn, draw);
    }
    if (!member.logged.empty()) return as_logged(member, kernel, at, own.coefficients, draw);
    own.coefficients.core_j *= of_class.core_energy[draw];
    return scaled_to(member, own.coefficients, at);
  }

 private:
  // Where a function's power stands among others in each draw. How near to its limit a board runs
  // is of the board and of the work: of the logarithms of power over limit in the shipped sweeps,
  // two thirds of the variance lie between sweeps, a third within.
  const std::vector<double>& powers_of(const std::string& function) {
    constexpr double in_common = 2.0 / 3.0;
    const std::size_t draws = classes_.front().lean.size();
    if (common_power_.empty()) common_power_ = even_gaussians(draws, random_);
    const auto [at, is_new] = power_quantiles_.try_emplace(function);
    if (!is_new) return at->second;
    std::vector<double> values = even_gaussians(draws, random_);
    for (std::size_t i = 0; i < draws; ++i)
      values[i] = std::sqrt(in_common) * common_power_[i] + std::sqrt(1.0 - in_common) * values[i];
    at->second = even_ranks(values);
    return at->second;
  }

  // Times of the kernel at several clocks were seen, so its energy is that of a measured kernel
  // which follows the core clock about as much.
  [[nodiscard]] KernelCoefficients seen(const GpuSpec& member, const Kernel& kernel,
                                        const CapturePoint& at, double quantile) {
    const double usual_mhz = effective_core_mhz(spec_, at.clock);
    const double far_mhz = *std::ranges::max_element(
        captured_mhz_, {}, [&](double mhz) { return std::abs(std::log(usual_mhz / mhz)); });
    const OperatingPoint far = operating_point(spec_, anchored(spec_, kernel, at).coefficients,
                                               {at.clock.mem, far_mhz}, at.power_limit_w);
    const double position = (far.time_s / at.time_s - 1.0) / (usual_mhz / far_mhz - 1.0);
    const KernelShape& like =
        powers_ < 2 ? priors_.at(KernelClass::other, quantile, position)
                    : as_powerful(kernel, at, {{at.clock.mem, far_mhz}, far}, position, quantile);
    return scaled_to(member, coefficients_of(member, like), at);
  }

  // A kernel at another clock, as its fit has it.
  struct FarPoint {
    ClockPair clock;
    OperatingPoint point;
  };

  // Of measured kernels that follow the core clock about as much, one whose energy changes as that
  // of the kernel did: power was read at both clocks.
  const KernelShape& as_powerful(const Kernel& kernel, const CapturePoint& at, const FarPoint& far,
                                 double position, double quantile) {
    auto& [shapes, until] = like_[kernel.name];
    if (shapes.empty()) {
      constexpr std::size_t tried = 64;
      constexpr double reading_error = 0.015;
      const KernelCoefficients own = anchored(spec_, kernel, at).coefficients;
      const double own_j = operating_point(spec_, own, at.clock, at.power_limit_w).energy_j;
      const double idle_w = clock_state(spec_, far.clock, false).idle_w;
      std::vector<double> squares;
      for (std::size_t i = 0; i < tried; ++i) {
        shapes.push_back(
            &priors_.at(KernelClass::other, (static_cast<double>(i) + 0.5) / tried, position));
        const KernelCoefficients c = with_energy(
            spec_, scaled_to(spec_, coefficients_of(spec_, *shapes.back()), at), at, own_j);
        const OperatingPoint usual = operating_point(spec_, c, at.clock, at.power_limit_w),
                             there = operating_point(spec_, c, far.clock, at.power_limit_w);
        // In the time that was seen, not that of the kernel it is like.
        const double there_j =
            there.energy_j + idle_w * c.idle_scale * (far.point.time_s - there.time_s);
        const double off =
            std::log(there_j / usual.energy_j * own_j / far.point.energy_j) / reading_error;
        squares.push_back(off * off);
      }
      const double least = std::ranges::min(squares);
      double sum = 0.0;
      for (const double square : squares) until.push_back(sum += std::exp(0.5 * (least - square)));
      for (double& share : until) share /= sum;
    }
    const auto found = std::ranges::lower_bound(until, quantile);
    const auto at_found = static_cast<std::size_t>(found - until.begin());
    return *shapes[std::min(at_found, shapes.size() - 1)];
  }

  // The coefficients with as much core energy as a launch at the captured clock then takes, within
  // what is plausible.
  static KernelCoefficients with_energy(const GpuSpec& spec, KernelCoefficients c,
                                        const CapturePoint& at, double energy_j) {
    constexpr double most_change = 4.0;
    const double now_j = operating_point(spec, c, at.clock, at.power_limit_w).energy_j;
    const double core_j =
        c.core_j + (energy_j - now_j) / clock_state(spec, at.clock, false).squared_voltage;
    c.core_j = std::clamp(core_j, c.core_j / most_change, c.core_j * most_change);
    return c;
  }

  // Power at the captured clocks was read, whatever splits the time: core energy makes up for what
  // another split takes. What the reading leaves open is of a class.
  KernelCoefficients as_logged(const GpuSpec& member, const Kernel& kernel, const CapturePoint& at,
                               const KernelCoefficients& like, std::size_t draw) const {
    const double error = logged_energy(member, kernel.kind).relative_error;
    const OperatingPoint best = operating_point(member, anchored(member, kernel, at).coefficients,
                                                at.clock, at.power_limit_w);
    KernelCoefficients drawn = with_energy(member, like, at, best.energy_j);
    drawn.core_j *= std::exp(
        error * std::log(classes_[static_cast<std::size_t>(kernel.kind)].core_energy[draw]) /
        guess);
    return scaled_to(member, drawn, at);
  }

  const GpuSpec& spec_;
  ShapePriors priors_;
  std::vector<double> captured_mhz_;  // see captured_core_mhz
  std::size_t powers_;                // of how many of these captures logs were read
  const std::vector<ClassDraws>& classes_;
  FunctionQuantiles quantiles_;
  std::mt19937_64 random_{20261128};
  std::vector<double> common_power_;                            // standard Gaussians, shape [draws]
  std::map<std::string, std::vector<double>> power_quantiles_;  // by function, shape [draws]
  // By kernel: what as_powerful() chooses from, and sums of weights up to each, as shares.
  std::map<std::string, std::pair<std::vector<const KernelShape*>, std::vector<double>>> like_;
};

}  // namespace

FunctionQuantiles::FunctionQuantiles(std::size_t draws)
    : random_(20261125), shared_(even_gaussians(draws, random_)) {}

const std::vector<double>& FunctionQuantiles::of(const std::string& name) {
  const auto [at, is_new] = functions_.try_emplace(name);
  if (!is_new) return at->second;
  const std::vector<double> own = even_gaussians(shared_.size(), random_);
  std::vector<double> values;
  for (std::size_t i = 0; i < shared_.size(); ++i)
    values.push_back(std::sqrt(in_common) * shared_[i] + std::sqrt(1.0 - in_common) * own[i]);
  at->second = even_ranks(values);
  return at->second;
}

const std::string& function_of(const Kernel& kernel) noexcept {
  return kernel.label.empty() ? kernel.name : kernel.label;
}

double coefficient_error(const GpuSpec& spec, const Kernel& kernel, CoefficientSource source) {
  // A kernel at eight times its work is as good as another one of its class: an assumption.
  constexpr double least = 0.05, other_kernel = 3.0 * std::numbers::ln2;
  if (source == CoefficientSource::measured) return 0.0;
  if (source == CoefficientSource::scaled) {
    const CalibratedKernel* known = calibrated_kernel(spec, kernel);
    const double share = known != nullptr ? work_moved(*known, kernel) / other_kernel : 1.0;
    return std::min(share, 1.0) * coefficient_error(spec, kernel, CoefficientSource::derived);
  }
  if (source != CoefficientSource::derived) return guess;
  // Products and attention from their shapes: times and powers are off by 1 to 11 % in the mean
  // (docs/accuracy.md).
  constexpr double shape_error = 0.12;
  const bool shape = kernel.gemm || kernel.attention;
  if (spec.operators && shape &&
      std::ranges::find(spec.classes, kernel.kind, &ClassCoefficients::kind) == spec.classes.end())
    return shape_error;
  std::vector<double> per_work;
  for (const CalibratedKernel& known : spec.kernels) {
    const double work = known.gemm ? known.flops.value_or(0.0) : known.dram_bytes.value_or(0.0);
    if (known.kind == kernel.kind && work > 0.0)
      per_work.push_back(std::log(known.coefficients.core_cycles / work));
  }
  if (per_work.size() < 2) return guess;
  const Eigen::Map<const Eigen::ArrayXd> values(per_work.data(), std::ssize(per_work));
  const double spread =
      std::sqrt((values - values.mean()).square().sum() / static_cast<double>(per_work.size() - 1));
  return std::clamp(spread, least, guess);
}

std::vector<std::size_t> order_by_name(std::span<const Kernel> kernels) {
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t k) { return std::string_view(kernels[k].name); });
  return order;
}

std::vector<GpuModel> draw_models(const GpuModel& model, const Trace& trace, std::size_t count) {
  count = std::max<std::size_t>(1, count);
  std::mt19937_64 random(20260113);
  std::normal_distribution<double> gaussian;
  const std::vector<ClassDraws> classes = class_draws(count, random);
  std::optional<CapturedDraws> captured;  // reads all specs
  for (std::size_t k = 0; k < model.kernels(); ++k) {
    if (!captured && model.source(id_at<KernelId>(k)) == CoefficientSource::anchored)
      captured.emplace(model.spec(), classes);
  }
  const std::vector<std::size_t> order = order_by_name(trace.kernels);
  std::vector<GpuModel> models;
  for (std::size_t i = 0; i < count; ++i) {
    const GpuModel member(ensemble_member(model.spec(), i), trace, model.power_limit_w());
    std::vector<KernelCoefficients> coefficients(member.coefficients().begin(),
                                                 member.coefficients().end());
    for (const std::size_t k : order) {
      const auto id = id_at<KernelId>(k);
      const Kernel& kernel = trace.kernels[k];
      KernelCoefficients& c = coefficients[k];
      if (model.source(id) == CoefficientSource::anchored) {
        c = captured->of(member.spec(), kernel, *member.anchor(id), i);
        continue;
      }
      const double sigma = coefficient_error(model.spec(), kernel, model.source(id));
      const auto& of_class = classes[static_cast<std::size_t>(kernel.kind)].work;
      const std::array<double*, 3> values{&c.core_cycles, &c.dram_bytes, &c.core_j};
      for (std::size_t j = 0; j < values.size(); ++j)
        *values[j] *=
            std::exp(sigma * std::numbers::sqrt2 / 2.0 * (of_class[j][i] + gaussian(random)));
    }
    models.push_back(member.with(std::move(coefficients)));
  }
  return models;
}

std::vector<std::vector<KernelCoefficients>> draw_captured(const GpuSpec& spec,
                                                           std::span<const Kernel> kernels,
                                                           std::span<const CapturePoint> captured,
                                                           std::size_t count) {
  std::mt19937_64 random(20260113);
  const std::vector<ClassDraws> classes = class_draws(count, random);
  CapturedDraws drawn(spec, classes);
  const std::vector<std::size_t> order = order_by_name(kernels);
  std::vector<std::vector<KernelCoefficients>> draws(
      count, std::vector<KernelCoefficients>(kernels.size()));
  for (std::size_t i = 0; i < count; ++i) {
    const GpuSpec member = ensemble_member(spec, i);
    for (const std::size_t k : order) draws[i][k] = drawn.of(member, kernels[k], captured[k], i);
  }
  return draws;
}

}  // namespace rubato
