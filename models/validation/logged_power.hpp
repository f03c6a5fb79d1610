#pragma once
// A GPU as a power log beside a capture shows it: the one way in which `explore --power`,
// `replay --power` and `calibrate --captures` use the watts and clocks of a log. docs/replay.md.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "models/validation/power_alignment.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// A log put beside one device of a capture.
struct PlacedLog {
  SensorModel sensor;
  Alignment alignment;
};

/// @param gpu_title   the sensor is that of the device as recorded, else of this GPU
/// @param zone_hours  as in align()
/// @throws what align() throws
[[nodiscard]] PlacedLog placed_log(const Capture& capture, std::uint32_t device,
                                   std::string_view gpu_title, const PowerLog& log,
                                   std::optional<double> zone_hours);

/// The clock that the GPU was asked for while it worked, "1593/1410": medians over samples with
/// more than half of the log's power; "auto" for a clock that the log does not have. Where the
/// power limit lowered the core clock (readings at the limit, clocks below the highest), it is the
/// highest. Nothing if the log has no core clock.
/// @param spec  of the GPU; null: it is not known where its limit is
[[nodiscard]] std::optional<std::string> logged_clock(const PowerLog& log,
                                                      const GpuSpec* spec = nullptr);

/// Readings beyond the board's limit, in words; nothing: there are none.
[[nodiscard]] std::optional<std::string> beyond_limit(const PowerLog& log, const GpuSpec& spec);

struct LoggedRun {
  GpuSpec spec;                    ///< with core energies and waiting power as logged
  std::vector<std::string> notes;  ///< what the log said, or why it said nothing
};

/// Kernels of the capture get core energies such that steps draw what was read inside them: one
/// factor for each class, as far as readings tell classes apart. Where the power limit held the
/// GPU, the factors also give the core clock that was seen. Waiting power is what was read inside
/// steps; nothing outside steps counts.
/// @param clock  that the capture was asked to run at
[[nodiscard]] LoggedRun with_logged_power(const GpuSpec& spec, const Capture& capture,
                                          std::uint32_t device, const ClockPair& clock,
                                          const PowerLog& log, const PlacedLog& placed);

}  // namespace rubato
