#pragma once
// A power log put beside a captured run: what the sensor averages, how far the
// clocks of the two files are apart, energy of a span. docs/replay.md, section 2.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/capture.hpp"
#include "traces/power_log.hpp"

namespace rubato {

/// What a power reading averages: a window of `window_s`. It ends at the reading or, if the sensor
/// works in cycles, where the last full cycle before the reading ended.
struct SensorModel {
  double window_s = 0.0;  ///< 0: instantaneous
  double cycle_s = 0.0;   ///< 0: the window ends at the reading
};

/// By marketing name ("NVIDIA GeForce RTX 3080 Ti"). Compute cards of Ampere (A100 and the like):
/// 25 ms of every 100 ms, whatever the log. Hopper: the same in the field of instantaneous power,
/// else the last second, anew every 100 ms. Other cards from Ampere on: the last second, unless the
/// field is the instantaneous one, which Zeus reads. All else: instantaneous.
/// Sources: Yang et al., arXiv 2312.02741, 2023; nvmlDeviceGetPowerUsage in NVML's manual
/// ("averaged over 1 sec" from Ampere on, except GA100); an H100 SXM with driver 580.159, square
/// waves of load logged on 2026-11-26.
[[nodiscard]] SensorModel sensor_of(std::string_view gpu_name, const PowerLog& log);

/// A step function of time: constant between moments, 0 before the first.
class StepCurve {
 public:
  /// @param at_s   ascending, shape [n]
  /// @param value  from at_s[i] on, shape [n]; the last one must be 0
  StepCurve(std::vector<double> at_s, std::vector<double> value);

  /// Mean over a span, or the value at `to_s` if the span is empty.
  [[nodiscard]] double mean(double from_s, double to_s) const;
  [[nodiscard]] double first_s() const { return at_s_.front(); }
  [[nodiscard]] double last_s() const { return at_s_.back(); }

 private:
  [[nodiscard]] double integral_to(double s) const;

  std::vector<double> at_s_, value_, integral_;
};

/// 1 while any launch of `device` runs, else 0; time in seconds since `origin_ns`.
[[nodiscard]] StepCurve busy_curve(const Capture& capture, std::uint32_t device,
                                   std::int64_t origin_ns);

/// What a sensor reads of `curve` at a moment: the mean over its window.
[[nodiscard]] double reading(const StepCurve& curve, const SensorModel& sensor, double at_s);

/// How the times of a log become those of a curve: curve time = log time + offset_s.
struct Alignment {
  double offset_s = 0.0;
  std::optional<int> zone_quarter_hours;  ///< of a local time: log = UTC + quarters x 15 min
  double shift_s = 0.0;  ///< what the search added to the offset that the two clocks give, or to 0
  /// Pearson's, of the curve's readings and the log's samples, [-1, 1]; nothing where the clocks
  /// were taken as they are, since the run is too short for the sensor, or nothing varies in it.
  std::optional<double> correlation;
  std::size_t samples = 0;  ///< of the log inside the curve's span
};

/// "shifted by +0.047 s, correlation 1.00 over 125 samples"
[[nodiscard]] std::string text_of(const Alignment& alignment);

inline constexpr double least_correlation = 0.5;  ///< below, an alignment is refused
inline constexpr double largest_shift_s = 2.0;    ///< searched where both clocks are absolute
inline constexpr std::size_t least_samples = 8;   ///< inside the span

/// The shift with the highest cross-correlation of the curve's readings and the log's samples. 0
/// where both clocks are known, and the curve is shorter than two windows or 20 cycles of the
/// sensor, nothing varies, or no shift is better by two standard errors. Samples whose windows
/// reach to before the curve are not compared; those of one cycle are one reading.
/// @param epoch_s     UTC of the curve's time 0, where known; without it, or with a log
///                    of relative time, any shift at which the spans overlap is tried
/// @param zone_hours  time zone of a local log; nothing: guessed from the overlap of the
///                    spans, in whole quarter hours
/// @throws UsageError if zone_hours cannot be used; DataError if the spans do not overlap, fewer
/// than least_samples fall in the
///         span, one of the two does not vary, or the correlation is too low
[[nodiscard]] Alignment align(const StepCurve& curve, const PowerLog& log,
                              const SensorModel& sensor, std::optional<double> epoch_s,
                              std::optional<double> zone_hours = {});

/// Energy of a span of the log's own time.
struct SpanEnergy {
  double energy_j = 0.0;  ///< trapezoidal rule, interpolated at the edges
  double coverage = 0.0;  ///< share of the span with samples less than two periods apart
};

/// Readings are taken as of the middle of their windows. Around a span of n windows, a change of
/// power then costs 1/(4 n) of its energy at most.
/// @return nothing if the span is shorter than two windows or cycles of the sensor, or the log does
///         not reach over it and half a window
[[nodiscard]] std::optional<SpanEnergy> span_energy(const PowerLog& log, const SensorModel& sensor,
                                                    double from_s, double to_s);

/// Power of one class of kernels above idle.
struct ClassPower {
  std::optional<double> power_w;  ///< nothing: the windows cannot tell it
  std::optional<double> sigma_w;  ///< standard error; nothing at the bound 0
};

struct PowerFit {
  std::vector<ClassPower> classes;  ///< shape [classes]
  ClassPower idle;
  double residual_w = 0.0;  ///< root mean square
};

/// Fits power = idle + sum of share x class power to windows, all powers >= 0: non-negative least
/// squares (NNLS).
/// @param shares   share of each window in which a class runs, shape [windows x classes] row-major
/// @param power_w  shape [windows]
/// @return nothing with fewer than two windows per unknown
/// Source: active set method of Lawson and Hanson, Solving Least Squares Problems, 1974,
/// chapter 23.
[[nodiscard]] std::optional<PowerFit> fit_class_power(std::span<const double> shares,
                                                      std::span<const double> power_w,
                                                      std::size_t classes);

}  // namespace rubato
