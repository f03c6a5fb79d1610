#pragma once
// Captures of runs that never were: a host program, written call by call, on streams that do what
// CUDA's do. What waited for what is known, so that readings of the capture can be checked.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "traces/capture.hpp"

namespace rubato {

/// Distances of a made run, ns.
struct MadeTimes {
  std::int64_t call_ns = 4'000;    ///< of the host in a call, its own work before the next included
  std::int64_t launch_ns = 6'000;  ///< from a call to the earliest start of its launch
  std::int64_t stream_ns = 1'000;  ///< from the end of a launch to the next of its stream
  std::int64_t event_ns = 2'000;   ///< from the end of a launch to one that waits for its event
  std::int64_t sync_ns = 5'000;    ///< from the end of a launch to the return of who waited for it
};

/// One process and one device. Indices of calls are valid until finish().
class MadeRun {
 public:
  using Call = std::uint32_t;

  explicit MadeRun(std::uint32_t streams, std::uint32_t threads = 1, const MadeTimes& times = {})
      : times_(times), streams_(streams), now_ns_(threads, 0) {
    capture_.name = "made";
    capture_.devices = {{0, "A100"}};
    for (std::uint32_t s = 0; s < streams; ++s) capture_.streams.push_back({0, 7 + s});
    for (std::uint32_t t = 0; t < threads; ++t) capture_.threads.push_back({1, t + 1});
  }

  /// The thread whose calls follow. It goes on no earlier than the one before it, as a thread that
  /// another one woke.
  void woken(std::uint32_t thread) {
    now_ns_[thread] = std::max(now_ns_[thread], now_ns_[thread_] + times_.call_ns);
    thread_ = thread;
  }

  [[nodiscard]] KernelId kernel(const std::string& name, KernelClass kind = KernelClass::gemm) {
    for (std::size_t k = 0; k < capture_.kernels.size(); ++k) {
      if (capture_.kernels[k].name == name) return id_at<KernelId>(k);
    }
    Kernel made;
    made.name = made.label = name;
    made.kind = kind;
    capture_.kernels.push_back(std::move(made));
    return id_at<KernelId>(capture_.kernels.size() - 1);
  }

  void spend(std::int64_t host_ns) { now_ns_[thread_] += host_ns; }

  void launch(std::uint32_t stream, KernelId kernel, std::int64_t duration_ns) {
    enqueue(call(CallKind::launch, stream), kernel, duration_ns);
  }

  void blocking_copy(std::uint32_t stream, KernelId kernel, std::int64_t duration_ns) {
    const Call at = call(CallKind::blocking_copy, stream);
    enqueue(at, kernel, duration_ns);
    return_after(at, streams_[stream].end_ns);
  }

  Call record(std::uint32_t stream) {
    const Call at = call(CallKind::event_record, stream);
    recorded_ns_.emplace_back(at, streams_[stream].end_ns);
    return at;
  }

  /// Later launches of `stream` wait for what `record` stands behind.
  void wait(std::uint32_t stream, Call record) {
    const Call at = call(CallKind::stream_wait, stream);
    name_record(at, record);
    streams_[stream].event_ns = std::max(streams_[stream].event_ns, end_of_record(record));
  }

  void sync_event(Call record) {
    const Call at = call(CallKind::event_sync, {});
    name_record(at, record);
    return_after(at, end_of_record(record));
  }

  void sync_stream(std::uint32_t stream) {
    return_after(call(CallKind::stream_sync, stream), streams_[stream].end_ns);
  }

  void sync_device() {
    std::int64_t end_ns = 0;
    for (const Stream& stream : streams_) end_ns = std::max(end_ns, stream.end_ns);
    return_after(call(CallKind::device_sync, {}), end_ns);
  }

  /// Launches from now on belong to a step, until it ends.
  void begin_step() {
    step_ = static_cast<std::uint32_t>(capture_.steps.size());
    const std::int64_t now_ns = now_ns_[thread_];
    capture_.steps.push_back({"step " + std::to_string(*step_), now_ns, now_ns});
  }
  void end_step() {
    capture_.steps.back().end_ns = now_ns_[thread_];
    step_.reset();
  }

