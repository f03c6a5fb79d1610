#pragma once
// What may run beside what on a GPU: the launches of its main stream in a row, and where beside
// that row activities of another stream can lie.

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// A launch on another stream, or a collective between arrival and departure. Positions are those
/// of main launches. It begins after launch first - 1 has ended, and ends before launch `last`
/// begins. So what runs beside it is among launches [first, last), and the gaps it may lie in are
/// those before launches first to last.
struct SideActivity {
  std::uint32_t activity = 0;   ///< launch, or arrival
  std::uint32_t departure = 0;  ///< of a collective, else the launch
  bool holds = false;           ///< a collective
  std::uint32_t first = 0, last = 0;
};

/// A pause of the side stream: between two of its activities, before the first, or behind the last.
struct SidePause {
  std::uint32_t first = 0, last = 0;  ///< main launches [first, last) may run in it
  std::vector<std::uint32_t> arcs;    ///< arcs (arc_index) that wait as long as the pause lasts
  bool waits_for_end = false;         ///< the last end waits too: the pause behind the last
  double lag_s = 0.0;                 ///< part of the pause in which nobody waits
};

/// One GPU.
struct GpuLanes {
  std::vector<std::uint32_t> main;  ///< launches of the main stream that take time, in order
  /// Arc (arc_index) to each main launch from the one before it, if there is one; shape [main].
  std::vector<std::optional<std::uint32_t>> arc_before;
  std::vector<double> lag_before_s;  ///< least time of the gap before each, shape [main + 1]
  std::vector<SideActivity> side;    ///< of one other stream, the side stream, in order
  std::vector<SidePause> pauses;     ///< of the side stream, by find_pauses() once narrow() is done
  /// What else may run beside a main launch and a side activity: of each of these sets of kernels
  /// (as LaunchCosts numbers them) one at a time.
  std::vector<std::set<std::uint32_t>> others;
  std::vector<std::uint32_t> other_launches;  ///< launches of others
  bool others_hold = false;                   ///< collectives of several ranks are among others
  /// Collectives of `side` draw less beside others, and others pay for that. Else collectives are
  /// taken to draw so little all the time.
  bool others_pay = false;
  bool shared = false;  ///< some stream beside the main one runs something
  /// The clock of a main launch is held through the gap behind it, if no launch of `side` may lie
  /// in that gap.
  bool gaps_hold = false;
};

/// One for each GPU. The side stream is, of several beside the main one, that whose collectives
/// hold most (SMs x seconds, as captured).
[[nodiscard]] std::vector<GpuLanes> gpu_lanes(const LaunchCosts& costs);

/// Finds the pauses of the side stream.
/// @param latest_s  latest start of each activity (everything at its slowest), s, shape
///                  [activities]; empty: not known
void find_pauses(const ExecutionGraph& graph, std::span<const double> latest_s, GpuLanes& lanes);

/// How long activities take at least and at most, and until when.
struct SideLimits {
  std::span<const double> least_s;  ///< of each activity in any replay, shape [activities]
  /// The most that launches beside the main stream take, whatever runs beside them, shape
  /// [activities]; ignored for other activities. Empty: not known.
  std::span<const double> most_s;
  /// While such a launch runs, main launches get on by at most so much of their time at the fastest
  /// clock, shape [activities]. Empty: not known.
  std::span<const double> passed_s;
  double deadline_s = 0.0;  ///< everything ends by then
};

/// Narrows the range [first, last) of each side activity by these times.
void narrow(const ExecutionGraph& graph, const SideLimits& limits, std::uint32_t gpu,
            GpuLanes& lanes);

}  // namespace rubato
