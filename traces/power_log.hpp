#pragma once
// Board power over time as the usual tools log it. docs/replay.md, section 1.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/log_fields.hpp"

namespace rubato {

/// Who wrote a log: nvidia-smi --query-gpu or dmon, dcgmi dmon, Rubato or an NVML script (samples),
/// the Zeus monitor.
enum class PowerLogKind { nvidia_smi, dcgm, samples, zeus };

struct PowerSample {
  double time_s = 0.0;   ///< see TimeBase
  double power_w = 0.0;  ///< >= 0
  std::optional<double> core_mhz;
  std::optional<double> mem_mhz;
};

/// Samples of one GPU, times strictly ascending.
struct PowerLog {
  std::string file;
  PowerLogKind kind = PowerLogKind::samples;
  TimeBase base = TimeBase::utc;
  bool instantaneous = false;  ///< no averages: the field is power.draw.instant
  std::vector<PowerSample> samples;
  std::vector<std::string> left_out;  ///< one line for each kind of row not used

  /// Median distance of samples, s; 0 with fewer than two.
  [[nodiscard]] double period_s() const;
};

struct PowerLogOptions {
  /// Of a log of several: index, PCI bus id (without its domain too), UUID or how one begins, name,
  /// host, or several of them with '/' between ("node1/0"). Empty: there is one only.
  std::string gpu = {};
  std::optional<double> period_s = {};  ///< of logs without times (dcgmi dmon), > 0
};

/// Recognises the format by its content. Lines that cannot be read are left out and counted.
/// @throws DataError if it is no power log, if more lines are bad than good, naming the first one,
///         if there are fewer than two samples, or if none reaches 2 W; UsageError if `gpu` or
///         `period_s` is needed and missing or cannot be used, or the log has no such GPU
[[nodiscard]] PowerLog parse_power_log(std::string_view text, std::string name,
                                       const PowerLogOptions& options = {});

/// @throws IoError, and as parse_power_log
[[nodiscard]] PowerLog read_power_log(const std::filesystem::path& path,
                                      const PowerLogOptions& options = {});

/// "nvidia-smi", "DCGM", "samples", "Zeus".
[[nodiscard]] std::string_view name_of(PowerLogKind value) noexcept;

}  // namespace rubato
