#pragma once
// A run as a profiler recorded it: every launch with its times and its stream.
// Importers make captures; folding makes the compact Trace of one step from one.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Captures count in ns, models in s.
inline constexpr double s_per_ns = 1e-9;

/// A GPU of the capture.
struct CaptureDevice {
  std::uint32_t id = 0;  ///< ordinal as recorded
  std::string name;      ///< marketing name, empty when the file does not say
  std::optional<double> compute_capability = {};  ///< NVIDIA's generation, e.g. 9.0, where said
  std::optional<std::uint32_t> sm_count = {};     ///< multiprocessors, where said

  friend bool operator==(const CaptureDevice&, const CaptureDevice&) = default;
};

/// A queue of a device; launches of one stream do not overlap.
struct CaptureStream {
  std::uint32_t device = 0;                   ///< index into Capture::devices
  std::int64_t id = 0;                        ///< stream number as recorded
  std::optional<std::int32_t> priority = {};  ///< CUDA's: the lower, the more urgent

  friend bool operator==(const CaptureStream&, const CaptureStream&) = default;
};

/// A thread of the host, as recorded.
struct CaptureThread {
  std::int64_t process = 0;
  std::int64_t id = 0;

  friend bool operator==(const CaptureThread&, const CaptureThread&) = default;
};

/// What a call of the host to the GPU's runtime does. Calls that neither launch, wait nor have to
/// do with an event are not kept.
enum class CallKind {
  launch,         ///< enqueues kernels, copies or memsets and goes on
  blocking_copy,  ///< enqueues a copy and waits for its end
  stream_sync,    ///< waits for all work of a stream
  device_sync,    ///< waits for all work of a device
  event_sync,     ///< waits for an event
  event_query,    ///< asks whether an event is over, and goes on
  event_record,   ///< puts an event behind the work a stream has by now
  stream_wait     ///< later work of a stream waits for an event
};
[[nodiscard]] std::string_view name_of(CallKind value) noexcept;
template <>
[[nodiscard]] std::optional<CallKind> from_name<CallKind>(std::string_view name) noexcept;
template <>
[[nodiscard]] std::span<const std::string> all_names<CallKind>();

/// A call of the host. What the file does not say is left empty, for others to infer.
struct CapturedCall {
  CallKind kind = CallKind::launch;
  std::uint32_t thread = 0;      ///< index into Capture::threads
  std::int64_t start_ns = 0;     ///< since Capture::epoch_ns
  std::int64_t duration_ns = 0;  ///< >= 0; how long the host was in the call
  /// Index into Capture::streams. launch, blocking_copy: where its (first) work went; stream_sync:
  /// which stream is awaited; device_sync: one of the awaited device; event_record: into which the
  /// event is put; stream_wait: which waits.
  std::optional<std::uint32_t> stream = {};
  /// event_sync, event_query, stream_wait: index into Capture::calls of the event_record that is
  /// waited for. Of several records of one event it is the latest before the call.
  std::optional<std::uint32_t> record = {};
  /// The same kinds: the stream in which the event was recorded.
  std::optional<std::uint32_t> recorded_stream = {};

  [[nodiscard]] std::int64_t end_ns() const noexcept { return start_ns + duration_ns; }
  friend bool operator==(const CapturedCall&, const CapturedCall&) = default;
};

/// Ranks that communicate with one another.
struct CaptureGroup {
  std::string name;                       ///< as recorded, e.g. "0"
  std::string description;                ///< e.g. "default_pg", may be empty
  std::optional<std::uint32_t> size;      ///< number of ranks
  std::vector<std::uint32_t> ranks = {};  ///< their numbers, in order; empty if not all are known

  friend bool operator==(const CaptureGroup&, const CaptureGroup&) = default;
};

/// What a launch of a communication kernel sends, as far as the file says.
struct CapturedCollective {
  CollectiveKind kind = CollectiveKind::other;
  std::optional<std::uint32_t> group = {};        ///< index into Capture::groups
  std::optional<std::uint64_t> sequence = {};     ///< counts the collectives of its group
  std::optional<std::uint64_t> in_bytes = {};     ///< buffer of this rank that is sent
  std::optional<std::uint64_t> out_bytes = {};    ///< buffer of this rank that is filled
  std::optional<std::uint32_t> source_rank = {};  ///< of a broadcast, send or receive
  std::optional<std::uint32_t> target_rank = {};  ///< of a reduce, send or receive

  friend bool operator==(const CapturedCollective&, const CapturedCollective&) = default;
};

/// One execution of a kernel, copy or memset.
struct CapturedLaunch {
  KernelId kernel;                        ///< index into Capture::kernels
  std::uint32_t stream = 0;               ///< index into Capture::streams
  std::int64_t start_ns = 0;              ///< since Capture::epoch_ns
  std::int64_t duration_ns = 0;           ///< >= 0
  std::optional<std::int64_t> launch_ns;  ///< start of the host call, where the file has it
  std::optional<std::uint32_t> step;      ///< index into Capture::steps, by launch time
  Pass pass = Pass::unknown;
  /// Index into Capture::calls, which then starts at launch_ns; several launches of a CUDA graph
  /// share one. Not set where only the time is known.
  std::optional<std::uint32_t> call = {};
  std::optional<std::uint32_t> collective = {};  ///< index into Capture::collectives

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

/// How the steps were found: marked in the file, by the period of its kernels
/// (import/step_period.hpp), or not at all.
enum class StepSource { annotation, periodic, whole_file };
[[nodiscard]] constexpr std::string_view name_of(StepSource value) noexcept {
  return value == StepSource::annotation ? "annotation"
         : value == StepSource::periodic ? "periodic"
                                         : "whole_file";
}

/// Longer launches come from damaged files: no kernel runs for a day.
inline constexpr std::int64_t longest_launch_ns = std::int64_t{86'400} * 1'000'000'000;

/// Host and device times of one profiler agree to within this, or are made to (see
/// import/device_clock.hpp).
inline constexpr std::int64_t clock_error_ns = 2'000;

/// Launches in order of their start. What differs in name, grid, block, pass, shapes or bytes is
/// another kernel.
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

  std::vector<CaptureThread> threads;           ///< of the host, that made calls
  std::vector<CapturedCall> calls;              ///< in order of their start
  std::vector<CaptureGroup> groups;             ///< of collectives
  std::vector<CapturedCollective> collectives;  ///< one for each launch that has one
  std::optional<std::uint32_t> rank;            ///< of the process that was recorded
  std::optional<std::uint32_t> world_size;      ///< ranks of the run

  friend bool operator==(const Capture&, const Capture&) = default;
};

}  // namespace rubato
