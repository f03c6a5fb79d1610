#pragma once
// Replays an execution graph at the clocks of a plan: every GPU has one clock at a time, launches
// that run together share it, its SMs, its DRAM bandwidth and its power limit. Every total that is
// reported of a graph comes from here. docs/graphs.md, section 4.

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "sim/graph/graph_model.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// A GPU asks for a clock from a moment on.
struct TimedClock {
  double from_s = 0.0;
  ClockId clock;
};

/// The clock every launch asks for, shape [activities]; those of other activities count for
/// nothing. A GPU has one clock: what the running launch of its main stream asks for, else the
/// oldest running launch. While it runs nothing, or only holds collectives of several ranks, it
/// keeps its clock.
struct GraphPlan {
  std::vector<ClockId> clock_of_activity;
  /// Launches on other streams than the main one ask for nothing: they run at the clock they find.
  bool only_main_streams_ask = false;
  /// Each GPU's clocks by time, whatever runs: launches ask for nothing then. In order, at least
  /// one for each GPU; the first also holds before its time. Empty: launches ask.
  std::vector<std::vector<TimedClock>> timed = {};
};

/// The same clock everywhere.
[[nodiscard]] GraphPlan uniform_plan(const ExecutionGraph& graph, ClockId clock);

/// What a GPU does from `start_s` on, until its next phase.
struct GpuPhase {
  double start_s = 0.0;
  GpuId gpu;
  std::uint32_t running = 0;  ///< launches
  double power_w = 0.0;
  double core_mhz = 0.0;  ///< in effect
  bool power_limited = false;
  ClockId clock;  ///< asked for
};

/// One GPU of a replay, from the origin to the last end of the graph.
struct GpuTotals {
  double energy_j = 0.0;  ///< idle power included, and the rest of the node
  double busy_s = 0.0;    ///< some launch ran
  double power_limited_s = 0.0;
  std::uint64_t clock_changes = 0;
  double stalled_s = 0.0;           ///< part of busy_s: waited for changes of clock
  double switch_energy_j = 0.0;     ///< part of energy_j: of changes, idle power of stalls included
  std::uint64_t late_launches = 0;  ///< led, but waited for the clock they asked for
};

/// A clock in force, and from when on a request for another one may be issued.
struct HeldClock {
  ClockId clock;
  double free_s = -std::numeric_limits<double>::infinity();
};

/// Times are seconds since the origin.
struct GraphRun {
  std::vector<double> start_s, end_s;  ///< shape [activities]
  std::vector<double> energy_j;        ///< shape [activities]: own, and a share of idle power
  std::vector<GpuTotals> gpus;         ///< shape [gpus]
  std::vector<GpuPhase> phases;        ///< by time; empty unless asked for
  std::vector<HeldClock> left_behind;  ///< shape [gpus]: what the next run meets, at its time 0
  double span_s = 0.0;                 ///< last end
  double total_energy_j = 0.0;         ///< all GPUs
};

/// How to replay.
struct GraphRunOptions {
  bool phases = false;         ///< keep what each GPU did
  SwitchModel switching = {};  ///< the default: changes of clock take nothing
  /// What the run follows, where changes of clock take something. Nothing: a run like it, so that
  /// it is in steady state, which may take a second replay. Of as many GPUs.
  const GraphRun* after = nullptr;
};

/// Replays on one thread; keeps what it learned of kernels that run together, so one object should
/// serve many plans.
class GraphSimulator {
 public:
  /// @param model  must outlive the simulator
  /// @param grid   of the clocks in plans
  GraphSimulator(const GraphModel& model, const ClockGrid& grid);

  /// Changes of clock that take something are replayed in steady state, as by sim/simulator: runs
  /// like this one came before. Requests go out so early that a change takes effect when the launch
  /// that leads asks for it; if the change before it is still under way or the dwell is not over,
  /// launches run on at the old clock until then. While a GPU stalls, all it runs stands still, a
  /// transfer it takes part in too.
  /// @throws DataError if the plan does not fit the graph, UsageError as validate(SwitchModel)
  [[nodiscard]] GraphRun run(const GraphPlan& plan, const GraphRunOptions& options = {});

 private:
  [[nodiscard]] SharedGpu& gpu_at(ClockId clock, ThrottleId throttle);
  void check_timed(const GraphPlan& plan) const;
  friend class GraphReplay;

  const GraphModel* model_;
  ClockGrid grid_;
  std::vector<std::unique_ptr<SharedGpu>> gpu_of_clock_;  // shape [throttles x clocks]
  std::vector<std::uint32_t> first_out_, out_;            // followers of each activity
  std::vector<double> out_lag_s_;
  std::vector<std::uint32_t> waits_;        // arcs into each activity
  std::vector<std::uint32_t> main_stream_;  // of each GPU
  std::vector<std::uint32_t> transfer_of_;  // of each arrival
};

}  // namespace rubato
