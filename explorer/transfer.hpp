#pragma once
// A plan found on one run, applied to another: what is kept of the saving? A plan of a trace goes
// to traces, one of a captured run to captures.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "explorer/exploration.hpp"
#include "explorer/graph/exploration.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// A plan of a trace read back from a result database, with all that is needed to apply it.
struct StoredPlan {
  std::int64_t plan_id = 0;
  std::string trace;  ///< name of the trace it was found on
  Question question;  ///< as it was asked
  std::map<std::string, std::string>
      clock_of_kernel;  ///< Kernel::name -> label of the clock of most of its launches
  GpuSpec spec;         ///< as it was used
  std::string grid;
  double power_limit_w = 0.0;
  SwitchModel switching;
  double host_power_w = 0.0;  ///< of the rest of the node, for each GPU, in every total
};

/// @throws UsageError if there is no such plan, or it was infeasible, or it is of least cost
[[nodiscard]] StoredPlan load_plan(const ResultStore& store, std::int64_t plan_id);

/// A stored plan of a captured run: what was asked, of which run, and from which clocks it was
/// chosen.
struct StoredGraphPlan {
  std::int64_t plan_id = 0;
  std::string captures;  ///< files of its run, one a line
  std::string gpu;       ///< name of the spec
  std::string grid;      ///< the clocks it was chosen from, as make_clock_grid takes them
  Question question;
  std::optional<double> comm_sms;  ///< of collectives beside compute; nothing: as captured
  double host_power_w = 0.0;       ///< of the rest of the node, for each GPU, in every total
};

/// @throws UsageError if there is no such plan, or it was not found, or its order of clocks is not
///         stored, or it is of least cost
[[nodiscard]] StoredGraphPlan load_graph_plan(const ResultStore& store, std::int64_t plan_id);

/// A plan on another run: totals of one iteration of a trace, or of a whole capture (all GPUs,
/// changes of clock counted where it is known what they take).
struct Transfer {
  std::string run;                         ///< its name: of a trace its own
  Cost baseline;                           ///< default clocks
  Cost transferred;                        ///< the plan's clocks
  std::optional<Cost> own;                 ///< the run's own plan for the same question
  std::optional<Cost> own_in_time;         ///< of traces: least energy at that granularity in the
                                           ///< transferred plan's time
  std::optional<SavingInterval> interval;  ///< of traces: 90 %, from baseline to transferred
  double known_frac = 0.0;                 ///< share of default time in what the plan knows
  double limited_frac = 0.0;  ///< of traces: share of default time that the power limit slows down
  std::optional<double> deadline_s;     ///< of captures: of the question there
  std::uint64_t clock_changes = 0;      ///< of captures: of all GPUs
  std::vector<std::string> notes = {};  ///< what of the plan could not be kept, a sentence each

  /// Whether the plan keeps the deadline that there is.
  [[nodiscard]] bool in_time() const noexcept {
    return deadline_s && transferred.time_s <= *deadline_s;
  }

  /// Savings and changes of time against the baseline, %; nothing where there is no such plan.
  [[nodiscard]] double saving_pct() const noexcept;
  [[nodiscard]] double time_pct() const noexcept;
  [[nodiscard]] std::optional<double> own_saving_pct() const noexcept;
  [[nodiscard]] std::optional<double> own_time_pct() const noexcept;
  [[nodiscard]] std::optional<double> in_time_saving_pct() const noexcept;

  /// Energy that the run's own plan would save beyond the transferred one, points of the baseline;
  /// negative where the transferred plan takes more time than the question allows.
  [[nodiscard]] std::optional<double> regret_points() const noexcept;
  /// The same against the best plan that takes no more time than the transferred one. Not negative,
  /// with one exception: unknown kernels run at default clocks, and so the transferred plan may
  /// have more clocks than its granularity allows.
  [[nodiscard]] std::optional<double> equal_time_regret_points() const noexcept;
};

/// Plays a plan on another trace. Kernels are matched by name; those that the plan does not know
/// run at default clocks. The trace's own plan answers the stored question on the same GPU, grid
/// and power limit.
[[nodiscard]] Transfer transfer(const StoredPlan& plan, const Trace& trace,
                                const RunContext& context = {});

/// Plays a plan on another capture as the Python package would, see play(). Each pass of each step
/// gets the clocks of the plan's pass of that name and number, at the same shares of its time.
/// Where a step has more such passes than the plan, they get those of the plan's last one. A pass
/// that the plan does not have keeps the clock. A GPU that the plan does not have is set as the
/// plan's first. Collectives beside compute get the plan's SMs. If there are none, all stay as
/// captured, and a note says so.
/// @param input  its questions, grid and host power are ignored: the plan's are taken
/// @throws what explore_captured throws
[[nodiscard]] Transfer transfer(const ResultStore& store, const StoredGraphPlan& plan,
                                GraphExplorationInput input, const RunContext& context = {});

}  // namespace rubato
