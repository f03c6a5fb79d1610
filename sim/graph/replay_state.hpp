#pragma once
// What a replay of an execution graph keeps of GPUs and transfers while it is under way.

#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/graph/simulator.hpp"

namespace rubato {

/// What a GPU runs, oldest first.
struct Running {
  std::uint32_t activity = 0;
  std::uint32_t kernel = 0;
  bool holds = false;  ///< a collective between arrival and departure: others decide its end
};

/// A clock in force, and from when on a request for another one may be issued.
struct HeldClock {
  ClockId clock;
  double free_s = -std::numeric_limits<double>::infinity();
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
};

/// A transfer stands still while one of its GPUs stalls.
struct TransferState {
  double left_s = 0.0, since_s = 0.0;
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

  friend bool operator>(const Event& a, const Event& b) {
    return std::tuple(a.at_s, a.kind, a.what, a.version) >
           std::tuple(b.at_s, b.kind, b.what, b.version);
  }
};

enum class RunEnd { first, last };

/// What the first or the last launch of each GPU asks for, shape [gpus]. The last one is of the
/// main stream if that has any.
[[nodiscard]] std::vector<HeldClock> asked_clocks(const GraphModel& model, const GraphPlan& plan,
                                                  RunEnd end);

}  // namespace rubato
