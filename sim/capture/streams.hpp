#pragma once
// Replays a captured run, all streams at once, under the clocks it ran at or
// others. docs/replay.md, sections 3 and 4.

#include <cstdint>
#include <optional>
#include <vector>

#include "models/table/gpu_model.hpp"
#include "sim/capture/order.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// Whose durations a replay takes at the captured clocks: those recorded (anchored, see
/// models/kernel/anchor.hpp), or what the model says of the work alone. Other clocks change both as
/// the model says. Kernels it cannot predict (CaptureReplay::source is nothing) always take the
/// recorded ones.
enum class DurationSource { captured, model };

struct SimulatedLaunch {
  double start_s = 0.0;   ///< since the first start of the capture
  double end_s = 0.0;     ///< >= start_s
  double energy_j = 0.0;  ///< its own and, while it runs, an equal share of idle power
};

/// What a device does from `start_s` on, until its next phase.
struct DevicePhase {
  double start_s = 0.0;
  std::uint32_t device = 0;
  std::uint32_t running = 0;  ///< launches
  double power_w = 0.0;
  double core_mhz = 0.0;
  bool power_limited = false;
};

struct StreamsResult {
  std::vector<SimulatedLaunch> launches;  ///< shape [launches of the capture]
  std::vector<DevicePhase> phases;        ///< in order of time; idle time included
  double makespan_s = 0.0;                ///< last end
  double energy_j = 0.0;         ///< all devices from 0 to the makespan, idle power included
  double power_limited_s = 0.0;  ///< device time at a lowered clock

  /// Energy of one device over a span, J.
  [[nodiscard]] double energy_over_j(std::uint32_t device, double from_s, double to_s) const;
};

/// A capture on one type of GPU. Refers to the capture, which must live as long.
class CaptureReplay {
 public:
  /// @param captured_clock  clocks the capture ran at
  /// @throws DataError if the capture has no launches, UsageError if the limit is
  ///         outside the spec's range
  CaptureReplay(const Capture& capture, GpuSpec spec, const ClockPair& captured_clock,
                std::optional<double> power_limit_w = {});

  [[nodiscard]] const Capture& capture() const noexcept { return *capture_; }
  [[nodiscard]] const GpuSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const ClockPair& captured_clock() const noexcept { return captured_clock_; }
  [[nodiscard]] std::int64_t origin_ns() const noexcept { return origin_ns_; }
  [[nodiscard]] const CaptureOrder& order() const noexcept { return order_; }

  /// How the model knows a kernel; nothing: it does not (no work figures).
  [[nodiscard]] std::optional<CoefficientSource> source(KernelId kernel) const {
    return sources_[index(kernel)];
  }

  /// The captured start and end of a launch in seconds since the first start.
  [[nodiscard]] double captured_start_s(std::size_t launch) const;
  [[nodiscard]] double captured_end_s(std::size_t launch) const;
  [[nodiscard]] double captured_makespan_s() const;

  [[nodiscard]] StreamsResult run(const ClockPair& clock, DurationSource durations) const;

 private:
  void bind_kernels();
  [[nodiscard]] std::vector<double> captured_work() const;

  const Capture* capture_;
  GpuSpec spec_;
  ClockPair captured_clock_;
  double power_limit_w_;
  std::int64_t origin_ns_ = 0;
  CaptureOrder order_;
  std::vector<KernelCoefficients> anchored_;   // return the captured times
  std::vector<KernelCoefficients> predicted_;  // what the model says of the work alone
  std::vector<std::optional<CoefficientSource>> sources_;
  std::vector<double> sm_share_;
  std::vector<double> work_;  // captured, in launches of the model: 1 where both agree
};

}  // namespace rubato
