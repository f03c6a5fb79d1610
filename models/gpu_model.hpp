#pragma once
// Time and energy of a trace's kernels on one GPU at any clock.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "common/ids.hpp"
#include "models/clock_grid.hpp"
#include "models/gpu_spec.hpp"
#include "models/profile_table.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// What the GPU does for one launch of one kernel at one requested clock.
struct OperatingPoint {
  double time_s = 0.0;         ///< > 0
  double energy_j = 0.0;       ///< board energy of the launch, > 0
  double core_mhz = 0.0;       ///< effective core clock after clamps, boost ceiling and power limit
  bool power_limited = false;  ///< the power limit lowered the core clock
};

/// How the coefficients of a kernel came about.
enum class CoefficientSource { measured, derived, guessed };

/// A spec bound to the kernels of one trace: kernel coefficients are looked up
/// (calibrated kernels by name) or derived (FLOPs, bytes, class) once, here.
class GpuModel {
 public:
  /// @param power_limit_w  replaces the spec's power limit, > 0
  /// @throws DataError if a kernel has neither calibrated coefficients nor work figures,
  ///         UsageError if the limit is outside the spec's range
  GpuModel(GpuSpec spec, const Trace& trace, std::optional<double> power_limit_w = {});

  [[nodiscard]] const GpuSpec& spec() const noexcept;
  [[nodiscard]] std::size_t kernels() const noexcept;
  [[nodiscard]] CoefficientSource source(KernelId kernel) const;

  [[nodiscard]] OperatingPoint evaluate(KernelId kernel, const ClockPair& clock) const;

  /// Board power while nothing runs at this clock, W.
  [[nodiscard]] double idle_power_w(const ClockPair& clock) const;

  // implementation in models/
};

/// Evaluates every kernel at every clock of the grid in parallel (oneTBB).
/// Row k of the table is one launch of kernel k. Same bits for any number of threads.
[[nodiscard]] ProfileTable fill_profile(const GpuModel& model, const ClockGrid& grid);

}  // namespace rubato
