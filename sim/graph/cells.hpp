#pragma once
// What launches take at each clock where something else knows it than the model of a graph.

#include <cstddef>
#include <optional>

#include "common/ids.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/kernel/model.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// Time and energy of each launch of a graph at each clock, as measured or modelled elsewhere.
/// Nothing is anchored to captured times, and nothing is shared: each GPU has one stream, and no
/// collectives of several ranks.
class LaunchCells {
 public:
  LaunchCells() = default;
  LaunchCells(const LaunchCells&) = delete;
  LaunchCells& operator=(const LaunchCells&) = delete;
  virtual ~LaunchCells() = default;

  /// Clocks there are: those of plans are below.
  [[nodiscard]] virtual std::size_t clocks() const = 0;
  /// A launch of the graph as a whole, idle power included.
  /// @pre activities are asked for at clocks they can have
  [[nodiscard]] virtual OperatingPoint at(std::size_t activity, ClockId clock) const = 0;
  /// Board power of a GPU that runs nothing, W.
  [[nodiscard]] virtual double idle_power_w(ClockId clock) const = 0;
  /// Nothing where both are the same setting.
  [[nodiscard]] virtual std::optional<SwitchCost> change(const SwitchModel& switching, ClockId from,
                                                         ClockId to) const = 0;
};

}  // namespace rubato
