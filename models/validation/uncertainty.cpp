#include "models/validation/uncertainty.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include <Eigen/Core>

#include "models/gpu/ensemble.hpp"
#include "models/kernel/coefficients.hpp"

namespace rubato {

namespace {

constexpr double guess = 0.3;  // relative error of what nobody measured
// Of the core energy of launches of which only the time is known, in the logarithm: what steps of
// seven GPUs' kernels scatter by (0.3 between the GPUs, 1.0 between the kernels of each).
constexpr double guess_of_any_class = 0.5;

// What all kernels of a class share in each draw, since nobody knows it of any. Captured ones:
// where in the open range their times split, and how far their core energy is off. Others: how far
// what was derived from their work is off.
struct ClassDraws {
  std::vector<double> lean, core_energy;
  std::vector<std::array<double, 3>> work;  ///< of cycles, bytes and core energy, in sigmas
};

// The leans of a class reach evenly over the whole range, in an order of their own.
std::vector<ClassDraws> class_draws(std::size_t count, std::mt19937_64& random) {
  std::normal_distribution<double> gaussian;
  std::vector<ClassDraws> classes(all_names<KernelClass>().size());
  for (ClassDraws& shared : classes) {
    for (std::size_t i = 0; i < count; ++i) {
      shared.lean.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(count));
      shared.core_energy.push_back(std::exp(guess * gaussian(random)));
      shared.work.push_back({gaussian(random), gaussian(random), gaussian(random)});
    }
    // Fisher and Yates; std::shuffle differs between libraries.
    for (std::size_t i = count; i > 1; --i)
      std::swap(shared.lean[i - 1], shared.lean[random() % i]);
  }
  return classes;
}

KernelCoefficients drawn_anchored(const GpuSpec& member, const Kernel& kernel,
                                  const CapturePoint& at, const ClassDraws& shared,
                                  std::size_t draw) {
  AnchoredKernel own = anchored(member, kernel, at, shared.lean[draw]);
  if (own.split == SplitSource::fit) return own.coefficients;
  const bool any_class = own.split == SplitSource::class_prior && kernel.kind == KernelClass::other;
  own.coefficients.core_j *=
      std::pow(shared.core_energy[draw], any_class ? guess_of_any_class / guess : 1.0);
  return scaled_to(member, own.coefficients, at);
}

}  // namespace

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

std::vector<GpuModel> draw_models(const GpuModel& model, const Trace& trace, std::size_t count) {
  count = std::max<std::size_t>(1, count);
  std::mt19937_64 random(20260113);
  std::normal_distribution<double> gaussian;
  const std::vector<ClassDraws> classes = class_draws(count, random);
  std::vector<GpuModel> models;
  for (std::size_t i = 0; i < count; ++i) {
    const GpuModel member(ensemble_member(model.spec(), i), trace, model.power_limit_w());
    std::vector<KernelCoefficients> coefficients;
    for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
      const auto id = id_at<KernelId>(k);
      const Kernel& kernel = trace.kernels[k];
      KernelCoefficients& c = coefficients.emplace_back(member.coefficients(id));
      if (model.source(id) == CoefficientSource::anchored) {
        const ClassDraws& shared = classes[static_cast<std::size_t>(kernel.kind)];
        c = drawn_anchored(member.spec(), kernel, *member.anchor(id), shared, i);
        continue;
      }
      const double sigma = coefficient_error(model.spec(), kernel, model.source(id));
      const auto& of_class = classes[static_cast<std::size_t>(kernel.kind)].work[i];
      const std::array<double*, 3> values{&c.core_cycles, &c.dram_bytes, &c.core_j};
      for (std::size_t j = 0; j < values.size(); ++j)
        *values[j] *=
            std::exp(sigma * std::numbers::sqrt2 / 2.0 * (of_class[j] + gaussian(random)));
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
  std::vector<std::vector<KernelCoefficients>> draws(count);
  for (std::size_t i = 0; i < count; ++i) {
    const GpuSpec member = ensemble_member(spec, i);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      draws[i].push_back(drawn_anchored(member, kernels[k], captured[k],
                                        classes[static_cast<std::size_t>(kernels[k].kind)], i));
    }
  }
  return draws;
}

}  // namespace rubato
