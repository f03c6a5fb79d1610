#pragma once
// A run as a profiler recorded it: every launch with its times and its stream.
// Importers make captures; folding makes the compact Trace of one step from one.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// A GPU of the capture.
struct CaptureDevice {
  std::uint32_t id = 0;  ///< ordinal as recorded
  std::string name;      ///< marketing name, empty when the file does not say

  friend bool operator==(const CaptureDevice&, const CaptureDevice&) = default;
};

/// A queue of a device; launches of one stream do not overlap.
struct CaptureStream {
  std::uint32_t device = 0;  ///< index into Capture::devices
  std::int64_t id = 0;       ///< stream number as recorded

  friend bool operator==(const CaptureStream&, const CaptureStream&) = default;
};

/// One execution of a kernel, copy or memset.
struct CapturedLaunch {
  KernelId kernel;                        ///< index into Capture::kernels
  std::uint32_t stream = 0;               ///< index into Capture::streams
  std::int64_t start_ns = 0;              ///< since Capture::epoch_ns
  std::int64_t duration_ns = 0;           ///< >= 0
  std::optional<std::int64_t> launch_ns;  ///< host call, where it lies in the file
  std::optional<std::uint32_t> step;      ///< index into Capture::steps, by launch time
  Pass pass = Pass::unknown;

  [[nodiscard]] std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
  friend bool operator==(const CapturedLaunch&, const CapturedLaunch&) = default;
};

/// One training iteration as the host marked it (or as it was found, see step_source).
struct CapturedStep {
  std::string name;  ///< e.g. "ProfilerStep#5"
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  friend bool operator==(const CapturedStep&, const CapturedStep&) = default;
};

/// How the steps were found.
enum class StepSource { annotation, periodic, whole_file };
[[nodiscard]] constexpr std::string_view name_of(StepSource value) noexcept {
  return value == StepSource::annotation ? "annotation"
         : value == StepSource::periodic ? "periodic"
                                         : "whole_file";
}

/// Longer launches come from damaged files: no kernel runs for a day.
inline constexpr std::int64_t longest_launch_ns = std::int64_t{86'400} * 1'000'000'000;

/// Launches in order of their start. A kernel is one (name, grid, block, shapes or bytes).
struct Capture {
  std::string name;
  Provenance provenance;
  std::vector<CaptureDevice> devices;
  std::vector<CaptureStream> streams;
  std::vector<Kernel> kernels;  ///< unique names; Kernel::label is the name as captured
  std::vector<CapturedLaunch> launches;
  std::vector<CapturedStep> steps;
  StepSource step_source = StepSource::whole_file;
  std::optional<std::int64_t> epoch_ns;  ///< UTC of time 0 in ns since 1970, where known
  std::vector<std::string> left_out;     ///< one line for each kind of thing not imported

  friend bool operator==(const Capture&, const Capture&) = default;
};

}  // namespace rubato
