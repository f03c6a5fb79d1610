#include "models/validation/uncertainty.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "models/gpu/spec_parameters.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double sigma_per_mean_error = 1.2533;  // of a Gaussian, sqrt(pi / 2)

}  // namespace

GpuSpec ensemble_member(const GpuSpec& spec, std::size_t i) {
  if (spec.ensemble.empty()) return spec;
  const std::vector<double>& offsets = spec.ensemble[i % spec.ensemble.size()];
  const Eigen::Map<const VectorXd> all(offsets.data(), static_cast<Index>(offsets.size()));
  GpuSpec member = spec;
  const VectorXd shared = read_parameters(spec);
  write_parameters(shared + all.head(shared.size()), member);
  for (std::size_t k = 0; k < member.kernels.size() && all.size() > shared.size(); ++k) {
    KernelCoefficients& c = member.kernels[k].coefficients;
    c = make_coefficients(
        read_coefficients(c) +
        all.segment(shared.size() + static_cast<Index>(k) * kernel_parameters, kernel_parameters));
  }
  return member;
}

RelativeErrors cell_errors(const GpuSpec& spec) {
  constexpr RelativeErrors never_fitted{0.10, 0.15};
  const auto error = [&](const char* what) -> double {
    for (const char* pattern : {"k_fold_{}_mape_pct", "forward_sweep_{}_mape_pct"}) {
      const auto found = spec.fit_errors.find(fmt::format(fmt::runtime(pattern), what));
      if (found != spec.fit_errors.end()) return sigma_per_mean_error * found->second / 100.0;
    }
    return -1.0;
  };
  const RelativeErrors errors{error("time"), error("energy")};
  return errors.time < 0.0 || errors.energy < 0.0 ? never_fitted : errors;
}

double coefficient_error(const GpuSpec& spec, const Kernel& kernel, CoefficientSource source) {
  constexpr double guess = 0.3, least = 0.05;
  if (source == CoefficientSource::measured) return 0.0;
  if (source == CoefficientSource::guessed) return guess;
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
  std::mt19937_64 random(20260113);
  std::normal_distribution<double> gaussian;
  std::vector<GpuModel> models;
  for (std::size_t i = 0; i < count; ++i) {
    const GpuModel member(ensemble_member(model.spec(), i), trace, model.power_limit_w());
    std::vector<KernelCoefficients> coefficients;
    for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
      const auto id = id_at<KernelId>(k);
      const double sigma = coefficient_error(model.spec(), trace.kernels[k], model.source(id));
      KernelCoefficients& c = coefficients.emplace_back(member.coefficients(id));
      for (double* value : {&c.core_cycles, &c.dram_bytes, &c.core_j})
        *value *= std::exp(sigma * gaussian(random));
    }
    models.push_back(member.with(std::move(coefficients)));
  }
  return models;
}

}  // namespace rubato
