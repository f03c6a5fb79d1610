#pragma once
// What a replay of an execution graph keeps of GPUs and transfers while it is under way.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "sim/graph/simulator.hpp"

namespace rubato {

/// What a GPU runs, oldest first.
struct Running {
  std::uint32_t activity = 0;
  std::uint32_t kernel = 0;
  bool holds = false;  ///< a collective between arrival and departure: others decide its end
};

/// One GPU while a graph is replayed. What has run is settled whenever the running set changes.
struct GpuState {
  std::vector<Running> running;
  std::vector<std::uint32_t> kernels;  ///< of `running`, sorted: the key of sharing
  const Sharing* sharing = nullptr;
  HeldClock held;
  std::optional<ClockId> timed_clock;  ///< asked for, where clocks go by time
  double stalled_until_s = -std::numeric_limits<double>::infinity();  ///< nothing runs before
  Sharing stall;                                                      ///< while it stalls
  double since_s = 0.0;
  std::uint32_t version = 0;  ///< of the running set; events of older ones are void
  // Where there are cells:
  bool runs = false;     ///< a launch, and no stall: at `point` until `end_s`
  OperatingPoint point;  ///< of all of the launch at the clock held
  double end_s = 0.0;
  std::size_t next = 0;                  ///< of the GPU's launches, the first that has not ended
  std::optional<std::uint32_t> waiting;  ///< a launch that is ready, for its clock

  [[nodiscard]] bool is_stalled(double at_s) const noexcept { return at_s < stalled_until_s; }
};

/// A transfer stands still while one of its GPUs stalls.
struct TransferState {
  double left_s = 0.0, since_s = 0.0;
  double all_s = 0.0;         ///< from begin to end at the clocks its GPUs have
  std::uint32_t stalls = 0;   ///< of its GPUs
  std::uint32_t version = 0;  ///< events of older ones are void
  bool begun = false;
};

/// Ends come before starts of the same moment, so that launches in a row do not overlap; clocks
/// change when all that begins at a moment has begun.
enum class EventKind : std::uint8_t {
  transfer_ends,
  launch_ends,
  begins,
  clock_asked,
  clock_changes
};

/// Of an activity (`what`: transfer, begin), or of a GPU (its next launch, its clock).
struct Event {
  double at_s;
  EventKind kind;
  std::uint32_t what;
  std::uint32_t version;  ///< clock_asked: position among the GPU's timed clocks
};

/// Events by time, then kind, what and version. A heap of its own: std::priority_queue writes an
/// event part by part and reads it back as a whole at once, which processors wait for.
class EventQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }

  void push(const Event& event) {
    const Slot slot{event.at_s, key_of(event)};
    std::size_t hole = heap_.size();
    heap_.emplace_back();
    for (; hole > 0 && before(slot, heap_[(hole - 1) / 2]); hole = (hole - 1) / 2)
      heap_[hole] = heap_[(hole - 1) / 2];
    heap_[hole] = slot;
  }

  /// The first event; there must be one.
  Event pop() {
    const Slot first = heap_.front(), last = heap_.back();
    heap_.pop_back();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap_.size(); child = 2 * hole + 1) {
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], last)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    if (!heap_.empty()) heap_[hole] = last;
    return {first.at_s, static_cast<EventKind>(first.key >> kind_shift),
            static_cast<std::uint32_t>(first.key >> what_shift) & most_activities,
            static_cast<std::uint32_t>(first.key)};
  }

 private:
  static constexpr unsigned what_shift = 32, kind_shift = 61;
  static constexpr std::uint32_t most_activities = (std::uint32_t{1} << 29U) - 1;

  struct Slot {
    double at_s = 0.0;
    std::uint64_t key = 0;
  };

  static std::uint64_t key_of(const Event& event) {
    assert(event.what <= most_activities);
    return static_cast<std::uint64_t>(event.kind) << kind_shift |
           std::uint64_t{event.what} << what_shift | event.version;
  }
  static bool before(const Slot& a, const Slot& b) {
    return a.at_s < b.at_s || (a.at_s == b.at_s && a.key < b.key);
  }

  std::vector<Slot> heap_;
};

enum class RunEnd { first, last };

/// What the first or the last launch of each GPU asks for, shape [gpus]. The last one is of the
/// main stream if that has any.
/// @param main  see main_streams
/// @param work  of each activity, see GraphModel::work; empty: all launches do some
[[nodiscard]] std::vector<HeldClock> asked_clocks(const ExecutionGraph& graph,
                                                  std::span<const std::uint32_t> main,
                                                  std::span<const double> work,
                                                  const GraphPlan& plan, RunEnd end);

}  // namespace rubato
