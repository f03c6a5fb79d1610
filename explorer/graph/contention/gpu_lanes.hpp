#pragma once
// What may run beside what: the launches of a GPU's main stream in a row, and where in it
// activities of another stream can lie.

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// A launch on another stream, or a collective between arrival and departure. It begins after the
/// main launch before `first`, and ends before `last` begins: what runs beside it is among
/// [first, last), and the gaps it may lie in are those before launches [first, last].
struct SideActivity {
  std::uint32_t activity = 0;   ///< launch, or arrival
  std::uint32_t departure = 0;  ///< of a collective, else the launch
  bool holds = false;           ///< a collective
  std::uint32_t first = 0, last = 0;
};

/// Between two side activities next to each other, before the first, or behind the last.
struct SidePause {
  std::uint32_t first = 0, last = 0;  ///< main launches [first, last) may run in it
  std::vector<std::uint32_t> arcs;    ///< positions of those that wait as long as it lasts
  bool waits_for_end = false;         ///< so does the last end
  double lag_s = 0.0;                 ///< of it nobody waits
};

/// One GPU.
struct GpuLanes {
  std::vector<std::uint32_t> main;  ///< launches that take time, in their order
  /// Of the arc to each main launch from the one before it, if there is one; shape [main].
  std::vector<std::optional<std::uint32_t>> arc_before;
  std::vector<double> lag_before_s;  ///< in the gap before each, at least; shape [main + 1]
  std::vector<SideActivity> side;    ///< of one stream, in its order
  std::vector<SidePause> pauses;     ///< of it, once `side` is as narrow as it gets
  /// What else may run beside a launch and a side activity: one of each of these at a time.
  std::vector<std::set<std::uint32_t>> others;  ///< kernels of LaunchCosts
  std::vector<std::uint32_t> other_launches;    ///< of those, but for collectives of several ranks
  bool others_hold = false;                     ///< there are such collectives among them
  /// The others pay for what collectives of `side` draw less beside them. Else those are taken to
  /// draw so little all the time.
  bool others_pay = false;
  bool shared = false;  ///< some streams beside the main one run something
  /// In gaps in which no launch of `side` may lie the clock of the main launch before is held.
  bool gaps_hold = false;
};

/// By GPU. Of several streams beside the main one, that whose collectives hold most.
[[nodiscard]] std::vector<GpuLanes> gpu_lanes(const LaunchCosts& costs);

/// Finds the pauses of the side stream.
/// @param latest_s  when what an activity waits for has ended at the latest, shape [activities];
///                  empty: not known
void find_pauses(const ExecutionGraph& graph, std::span<const double> latest_s, GpuLanes& lanes);

/// How long activities take at least and at most, and until when.
struct SideLimits {
  std::span<const double> least_s;  ///< each activity in any replay, shape [activities]
  /// Launches beside the main stream, whatever runs beside them, shape [activities]; empty: not
  /// known. Of others it counts for nothing.
  std::span<const double> most_s;
  /// How much of the least time of main launches passes while those beside them run, shape
  /// [activities]; empty: not known.
  std::span<const double> passed_s;
  double deadline_s = 0.0;  ///< everything ends by then
};

/// Draws side activities closer to what they can be beside of.
void narrow(const ExecutionGraph& graph, const SideLimits& limits, std::uint32_t gpu,
            GpuLanes& lanes);

}  // namespace rubato
