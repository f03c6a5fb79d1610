#pragma once
// One GPU: what clocks it takes, how they act, and the parameters of the time
// and power model that all kernels share. Read from a JSON file in which every
// number names its source.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "models/clock_pair.hpp"

namespace rubato {

/// One setting of the memory clock. `auto` is a state of its own.
struct MemState {
  std::string name;                    ///< as in clock labels: "9501", "auto"
  double mem_mhz = 0.0;                ///< memory clock in this state, > 0
  std::optional<double> max_core_mhz;  ///< clamp of the core clock in this state
};

/// A named selection of clocks, e.g. "paper": 6 memory states x 11 core clocks.
struct NamedGrid {
  std::string name;
  std::vector<std::string> mem_states;
  std::vector<std::optional<double>> core_mhz;  ///< nothing: "auto"
};

/// The model parameters are filled in by models/ (see docs/models.md).
struct GpuSpec {
  std::string name;   ///< "rtx-3080-ti"
  std::string title;  ///< "NVIDIA GeForce RTX 3080 Ti"
  bool calibrated = false;
  std::vector<MemState> mem_states;
  double core_min_mhz = 0.0;
  double core_max_mhz = 0.0;
  double core_step_mhz = 0.0;
  std::vector<NamedGrid> grids;
  ClockPair default_clock;
  double power_limit_w = 0.0;
};

/// A spec by name (shipped) or path. @throws UsageError (unknown name, with the nearest), IoError,
/// DataError
[[nodiscard]] GpuSpec load_gpu_spec(std::string_view name_or_path);

}  // namespace rubato
