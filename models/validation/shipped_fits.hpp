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

/// How one shipped spec is made. Files are relative to the root of a clone.
struct ShippedFit {
  std::string_view spec;
  std::string_view data;
  std::string_view other = {};               ///< idle powers
  std::vector<std::string_view> where = {};  ///< "COLUMN=VALUE", rows to keep
  double sigma = 0.01;                       ///< time_sigma and power_sigma of SweepFitOptions
  std::vector<double> curve_core_mhz = {};   ///< see SweepFitOptions
};

/// All specs that were fitted to anything, by name. Those of which only constants are known are
/// not here. Nor are those whose fits are gone, as one data set was all that they could read:
/// rtx-3080-ti and rtx-3080-ti-without-table1 (docs/models.md says what they were fitted to), and
/// gtx-titan-x, titan-xp and titan-v (powers beside the use of units, docs/gpus.md).
[[nodiscard]] std::span<const ShippedFit> shipped_fits();

/// @throws UsageError naming the nearest if there is no such spec or nothing was fitted
[[nodiscard]] const ShippedFit& shipped_fit(std::string_view spec);

/// Makes a spec again. Its frame (names, clocks, constants) is the shipped one. The shipped fitted
/// numbers are not looked at. Without cross-validation and draws.
/// @param root  of a clone
/// @throws IoError, DataError
[[nodiscard]] GpuSpec fit_again(const ShippedFit& fit, const std::filesystem::path& root,
                                const RunContext& context = {});

/// How far two specs are apart in what they predict, in %, at the points that were measured.
struct SpecDifference {
  ErrorQuantiles time, energy;
};

/// @param fit  says where to look
[[nodiscard]] SpecDifference difference(const ShippedFit& fit, const std::filesystem::path& root,
                                        const GpuSpec& from, const GpuSpec& to);

}  // namespace rubato
