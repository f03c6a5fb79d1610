#pragma once
// One setting of memory clock, core clock and power limit.

#include <optional>

#include "common/ids.hpp"

namespace rubato {

/// A setting as a user requests it. The GPU may run slower: see GpuModel.
struct ClockPair {
  MemStateId mem;                  ///< memory state of the spec, locked or "auto"
  std::optional<double> core_mhz;  ///< upper bound of the core clock; nothing: no bound ("auto")
  std::optional<double> power_limit_w = {};  ///< of the board, W; nothing: that of the run

  friend bool operator==(const ClockPair&, const ClockPair&) = default;
};

}  // namespace rubato
