#pragma once
// Power of kernels of which nothing was timed, from how much of each unit of the GPU they use at
// one clock (their utilisation). After Guerreiro et al., HPCA 2018, who take utilisation as the
// same at all clocks. Here it changes with the clock as the time model has it. docs/models.md,
// section 7.

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

/// Fits voltage, base power, leakage and clock power, and the utilisation section: the units'
/// powers and the exponents.
/// @param core_mhz, mem_state  clock at which the utilisations were taken
/// @throws UsageError for an unknown memory state, DataError for fewer than two core clocks
[[nodiscard]] GpuSpec calibrate_utilisation(const GpuSpec& frame, const UtilisationSweep& sweep,
                                            double core_mhz, const std::string& mem_state);

/// Cross-validation: relative errors of power over points that a fit has not seen. Each of `groups`
/// groups of kernels is left out once.
[[nodiscard]] std::vector<double> utilisation_errors(const GpuSpec& frame,
                                                     const UtilisationSweep& sweep, double core_mhz,
                                                     const std::string& mem_state,
                                                     std::size_t groups,
                                                     const RunContext& context = {});

}  // namespace rubato
