#pragma once
// Replays an execution graph at the clocks of a plan, as a discrete-event simulation. Every GPU has
// one clock at a time; launches that run together share its SMs, its DRAM bandwidth and its power
// limit. Every total that is reported comes from here: captured runs, traces and pipelines are all
// graphs. docs/graphs.md, section 4.

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "sim/graph/cells.hpp"
#include "sim/graph/graph_model.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// A clock that a GPU asks for from a moment on.
struct TimedClock {
  double from_s = 0.0;
  ClockId clock;
};

/// Which clock every launch asks for. A GPU has one clock: the one that the running launch of its
/// main stream asks for, else the one of the oldest running launch. While it runs nothing, or only
/// holds collectives of several ranks, it keeps its clock.
struct GraphPlan {
  std::vector<ClockId> clock_of_activity;  ///< shape [activities]; only those of launches count
  /// Launches on other streams than the main one ask for nothing: they run at the clock they find.
  bool only_main_streams_ask = false;
  /// Each GPU's clocks by time, whatever runs; launches then ask for nothing. Shape [gpus], each in
  /// order of time with at least one clock; the first also holds before its time. Empty: launches
  /// ask.
  std::vector<std::vector<TimedClock>> timed = {};
  /// Each GPU knows which launch comes next. It asks for the clock of that launch when the launch
  /// before ends, whether the next is ready or not, and the next waits for its clock. Only for
  /// graphs with cells.
  bool asked_ahead = false;
};

/// The same clock everywhere.
[[nodiscard]] GraphPlan uniform_plan(const ExecutionGraph& graph, ClockId clock);

/// What a GPU does from `start_s` on, until its next phase.
struct GpuPhase {
  double start_s = 0.0;
  GpuId gpu;
  std::uint32_t running = 0;  ///< how many launches run, collectives included
  double power_w = 0.0;
  double core_mhz = 0.0;  ///< in effect
  bool power_limited = false;
  ClockId clock;  ///< setting in force; during a stall the one to come
};

/// One GPU of a replay, from the origin to the last end of the graph.
struct GpuTotals {
  double energy_j = 0.0;  ///< idle power and host power included
  double busy_s = 0.0;    ///< some launch was under way, running or stalled
  double power_limited_s = 0.0;
  std::uint64_t clock_changes = 0;
  double stalled_s = 0.0;           ///< in stalls of changes of clock, as far as the run goes
  double switch_energy_j = 0.0;     ///< part of energy_j: of changes, idle power of stalls included
  std::uint64_t late_launches = 0;  ///< led, but not at once at the clock they asked for
};

/// A clock in force, and from when on a request for another one may be issued.
struct HeldClock {
  ClockId clock;
  double free_s = -std::numeric_limits<double>::infinity();
  double stalled_until_s = -std::numeric_limits<double>::infinity();  ///< of the change to `clock`
};

/// How a launch ran that has cells.
struct LaunchRun {
  double begin_s = 0.0;  ///< when it first runs: a stall before that is over
  OperatingPoint point;  ///< of the whole launch without its stalls; core clock: that at its begin
  ClockId clock;         ///< in force when it begins
  bool late = false;     ///< the clock it asked for was not in force throughout
};

/// A change of clock. Its lead is from request_s to stall_from_s, its stall from there to effect_s.
struct ClockChange {
  GpuId gpu;
  double request_s = 0.0;  ///< negative: issued in the run before
  double stall_from_s = 0.0;
  double effect_s = 0.0;
  ClockId to;
  double energy_j = 0.0;  ///< idle power during the stall included
};

/// A replay. Times are seconds since the origin.
struct GraphRun {
  std::vector<double> start_s, end_s;  ///< shape [activities]
  std::vector<double> energy_j;        ///< shape [activities]: own, and a share of idle power
  std::vector<LaunchRun> launches;     ///< shape [activities]; empty unless there are cells
  std::vector<ClockChange> changes;    ///< by time; empty unless there are cells
  std::vector<GpuTotals> gpus;         ///< shape [gpus]
  std::vector<GpuPhase> phases;        ///< by time; empty unless asked for
  std::vector<HeldClock> left_behind;  ///< shape [gpus]: what the next run meets, at its time 0
  double span_s = 0.0;                 ///< makespan: last end
  double total_energy_j = 0.0;         ///< of all GPUs
};

/// How to replay.
struct GraphRunOptions {
  bool phases = false;         ///< fill GraphRun::phases
  SwitchModel switching = {};  ///< the default: changes of clock take nothing
  /// The run before, on as many GPUs: its left_behind is where this one begins, if changes of clock
  /// take something or there are cells. Null: a run like this one came before (steady state), which
  /// may take a second replay to find.
  const GraphRun* after = nullptr;
};

/// Replays on one thread. It keeps what it worked out for kernels that run together, so one object
/// should serve many plans.
class GraphSimulator {
 public:
  /// @param model  must outlive the simulator
  /// @param grid   of the clocks in plans
  GraphSimulator(const GraphModel& model, const ClockGrid& grid);

  /// @param graph, cells  must outlive the simulator; plans are of the cells' clocks
  GraphSimulator(const ExecutionGraph& graph, const LaunchCells& cells);

  /// Replays a plan. Changes of clock that take something are replayed in steady state: runs like
  /// this one came before. Requests go out so early that the lead is over when the launch that
  /// leads begins. If an earlier change is still under way by then, or its dwell is not over,
  /// launches run on at the old clock until the new one can come. While a GPU stalls, all it runs
  /// stands still, and so does a transfer it takes part in.
  /// @throws DataError if the plan does not fit the graph, UsageError as validate(SwitchModel)
  [[nodiscard]] GraphRun run(const GraphPlan& plan, const GraphRunOptions& options = {});

  /// Takes back a run that is not needed any more: the next one gets its memory.
  void take_back(GraphRun&& run) { spare_ = std::move(run); }

 private:
  explicit GraphSimulator(const ExecutionGraph& graph);
  [[nodiscard]] SharedGpu& gpu_at(ClockId clock, ThrottleId throttle);
  void check_timed(const GraphPlan& plan) const;
  [[nodiscard]] double idle_power_w(ClockId clock, GpuId gpu) const;
  [[nodiscard]] bool differ(ClockId a, ClockId b) const;
  [[nodiscard]] SwitchCost change(const SwitchModel& switching, ClockId from, ClockId to) const;
  friend class GraphReplay;
  friend class GraphTransfers;

  const ExecutionGraph* graph_;
  const GraphModel* model_ = nullptr;   // what launches take: this one, or
  const LaunchCells* cells_ = nullptr;  // this one
  std::vector<ClockPair> clocks_;       // empty where there are cells
  std::size_t clock_count_ = 0;
  std::vector<std::unique_ptr<SharedGpu>> gpu_of_clock_;  // shape [throttles x clocks]
  std::vector<std::uint32_t> first_out_, out_;            // successors of each activity, in rows
  std::vector<double> out_lag_s_;
  std::vector<std::uint32_t> waits_;        // arcs into each activity
  std::vector<std::uint32_t> main_stream_;  // of each GPU
  std::vector<std::uint32_t> transfer_of_;  // of each arrival
  // Memory that replays use one after the other: large graphs would else wait for it each time.
  struct Scratch {
    std::vector<double> left, ready_s;
    std::vector<std::uint32_t> waits;
    std::vector<std::vector<std::uint32_t>> order;  // launches of each GPU, where it is needed
  };
  Scratch scratch_;
  GraphRun spare_;
};

}  // namespace rubato
