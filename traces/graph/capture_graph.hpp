#pragma once
// Execution graphs of captured runs, of one process or of many ranks.

#include <span>
#include <string>
#include <vector>

#include "traces/graph/capture_draft.hpp"
#include "traces/graph/execution_graph.hpp"
#include "traces/graph/rank_join.hpp"

namespace rubato {

/// A captured run as a graph.
struct CaptureGraph {
  ExecutionGraph graph;
  /// Where a launch begins (launch or arrival), shape [captures][launches].
  std::vector<std::vector<ActivityId>> activity_of_launch;
  std::vector<std::uint32_t> rank_of_capture;  ///< as recorded, else the position
  JoinedRanks ranks;                           ///< one capture of one GPU: without collectives
  double overlap_s = 0.0;    ///< how long launches of one stream overlapped as captured, summed
  double ambiguous_s = 0.0;  ///< pauses of hosts that may be waits or work, see LostCalls
};

/// Waits and pauses shorter than this, summed, are not worth a word.
inline constexpr double least_wait_s = 1e-3;

/// Who came last to a collective and kept the others waiting: the rank. The GPUs of one capture
/// take part like ranks: there it is the GPU's position in the capture.
[[nodiscard]] std::uint32_t last_rank(const CaptureGraph& run, const JoinedCollective& collective);

/// One capture as a graph. Collectives between its GPUs are joined where they match.
/// @throws DataError if the capture has no launches, or none has a time
[[nodiscard]] CaptureGraph capture_graph(const Capture& capture,
                                         const CaptureGraphOptions& options = {});

/// The captures of one or several ranks as one run: their collectives joined, their clocks aligned.
/// Where clocks cannot be aligned for the whole run, they are in each step apart (step_clocks.hpp).
/// Collectives that are not joined stay launches, whose captured time includes what they waited.
/// @param captures  of one rank each; one is taken alone
/// @throws DataError as join_ranks, if a capture has no launches, none of them has a time, or two
///   captures are of one rank
[[nodiscard]] CaptureGraph capture_graph(std::span<const Capture> captures,
                                         const CaptureGraphOptions& options = {});

}  // namespace rubato
