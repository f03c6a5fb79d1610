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
  sweep,        ///< kernels over clocks, see read_sweep
  utilisation,  ///< powers beside the use of the GPU's units, see read_utilisation_sweep
  paper         ///< a folder with the published numbers of arXiv 2601.08539, see read_paper_data
};

/// How one shipped spec is made. Files are relative to the root of a clone.
struct ShippedFit {
  std::string_view spec;
  FitKind kind = FitKind::sweep;
  std::string_view data;
  std::string_view other = {};               ///< idle powers; of a paper the sweep of other kernels
  std::vector<std::string_view> where = {};  ///< "COLUMN=VALUE", rows to keep
  double sigma = 0.01;                       ///< time_sigma and power_sigma of SweepFitOptions
  std::vector<double> curve_core_mhz = {};   ///< see SweepFitOptions
  std::string_view reference = {};  ///< of utilisations: the clock they were taken at, MEM/CORE
  bool use_table1 = true;           ///< of a paper
};

/// All specs that were fitted to anything, by name. Those of which only constants are known are
/// not here.
[[nodiscard]] std::span<const ShippedFit> shipped_fits();

/// @throws UsageError naming the nearest if there is no such spec or nothing was fitted
[[nodiscard]] const ShippedFit& shipped_fit(std::string_view spec);

/// The specs fitted to a paper, as CalibrationOptions::earlier takes them.
[[nodiscard]] std::vector<GpuSpec> shipped_paper_fits();

/// Makes a spec again. Its frame (names, clocks, constants) is the shipped one. The shipped fitted
/// numbers are not looked at, except by fits to a paper (shipped_paper_fits). Without
/// cross-validation and, but for fits to a paper, without draws.
/// @param root  of a clone
/// @throws IoError, DataError
[[nodiscard]] GpuSpec fit_again(const ShippedFit& fit, const std::filesystem::path& root,
                                const RunContext& context = {});

/// How far two specs are apart in what they predict, in %, at the points that were measured (of a
/// paper: all kernels at its clock pairs). Of utilisations only power is compared, as `energy`.
struct SpecDifference {
  ErrorQuantiles time, energy;
};

/// @param fit  says where to look
[[nodiscard]] SpecDifference difference(const ShippedFit& fit, const std::filesystem::path& root,
                                        const GpuSpec& from, const GpuSpec& to);

}  // namespace rubato
