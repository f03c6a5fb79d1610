#pragma once
// Which numbers each shipped spec was fitted to, and how: the only place that says so. `rubato
// calibrate --shipped` and the tests make the specs again from here.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/run_context.hpp"
#include "models/validation/errors.hpp"

namespace rubato {

/// What a fit reads.
enum class FitKind {
  sweep,       ///< kernels over clocks, see read_sweep
  utilisation  ///< powers beside the use of the GPU's units, see read_utilisation_sweep
};

/// How one shipped spec is made. Files are relative to the root of a clone.
struct ShippedFit {
  std::string_view spec;
  FitKind kind = FitKind::sweep;
  std::string_view data;
  std::string_view other = {};               ///< idle powers
  std::vector<std::string_view> where = {};  ///< "COLUMN=VALUE", rows to keep
  double sigma = 0.01;                       ///< time_sigma and power_sigma of SweepFitOptions
  std::vector<double> curve_core_mhz = {};   ///< see SweepFitOptions
  std::string_view reference = {};  ///< of utilisations: the clock they were taken at, MEM/CORE
};

/// All specs that were fitted to anything, by name. Those of which only constants are known are
/// not here, and rtx-3080-ti and rtx-3080-ti-without-table1 are not: docs/models.md says what they
/// were fitted to, the fit to that one paper is gone.
[[nodiscard]] std::span<const ShippedFit> shipped_fits();

/// @throws UsageError naming the nearest if there is no such spec or nothing was fitted
[[nodiscard]] const ShippedFit& shipped_fit(std::string_view spec);

/// Makes a spec again. Its frame (names, clocks, constants) is the shipped one. The shipped fitted
/// numbers are not looked at. Without cross-validation and draws.
/// @param root  of a clone
/// @throws IoError, DataError
[[nodiscard]] GpuSpec fit_again(const ShippedFit& fit, const std::filesystem::path& root,
                                const RunContext& context = {});

/// How far two specs are apart in what they predict, in %, at the points that were measured. Of
/// utilisations only power is compared, as `energy`.
struct SpecDifference {
  ErrorQuantiles time, energy;
};

/// @param fit  says where to look
[[nodiscard]] SpecDifference difference(const ShippedFit& fit, const std::filesystem::path& root,
                                        const GpuSpec& from, const GpuSpec& to);

}  // namespace rubato
