#include "models/validation/shipped_fits.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"

namespace rubato {

namespace {

SweepColumns columns_of(const ShippedFit& fit) {
  SweepColumns columns;
  for (const std::string_view filter : fit.where) {
    const auto equals = filter.find('=');
    columns.where.emplace(filter.substr(0, equals), filter.substr(equals + 1));
  }
  return columns;
}

Sweep sweep_of(const ShippedFit& fit, const std::filesystem::path& root, const GpuSpec& frame) {
  Sweep sweep = read_sweep(root / fit.data, frame, columns_of(fit));
  if (!fit.other.empty()) add_idle(sweep, root / fit.other, frame);
  return sweep;
}

const KernelCoefficients* coefficients_of(const GpuSpec& spec, const std::string& kernel) {
  const auto found = std::ranges::find(spec.kernels, kernel, &CalibratedKernel::name);
  return found == spec.kernels.end() ? nullptr : &found->coefficients;
}

}  // namespace

std::span<const ShippedFit> shipped_fits() {
  static const std::array<ShippedFit, 13> fits{{
      {.spec = "a100-pcie-80gb", .data = "models/data/measured/powercap_freq/a100_pcie.csv"},
      {.spec = "a100-sxm4-80gb",
       .data = "models/data/measured/dcgm_core_sweeps/a100.csv",
       .other = "models/data/measured/dcgm_core_sweeps/a100_idle.csv"},
      {.spec = "a40",
       .data = "docs/examples/gpt3-175b-a40.csv",
       .other = "models/data/measured/perseus/a40_waiting.csv"},
      {.spec = "b300-sxm6",
       .data = "models/data/measured/b300_powerlab/runs.csv",
       .where = {"steady=1"},
       .curve_core_mhz = {926.0, 1779.0, 1885.0}},
      {.spec = "gtx-1080-ti", .data = "models/data/measured/pascal_turing_grid/gtx1080ti.csv"},
      {.spec = "rtx-2070-super",
       .data = "models/data/measured/pascal_turing_grid/rtx2070super.csv"},
      {.spec = "rtx-3080-ti-2", .data = "models/data/measured/rtx3080ti_kernels/kernels.csv"},
      {.spec = "rtx-4050-laptop", .data = "models/data/measured/rtx4050laptop_kernels/kernels.csv"},
      {.spec = "rtx-5090",
       .data = "models/data/measured/rtx_llm_serving/rtx5090.csv",
       .sigma = 0.03,
       .curve_core_mhz = {180.0, 1147.0, 2122.0, 3090.0}},
      {.spec = "rtx-8000", .data = "models/data/measured/dcgm_core_sweeps/rtx8000.csv"},
      {.spec = "rtx-pro-6000", .data = "models/data/measured/rtx_pro_6000/caps.csv"},
      {.spec = "v100-pcie", .data = "models/data/measured/dcgm_core_sweeps/v100.csv"},
      {.spec = "v100-sxm2",
       .data = "models/data/measured/v100_33workloads/sweep.csv",
       .curve_core_mhz = {757.0, 952.0, 1207.0, 1530.0}},
  }};
  return fits;
}

const ShippedFit& shipped_fit(std::string_view spec) {
  std::vector<std::string> known;
  for (const ShippedFit& fit : shipped_fits()) {
    if (fit.spec == spec) return fit;
    known.emplace_back(fit.spec);
  }
  throw UsageError(fmt::format("no shipped spec that can be made again is called '{}'{}", spec,
                               did_you_mean(spec, known)));
}

GpuSpec fit_again(const ShippedFit& fit, const std::filesystem::path& root,
                  const RunContext& context) {
  const GpuSpec frame = load_gpu_spec(fit.spec);
  const SweepFitOptions options{.time_sigma = fit.sigma,
                                .power_sigma = fit.sigma,
                                .ensemble = 0,
                                .curve_core_mhz = fit.curve_core_mhz};
  return calibrate_sweep(frame, sweep_of(fit, root, frame), options, context).spec;
}

SpecDifference difference(const ShippedFit& fit, const std::filesystem::path& root,
                          const GpuSpec& from, const GpuSpec& to) {
  const Sweep cells = sweep_of(fit, root, from);
  std::vector<double> time, energy;
  for (const SweepKernel& kernel : cells.kernels) {
    const KernelCoefficients *before = coefficients_of(from, kernel.name),
                             *after = coefficients_of(to, kernel.name);
    if (before == nullptr || after == nullptr)
      throw DataError(fmt::format("kernel '{}' is not in both specs", kernel.name));
    for (const SweepPoint& point : kernel.points) {
      const OperatingPoint a = predict(from, *before, point, cells.applied_clocks),
                           b = predict(to, *after, point, cells.applied_clocks);
      time.push_back(b.time_s / a.time_s - 1.0);
      energy.push_back(b.energy_j / a.energy_j - 1.0);
    }
  }
  return {.time = error_quantiles(std::move(time)), .energy = error_quantiles(std::move(energy))};
}

}  // namespace rubato
