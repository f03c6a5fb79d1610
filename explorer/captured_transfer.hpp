#pragma once
// A stored plan of a captured run, played on another capture as the Python package would play it.
// Does it keep its saving there?

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explorer/graph/exploration.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// A stored plan: what was asked, of which run, and from which clocks it was chosen.
struct StoredGraphPlan {
  std::int64_t plan_id = 0;
  std::string captures;  ///< files of its run, one a line
  std::string gpu;       ///< name of the spec
  std::string grid;      ///< the clocks it was chosen from, as make_clock_grid takes them
  GraphQuestion question;
  std::optional<double> comm_sms;  ///< of collectives beside compute; nothing: as captured
  double host_power_w = 0.0;       ///< of the rest of the node, for each GPU, in every total
};

/// @throws UsageError if there is no such plan, or it was not found, or its order of clocks is not
///         stored, or it is of least cost
[[nodiscard]] StoredGraphPlan load_graph_plan(const ResultStore& store, std::int64_t plan_id);

/// Totals of a whole capture, changes of clock counted where it is known what they take.
struct CapturedTotals {
  double time_s = 0.0;
  double energy_j = 0.0;  ///< of all GPUs
};

/// A plan on another capture.
struct CapturedTransfer {
  CapturedTotals baseline;  ///< default clocks
  CapturedTotals played;
  std::optional<CapturedTotals> own;  ///< the capture's own plan for the same question
  double deadline_s = 0.0;            ///< of the question, on this capture
  std::uint64_t clock_changes = 0;    ///< of the played plan, all GPUs
  double known_frac = 0.0;            ///< share of default time in passes the plan has
  std::vector<std::string> notes;     ///< what of the plan could not be kept here, a sentence each

  /// As Transfer::regret_frac; nothing where the capture has no own plan.
  [[nodiscard]] std::optional<double> regret_frac() const {
    if (!own) return std::nullopt;
    return (played.energy_j - own->energy_j) / baseline.energy_j;
  }
};

/// Plays a plan on another capture, see play(). Each pass of each step gets the clocks of the
/// plan's pass of that name and number, at the same shares of its time. Where a step has more such
/// passes than the plan, they get those of the plan's last one. A pass that the plan does not have
/// keeps the clock. A GPU that the plan does not have is set as the plan's first. Collectives
/// beside compute get the plan's SMs. If there are none, all stay as captured, and a note says so.
/// @param input  its questions, grid and host power are ignored: the plan's are taken
/// @throws what explore_captured throws
[[nodiscard]] CapturedTransfer transfer(const ResultStore& store, const StoredGraphPlan& plan,
                                        GraphExplorationInput input,
                                        const RunContext& context = {});

}  // namespace rubato
