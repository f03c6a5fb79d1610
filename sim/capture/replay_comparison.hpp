#pragma once
// A replay compared with the run it was captured from, per kernel, class and step: time always,
// power and energy where a power log was taken. docs/replay.md, section 5.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/validation/power_alignment.hpp"
#include "sim/capture/replay.hpp"

namespace rubato {

/// Whether the model is right about a group. within, off: its error, with the whole error bar, is
/// within or outside the tolerance; undecided: the error bar does not let one say. not_predicted:
/// no FLOPs or bytes are known. waits: collectives, whose captured time includes waiting for other
/// ranks, which no file of one rank can tell apart.
enum class Verdict { within, off, undecided, waits, not_predicted };
[[nodiscard]] std::string_view name_of(Verdict value) noexcept;

/// A relative error with its 90 % error bar.
struct ErrorBar {
  double value = 0.0;                ///< predicted over captured, less 1
  std::optional<double> half_width;  ///< nothing where only one kernel was compared
};

/// Relative error that counts as right.
inline constexpr double verdict_tolerance = 0.10;
[[nodiscard]] Verdict verdict_of(const std::optional<ErrorBar>& error);

/// Launches of one kernel or one class. Times are sums over launches, with what power limits and
/// contention with other streams add.
struct ReplayRow {
  std::string name;
  KernelClass kind = KernelClass::other;
  std::optional<CoefficientSource> source;  ///< of kernels; nothing: not predicted
  std::uint64_t launches = 0;
  double captured_s = 0.0;
  double compared_s = 0.0;   ///< the part of captured_s that the model predicts
  double predicted_s = 0.0;  ///< the model's time for that part
  double replayed_s = 0.0;   ///< all captured durations, brought to the other clocks
  std::optional<ErrorBar> time_error;
  double predicted_power_w = 0.0;          ///< while the launches run
  std::optional<double> measured_power_w;  ///< of classes, fitted to windows of a power log
  std::optional<double> measured_sigma_w;  ///< its standard error
};

[[nodiscard]] Verdict verdict_of(const ReplayRow& row);

struct ReplayStep {
  std::string name;
  std::uint64_t launches = 0;
  double captured_s = 0.0;  ///< first start to last end
  double predicted_s = 0.0;
  double replayed_s = 0.0;
  double predicted_j = 0.0;  ///< of the compared device, idle power included
  double replayed_j = 0.0;
  std::optional<SpanEnergy> measured;
};

/// Captured time of all launches, s, by what the prediction of it rests on (CoefficientSource).
struct ReplayCoverage {
  double measured_s = 0.0, scaled_s = 0.0, derived_s = 0.0, guessed_s = 0.0;
  double anchored_s = 0.0;  ///< not predicted: captured time, modelled split
  [[nodiscard]] double total_s() const {
    return measured_s + scaled_s + derived_s + guessed_s + anchored_s;
  }
};

/// Totals of the whole run.
struct ReplayTotals {
  double captured_s = 0.0;    ///< first start to last end
  double reproduced_s = 0.0;  ///< captured durations at the captured clocks
  double predicted_s = 0.0;   ///< the model's durations at the captured clocks
  double replayed_s = 0.0;    ///< captured durations at the other clocks
  double reproduced_j = 0.0, predicted_j = 0.0, replayed_j = 0.0;
};

/// A power log, and how its times become those of the run.
struct PowerEvidence {
  const PowerLog* log = nullptr;
  SensorModel sensor;
  Alignment alignment;
  std::uint32_t device = 0;  ///< index into Capture::devices
};

struct ReplayComparison {
  ReplayTotals totals;
  ReplayCoverage coverage;
  std::vector<ReplayRow> kernels;  ///< that were launched, most captured time first
  std::vector<ReplayRow> classes;  ///< the same order
  ReplayRow compute;               ///< all but collectives
  std::vector<ReplayStep> steps;
  std::optional<SpanEnergy> measured;  ///< of the whole run
  std::optional<ClassPower> measured_idle;
  std::optional<double> power_residual_w;  ///< of the fit of class powers, root mean square
};

/// The three replays behind a comparison: captured durations at the captured clocks, the model's
/// durations there, captured durations at other clocks.
struct ReplayRuns {
  CaptureRun reproduced, predicted, replayed;
};
/// @param clock  other clocks for `replayed`
[[nodiscard]] ReplayRuns run_all(const CaptureReplay& replay, const ClockPair& clock);

[[nodiscard]] ReplayComparison compare(const CaptureReplay& replay, const ReplayRuns& runs,
                                       const std::optional<PowerEvidence>& power = {});

}  // namespace rubato
