#pragma once
// The clock settings an exploration may choose from.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "models/gpu/clock_pair.hpp"

namespace rubato {

struct GpuSpec;

/// Ordered set of clock pairs with printable labels ("5001/1470", "auto/auto": memory/core, with a
/// power limit "auto/auto, 250 W").
class ClockGrid {
 public:
  /// @throws UsageError if `pairs` is empty, has a duplicate, or holds a pair `spec` does not
  /// support
  ClockGrid(const GpuSpec& spec, std::vector<ClockPair> pairs);

  [[nodiscard]] std::size_t size() const noexcept { return pairs_.size(); }
  [[nodiscard]] const ClockPair& operator[](ClockId id) const { return pairs_[index(id)]; }
  [[nodiscard]] std::span<const ClockPair> pairs() const noexcept { return pairs_; }
  [[nodiscard]] const std::string& label(ClockId id) const { return labels_[index(id)]; }

  /// Id of a label or of a pair; nothing if the grid does not hold it.
  [[nodiscard]] std::optional<ClockId> find(std::string_view label) const;
  [[nodiscard]] std::optional<ClockId> find(const ClockPair& pair) const;

  /// What the GPU does when nobody sets a clock (spec.default_clock). It is always in the grid:
  /// the constructor appends it if `pairs` lacks it.
  [[nodiscard]] ClockId default_clock() const noexcept { return default_; }

 private:
  std::vector<ClockPair> pairs_;
  std::vector<std::string> labels_;
  ClockId default_;
};

/// The core clock that can be set nearest to this one, within the GPU's range, MHz.
[[nodiscard]] double nearest_step_mhz(const GpuSpec& spec, double core_mhz);

/// The limit that was asked for, else the spec's. @throws UsageError if it is outside the spec's
/// range
[[nodiscard]] double accepted_power_limit_w(const GpuSpec& spec, std::optional<double> asked_w);

/// A grid of the spec by name ("paper", "full"), that of most clocks for an empty name. Or a list
/// such as "mem=5001,auto core=210:2100:210,auto": every memory state listed, at every core clock
/// listed (210:2100:210 is FIRST:LAST:STEP, MHz). With "limit=200:400:25" behind it each of these
/// under each power limit, W; alone, the default clocks under each.
/// @throws UsageError for a name, state, clock or limit that the spec lacks, with the nearest
[[nodiscard]] ClockGrid make_clock_grid(const GpuSpec& spec, std::string_view selection);

/// The selection with an empty name spelled out: the spec's grid of most clocks; empty if it has
/// none.
[[nodiscard]] std::string grid_name(const GpuSpec& spec, std::string_view selection);

/// "5001/1470" or "auto/auto, 250 W" -> pair. @throws UsageError with the nearest supported clock
[[nodiscard]] ClockPair parse_clock_pair(const GpuSpec& spec, std::string_view label);

}  // namespace rubato
