#pragma once
// Caches of Kernel Tuner (github.com/KernelTuner/kernel_tuner): measurements of one kernel over its
// parameters and clocks, as a table that sweeps are read from.

#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// A cache as the text of a CSV table.
struct KernelTunerTable {
  /// Columns: kernel, gpu, core_mhz (observed) or core_mhz_requested (nvml_gr_clock), mem_mhz,
  /// time_s, energy_j or power_w, power_cap_w, and the tuned parameters under their own names. A
  /// kernel's name is the cache's, with the values of those parameters that vary, clocks and power
  /// limit aside.
  std::string csv;
  std::vector<std::string> left_out;  ///< a line for configurations without a measurement, if any
  std::vector<std::string> notes;     ///< whose energies these are, where not NVML's alone
};

/// Whether a text may be a cache: JSON, which no CSV is.
[[nodiscard]] bool is_kernel_tuner_cache(std::string_view text) noexcept;

/// Reads a cache, an unfinished one too (its closing braces are missing). Clocks, MHz:
/// nvml_gr_clock and nvml_mem_clock as set, else core_freq and mem_freq as observed, to the nearest
/// MHz; mem_mhz is empty where the memory clock was neither. Times of a cache are in ms. Energies
/// (J) and powers (W) are those of one observer, nvml_energy and nvml_power or those of another
/// (ps_energy of PowerSensor, pmt_energy, ...): of the one that most configurations have.
/// @throws DataError if no configuration has a time, a clock, and an energy or power
[[nodiscard]] KernelTunerTable read_kernel_tuner_cache(std::string_view text,
                                                       const std::string& name);

}  // namespace rubato
