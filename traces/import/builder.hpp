#pragma once
// What importers share. It keeps one kernel per label, grid, block, pass and work, one stream per
// device and number, and launches in order of their start.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "traces/capture.hpp"

namespace rubato {

/// Times and durations beyond this (63 years) come from damaged files; sums of two still fit.
inline constexpr std::int64_t max_time_ns = std::int64_t{2'000'000'000} * 1'000'000'000;

/// What CaptureBuilder::leave_out is told of copies.
inline constexpr const char* launched_twice = "launches that are in the file twice";

/// A GPU as a file lists it.
struct NamedDevice {
  std::optional<std::uint32_t> id;
  std::string name;
  std::optional<double> compute_capability = {};
  std::optional<std::uint32_t> sm_count = {};
};

/// 8.6 of 8 and 6; nothing for what is no capability.
[[nodiscard]] std::optional<double> capability_of(std::optional<std::int64_t> major,
                                                  std::optional<std::int64_t> minor);
/// Multiprocessors of a GPU; nothing for what no GPU has.
[[nodiscard]] std::optional<std::uint32_t> sms_of(std::optional<std::int64_t> count);

/// Collects launches; finish() sorts and checks.
class CaptureBuilder {
 public:
  explicit CaptureBuilder(std::string file);

  [[nodiscard]] Capture& capture() noexcept { return capture_; }

  /// Index of a device; the name of the first mention that has one counts.
  std::uint32_t device(std::uint32_t id, std::string_view name = {});

  /// Names the devices mentioned so far by what the file says of GPUs. Numbers need not match:
  /// runtimes count the GPUs they may use, profilers those of the host. Where only one kind of GPU
  /// is named, every device is of that kind. Where several are, a device whose number none has
  /// stays without a name, and is counted as left out.
  /// @param known  number (where it is one) and name, in the order of the file
  void name_devices(std::span<const NamedDevice> known);
  std::uint32_t stream(std::uint32_t device_id, std::int64_t stream_id);

  /// The stream, if it has been mentioned: waits on streams without work need not be kept.
  [[nodiscard]] std::optional<std::uint32_t> known_stream(std::uint32_t device_id,
                                                          std::int64_t stream_id) const;

  /// What CapturedCall::stream is of a call that waits.
  [[nodiscard]] std::optional<std::uint32_t> awaited_stream(CallKind kind, std::uint32_t device_id,
                                                            std::int64_t stream_id) const;

  /// Index of a thread of the host.
  std::uint32_t thread(const CaptureThread& thread);

  /// Index of a new call; finish() puts calls in order. A negative duration, or one longer than a
  /// day, becomes 0.
  std::uint32_t call(const CapturedCall& call);
  [[nodiscard]] CapturedCall& call_at(std::uint32_t index) { return capture_.calls[index]; }

  /// Index of the group of that name and ranks; its size and description are filled in where they
  /// were not known.
  std::uint32_t group(const CaptureGroup& group);

  /// The kernel with this label, launch shape, pass and work; a new one where it has not been seen.
  /// @param short_name  what its unique name begins with; name and label are made printable
  KernelId kernel(Kernel kernel, std::string_view short_name);

  /// Counts what was left out, by kind: "3 launches with a negative duration".
  void leave_out(const std::string& what, std::uint64_t count = 1) { left_out_[what] += count; }

  /// Adds the launch, or counts it as left out if its times are absurd. @return whether it is kept
  bool launch(const CapturedLaunch& launch);

  /// As launch(), for times that a profiler collected. CUPTI and ROCm's tracer write 0 for start
  /// and end of what they did not: such a launch is left out and counted.
  bool timed_launch(const CapturedLaunch& launch);

  /// Counts a launch whose times are not known.
  void leave_out_untimed_launch() { leave_out("launches without a time"); }

  /// The capture: launches and calls in order, left_out filled, names of steps, devices and groups
  /// printable. What a file says twice, as one merged with itself does, is there once.
  /// @throws DataError if every launch was left out
  [[nodiscard]] Capture finish() &&;

 private:
  Capture capture_;
  std::unordered_map<std::string, KernelId> kernels_;
  std::unordered_map<std::string, std::uint32_t> names_;  ///< how many kernels began with it
  std::unordered_set<std::string> taken_;
  std::map<std::uint32_t, std::uint32_t> devices_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> streams_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> threads_;
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint32_t> groups_;
  std::map<std::string, std::uint64_t> left_out_;

  void sort_calls();
  void sort_launches();
};

/// A time in ns, rounded to whole ns. What no integer holds becomes so large that
/// CaptureBuilder::launch leaves it out.
[[nodiscard]] std::int64_t clamped_ns(double ns);

/// Finds the step around a time, by binary search: there may be tens of thousands.
class StepFinder {
 public:
  struct Interval {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t step = 0;  ///< index into Capture::steps
  };
  explicit StepFinder(std::vector<Interval> intervals);

  /// Of intervals within one another the one that begins first.
  [[nodiscard]] std::optional<std::uint32_t> at(std::int64_t ts_ns) const;

 private:
  std::vector<Interval> intervals_;          ///< by start
  std::vector<std::int64_t> latest_end_ns_;  ///< of an interval and all before it
};

/// A span that marks a step.
struct StepMark {
  std::int64_t process = 0, start_ns = 0, end_ns = 0;
  std::string_view name;
};

/// Gives a capture the steps that are marked. Each process marks its own; the marks of one name
/// that come equally often before in theirs are one step. Where a server marks its steps (see
/// serving_step_of), these alone count, and each lasts until the next: tokens are sampled behind
/// it.
/// @return what finds the step of a process at a time
[[nodiscard]] std::map<std::int64_t, StepFinder> add_steps(std::vector<StepMark> marks,
                                                           Capture& capture);

/// A span of the host that says which pass it is.
struct PassLabel {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  Pass pass = Pass::unknown;
};

/// A launch call: when, and whose it is.
struct LaunchCall {
  std::int64_t ts_ns = 0;
  std::size_t launch = 0;
};

/// The pass of the narrowest label around each call, by LaunchCall::launch.
/// @param launches  size of the answer
[[nodiscard]] std::vector<std::optional<Pass>> passes_by_label(std::vector<PassLabel> labels,
                                                               std::vector<LaunchCall> calls,
                                                               std::size_t launches);

/// The pass a label such as "## backward ##" or "Optimizer.step#AdamW.step" names.
[[nodiscard]] std::optional<Pass> pass_of_label(std::string_view label);

}  // namespace rubato
