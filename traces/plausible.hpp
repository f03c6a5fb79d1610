#pragma once
// Whether a measured number can be one of a GPU. A column in another unit (mW, ms, kHz) is off by
// a factor of sixty or more, which no fit and no plan would notice. Every reader of a table of
// times, powers, energies and clocks asks here.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

enum class Quantity { time, power, energy, clock, bytes, number };

/// A unit of a column, and how much of ours (s, W, J, MHz, bytes) it is.
struct MeasuredUnit {
  std::string_view name;
  Quantity quantity = Quantity::number;
  double scale = 1.0;
};

/// The unit of a name such as "ms"; nullptr if it is not known.
[[nodiscard]] const MeasuredUnit* find_unit(std::string_view name) noexcept;

/// "s, ms, us, ...", for hints. @param quantity  nothing: all units
[[nodiscard]] std::string unit_names(std::optional<Quantity> quantity = {});

/// What is believed, both ends included.
struct Bounds {
  double low = 0.0, high = 0.0;
};

/// Board power of one GPU, W. A laptop's idles at 2 W; the largest of 2026 take 1400 W.
inline constexpr Bounds board_power_w{1.0, 5000.0};
/// Core clock, MHz. The lowest of any driver's list is 108 MHz, the highest boost 3.2 GHz.
inline constexpr Bounds core_clock_mhz{50.0, 5000.0};
/// Memory clock, MHz, single or effective data rate: from idle at 101 MHz to GDDR7 at 36 Gb/s.
inline constexpr Bounds memory_clock_mhz{50.0, 50'000.0};
/// One launch, pass or run of a table, s. A few cycles are 1 ns; nobody waits a week for each row.
inline constexpr Bounds run_time_s{1e-9, 604'800.0};
/// One launch of a kernel in a step, s. The longest wait for others, within NCCL's half an hour.
inline constexpr Bounds launch_time_s{1e-9, 3600.0};

/// A column that a number came from: the number is in proportion to it or, where it divides, to
/// its inverse.
struct ReadColumn {
  std::string name;  ///< as the file calls it
  Quantity quantity = Quantity::number;
  double scale = 1.0;  ///< of the unit it was read in
  bool divides = false;
  std::string option = {};  ///< what sets its unit, to be followed by the unit; may be empty
};

/// What is wrong with a number beyond the bounds: what was expected and, where another unit of a
/// column would make sense, that unit. Nothing if the number is within them.
/// @param what  "power_w", "energy_j over time_s"
/// @param unit  ours, of `value` and `bounds`
[[nodiscard]] std::optional<std::string> implausible(std::string_view what, double value,
                                                     std::string_view unit, const Bounds& bounds,
                                                     std::span<const ReadColumn> columns);

/// The same of the time that a trace gives one launch of a kernel, s, where it gives one.
[[nodiscard]] std::optional<std::string> implausible_launch_time(
    const std::optional<double>& measured_time_s);

/// A time of some work at some setting. What is 0 is not known.
struct TimedSetting {
  double time_s = 0.0;  ///< > 0
  double core_mhz = 0.0, mem_mhz = 0.0, power_limit_w = 0.0;
};

/// A time that no other setting of the same work explains.
struct OddTime {
  std::size_t at = 0, usual = 0;  ///< places of the time, and of the median
  Bounds expected;                ///< of the time, s
};

/// Times of the same work that are off from the median by more than clocks and power limits
/// explain. Time is in proportion to no more than the inverse of both clocks; a power limit lowers
/// the core clock, by less than the square of the ratio of limits. Eight times that is believed:
/// throttling, contention and first runs. O(n).
[[nodiscard]] std::vector<OddTime> odd_times(std::span<const TimedSetting> same_work);

/// What is wrong with such a time. @param where  says which row the median is, "t.csv:3"
[[nodiscard]] std::string odd_time_text(const OddTime& odd, std::span<const TimedSetting> same_work,
                                        const ReadColumn& column, std::string_view where);

}  // namespace rubato
