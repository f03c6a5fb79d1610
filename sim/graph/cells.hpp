#pragma once
// Time and energy of launches at each clock where they come from elsewhere than a graph's model.

#include <cstddef>
#include <optional>

#include "common/ids.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/kernel/model.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// Time and energy of each launch of a graph at each clock, as measured or modelled elsewhere.
/// Nothing is anchored to captured times, and launches share no GPU: each GPU has one stream, and
/// there are no collectives of several ranks.
class LaunchCells {
 public:
  LaunchCells() = default;
  LaunchCells(const LaunchCells&) = delete;
  LaunchCells& operator=(const LaunchCells&) = delete;
  virtual ~LaunchCells() = default;

  /// How many clocks there are; ids of plans are below it.
  [[nodiscard]] virtual std::size_t clocks() const = 0;
  /// Time and energy of a whole launch, idle power included.
  /// @pre `clock` is one that the activity can have
  [[nodiscard]] virtual OperatingPoint at(std::size_t activity, ClockId clock) const = 0;
  /// Board power of a GPU that runs nothing, W.
  [[nodiscard]] virtual double idle_power_w(ClockId clock) const = 0;
  /// What a change of clock takes; nothing where both clocks are the same setting.
  [[nodiscard]] virtual std::optional<SwitchCost> change(const SwitchModel& switching, ClockId from,
                                                         ClockId to) const = 0;
};

}  // namespace rubato
