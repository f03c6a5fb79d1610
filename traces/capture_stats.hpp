#pragma once
// What a capture holds, in numbers, and the compact trace of one of its steps.

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/capture.hpp"

namespace rubato {

/// Sums over launches of some kind.
struct LaunchSums {
  std::uint64_t launches = 0;
  std::int64_t time_ns = 0;  ///< sum of durations, overlap counted twice
};

/// GPU time by how the work (FLOPs and bytes) of its kernels is known.
struct WorkCoverage {
  std::int64_t measured_ns = 0, derived_ns = 0, guessed_ns = 0, unknown_ns = 0;
};

struct CaptureStats {
  LaunchSums kernels, copies, memsets, collectives;
  std::int64_t span_ns = 0;            ///< first start to last end of kernels
  std::int64_t busy_ns = 0;            ///< in which some kernel ran on some stream
  std::uint64_t names = 0;             ///< distinct full kernel names
  std::uint64_t launched_in_file = 0;  ///< kernels whose launch call is in the file
  std::vector<LaunchSums> by_stream;   ///< kernels, shape [streams]
  std::vector<LaunchSums> by_step;     ///< kernels by launch time, shape [steps]
  std::vector<LaunchSums> by_class;    ///< everything, indexed by KernelClass
  std::vector<LaunchSums> by_pass;     ///< kernels, indexed by Pass
  WorkCoverage coverage;               ///< of kernels, copies and memsets
};

[[nodiscard]] CaptureStats capture_stats(const Capture& capture);

/// Which part of a capture a trace is made of.
struct FoldOptions {
  /// Index into Capture::steps. Nothing: the step with most launches, the last of equals; of a
  /// capture without steps all launches.
  std::optional<std::uint32_t> step;
  std::optional<std::uint32_t> device;  ///< as recorded; nothing: the one with most launches
};

/// The launches of one step on one stream of one device: the stream that computes longest
/// (collectives and copies do not count). Runs that repeat are folded into segments. A kernel's
/// time is the mean over its launches taken.
/// @throws UsageError if there is no such step or device, or no computing launch in it
[[nodiscard]] Trace fold(const Capture& capture, const FoldOptions& options = {});

}  // namespace rubato
