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

/// One activity that a GPU runs.
struct Running {
  std::uint32_t activity = 0;
  std::uint32_t kernel = 0;
  bool holds = false;  ///< a collective between arrival and departure: others decide its end
};

/// One GPU while a graph is replayed. Its progress is booked (settled) whenever the set of what
/// runs changes.
struct GpuState {
  std::vector<Running> running;        ///< oldest first
  std::vector<std::uint32_t> kernels;  ///< of `running`, sorted: the key of sharing
  const Sharing* sharing = nullptr;
  HeldClock held;
  std::optional<ClockId> timed_clock;  ///< asked for, where clocks go by time
  double stalled_until_s = -std::numeric_limits<double>::infinity();  ///< nothing runs before
  Sharing stall;                                                      ///< while it stalls
  double since_s = 0.0;                                               ///< settled up to here
  std::uint32_t version = 0;  ///< of the running set; events of older versions are void
  // Where there are cells:
  bool runs = false;     ///< a launch runs and no stall holds it: at `point` until `end_s`
  OperatingPoint point;  ///< of the whole launch at the clock held
  double end_s = 0.0;
  std::size_t next = 0;                  ///< of the GPU's launches, the first that has not ended
  std::optional<std::uint32_t> waiting;  ///< a launch that is ready but waits for its clock

  [[nodiscard]] bool is_stalled(double at_s) const noexcept { return at_s < stalled_until_s; }
};

/// Books a stall; of a negative time it is taken back.
void book_stall(GpuTotals& totals, const GpuState& gpu, double stall_s);

/// Books what launches that share a GPU did.
/// @param left, energy_j  of each activity
void book_shared(const GpuState& gpu, double passed_s, std::vector<double>& left,
                 std::vector<double>& energy_j, GpuTotals& totals);

/// What a GPU does from now on; where there are cells, without power and clock in effect.
[[nodiscard]] GpuPhase phase_of(const GpuState& gpu, GpuId id, double at_s);

/// Launches of each GPU, in order.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> launches_of_gpus(const ExecutionGraph& graph);

/// One transfer while a graph is replayed. It stands still while one of its GPUs stalls.
struct TransferState {
  double left_s = 0.0, since_s = 0.0;  ///< what was left of it at `since_s`
  double all_s = 0.0;                  ///< from begin to end at the clocks its GPUs have
  std::uint32_t stalls = 0;            ///< how many of its GPUs stall
  std::uint32_t version = 0;           ///< events of older versions are void
  bool begun = false;
};

/// Kinds of events, in their order at one moment. Ends come before starts, so that launches in a
/// row do not overlap. Clocks change when all that begins at the moment has begun.
enum class EventKind : std::uint8_t {
  transfer_ends,
  launch_ends,
  begins,
  clock_asked,
  clock_changes
};

/// An event of a discrete-event simulation.
struct Event {
  double at_s;
  EventKind kind;
  std::uint32_t what;     ///< transfer_ends, begins: the activity; all others: the GPU
  std::uint32_t version;  ///< clock_asked: position among the GPU's timed clocks
};

/// Priority queue of events by time, then kind, `what` and version. A binary heap of its own:
/// std::priority_queue writes an event part by part and at once reads it back as a whole, which
/// stalls processors (failed store forwarding).
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

/// The clock that the first or the last launch of each GPU asks for, shape [gpus]; of a plan with
/// clocks by time, the first or the last of these. The last launch of the main stream goes before
/// later ones of other streams. The first does too where only main streams ask.
/// @param main  main stream of each GPU, see main_streams
/// @param work  of each activity, see GraphModel::work; those with 0 count for nothing. Empty: all
///              launches count
[[nodiscard]] std::vector<HeldClock> asked_clocks(const ExecutionGraph& graph,
                                                  std::span<const std::uint32_t> main,
                                                  std::span<const double> work,
                                                  const GraphPlan& plan, RunEnd end);

}  // namespace rubato