  /// As an importer gives it: launches and calls by start.
  [[nodiscard]] Capture finish() && {
    std::vector<Call> order(capture_.calls.size()), place(order.size());
    std::iota(order.begin(), order.end(), Call{0});
    std::ranges::stable_sort(order, {}, [&](Call c) { return capture_.calls[c].start_ns; });
    std::vector<CapturedCall> sorted;
    for (const Call c : order) {
      place[c] = static_cast<Call>(sorted.size());
      sorted.push_back(capture_.calls[c]);
    }
    for (CapturedCall& call : sorted) {
      if (call.record) call.record = place[*call.record];
    }
    capture_.calls = std::move(sorted);
    for (CapturedLaunch& launch : capture_.launches) launch.call = place[*launch.call];
    std::ranges::stable_sort(capture_.launches, {}, &CapturedLaunch::start_ns);
    return std::move(capture_);
  }

 private:
  struct Stream {
    std::int64_t end_ns = 0;           // of its last launch
    std::int64_t event_ns = -1 << 20;  // of what its next launch waits for
  };

  Call call(CallKind kind, std::optional<std::uint32_t> stream) {
    CapturedCall made;
    made.kind = kind;
    made.thread = thread_;
    made.start_ns = now_ns_[thread_];
    made.duration_ns = times_.call_ns / 2;
    made.stream = stream;
    capture_.calls.push_back(made);
    now_ns_[thread_] += times_.call_ns;
    return static_cast<Call>(capture_.calls.size() - 1);
  }

  void enqueue(Call at, KernelId kernel, std::int64_t duration_ns) {
    const CapturedCall& made = capture_.calls[at];
    Stream& stream = streams_[*made.stream];
    CapturedLaunch launch;
    launch.kernel = kernel;
    launch.stream = *made.stream;
    launch.start_ns = std::max({made.start_ns + times_.launch_ns, stream.end_ns + times_.stream_ns,
                                stream.event_ns + times_.event_ns});
    launch.duration_ns = duration_ns;
    launch.launch_ns = made.start_ns;
    launch.call = at;
    launch.step = step_;
    stream.end_ns = launch.end_ns();
    capture_.launches.push_back(launch);
  }

  void return_after(Call at, std::int64_t end_ns) {
    CapturedCall& made = capture_.calls[at];
    const std::int64_t return_ns = std::max(made.end_ns(), end_ns + times_.sync_ns);
    made.duration_ns = return_ns - made.start_ns;
    now_ns_[thread_] = std::max(now_ns_[thread_], return_ns + 1'000);
  }

  void name_record(Call at, Call record) {
    capture_.calls[at].record = record;
    capture_.calls[at].recorded_stream = capture_.calls[record].stream;
  }

  [[nodiscard]] std::int64_t end_of_record(Call record) const {
    return std::ranges::find(recorded_ns_, record, &std::pair<Call, std::int64_t>::first)->second;
  }

  MadeTimes times_;
  std::vector<Stream> streams_;
  std::vector<std::int64_t> now_ns_;  // of each thread
  std::uint32_t thread_ = 0;
  std::optional<std::uint32_t> step_;
  std::vector<std::pair<Call, std::int64_t>> recorded_ns_;  // what a record stands behind
  Capture capture_;
};

/// Training steps as data-parallel training gives them: layers forward, layers backward with one
/// collective each beside the compute, the optimizer behind the last one, and a wait of the host.
struct MadeStep {
  std::uint32_t steps = 1;  ///< marked as such if there are more
  std::uint32_t layers = 8;
  std::uint32_t launches_per_layer = 4;
  std::int64_t kernel_ns = 40'000;
  std::int64_t collective_ns = 90'000;
  MadeTimes times = {};
};

/// @param vary  called for every duration, returns it or another one
template <class Vary>
Capture made_step(const MadeStep& step, const Vary& vary) {
  MadeRun run(2, 1, step.times);
  const KernelId reduce = run.kernel("ncclAllReduce", KernelClass::communication);
  const auto compute = [&](const char* pass) {
    for (std::uint32_t k = 0; k < step.launches_per_layer; ++k)
      run.launch(0, run.kernel(pass + std::to_string(k)), vary(step.kernel_ns));
  };
  for (std::uint32_t number = 0; number < step.steps; ++number) {
    if (step.steps > 1) run.begin_step();
    for (std::uint32_t layer = 0; layer < step.layers; ++layer) compute("forward");
    for (std::uint32_t layer = 0; layer < step.layers; ++layer) {
      compute("backward");
      run.wait(1, run.record(0));
      run.launch(1, reduce, vary(step.collective_ns));
    }
    run.wait(0, run.record(1));
    compute("optimizer");
    run.sync_device();
    if (step.steps > 1) run.end_step();
  }
  compute("next");
  return std::move(run).finish();
}

}  // namespace rubato
