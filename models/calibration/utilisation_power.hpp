#pragma once
// Power of kernels of which nothing was timed, from how much of each unit of the
// GPU they use at one clock. After Guerreiro et al., HPCA 2018, with the change
// of use at other clocks from the time model instead of constant.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "models/calibration/sweep.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// One measured power.
struct UtilisationPoint {
  std::string kernel;
  ClockPair clock;
  double power_w = 0.0;
  std::map<std::string, double> units;  ///< use of core units, 0..1, e.g. "sp", "int", "l2"
  double dram = 0.0;                    ///< use of DRAM, 0..1
};

/// All powers of one GPU.
struct UtilisationSweep {
  std::string file, gpu;
  std::vector<UtilisationPoint> points;
};

/// True if the file has utilisations and no times.
[[nodiscard]] bool is_utilisation_sweep(const std::filesystem::path& path);

/// Reads kernel, core_mhz, mem_mhz, power_w and the columns u_*: u_dram, and the
/// core units by their name up to the next underscore (u_sp_add and u_sp_mul add to "sp").
/// @throws IoError, DataError
[[nodiscard]] UtilisationSweep read_utilisation_sweep(const std::filesystem::path& path,
                                                      const GpuSpec& spec,
                                                      const SweepColumns& columns = {});

/// Board power, W.
/// @param spec  with a utilisation section
[[nodiscard]] double utilisation_power_w(const GpuSpec& spec, const UtilisationPoint& point);

/// Fits voltage, base power, leakage and the units' power.
/// @param core_mhz, mem_state  clock at which the utilisations were taken
[[nodiscard]] GpuSpec calibrate_utilisation(const GpuSpec& frame, const UtilisationSweep& sweep,
                                            double core_mhz, const std::string& mem_state);

/// Relative errors of power over points a fit has not seen: `groups` groups of kernels
/// are left out in turn.
[[nodiscard]] std::vector<double> utilisation_errors(const GpuSpec& frame,
                                                     const UtilisationSweep& sweep, double core_mhz,
                                                     const std::string& mem_state,
                                                     std::size_t groups,
                                                     const RunContext& context = {});

}  // namespace rubato
