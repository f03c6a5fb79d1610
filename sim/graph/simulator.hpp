#pragma once
// Replays an execution graph at the clocks of a plan: every GPU has one clock at a time, launches
// that run together share it, its SMs, its DRAM bandwidth and its power limit. Every total that is
// reported of a graph comes from here. docs/graphs.md, section 4.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/graph/graph_model.hpp"

namespace rubato {

/// The clock every launch asks for, shape [activities]; those of other activities count for
/// nothing. A GPU has one clock: what the running launch of its main stream asks for, else the
/// oldest running launch. While it runs nothing, or only holds collectives of several ranks, it
/// keeps its clock.
struct GraphPlan {
  std::vector<ClockId> clock_of_activity;
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
  double energy_j = 0.0;  ///< idle power included
  double busy_s = 0.0;    ///< some launch ran
  double power_limited_s = 0.0;
  std::uint64_t clock_changes = 0;
};

/// Times are seconds since the origin.
struct GraphRun {
  std::vector<double> start_s, end_s;  ///< shape [activities]
  std::vector<double> energy_j;        ///< shape [activities]: own, and a share of idle power
  std::vector<GpuTotals> gpus;         ///< shape [gpus]
  std::vector<GpuPhase> phases;        ///< by time; empty unless asked for
  double span_s = 0.0;                 ///< last end
  double total_energy_j = 0.0;         ///< all GPUs
};

/// How to replay.
struct GraphRunOptions {
  bool phases = false;  ///< keep what each GPU did
};

/// Replays on one thread; keeps what it learned of kernels that run together, so one object should
/// serve many plans.
class GraphSimulator {
 public:
  /// @param model  must outlive the simulator
  /// @param grid   of the clocks in plans
  GraphSimulator(const GraphModel& model, const ClockGrid& grid);

  /// @throws DataError if the plan does not fit the graph
  [[nodiscard]] GraphRun run(const GraphPlan& plan, const GraphRunOptions& options = {});

 private:
  [[nodiscard]] SharedGpu& gpu_at(ClockId clock);
  friend class GraphReplay;

  const GraphModel* model_;
  ClockGrid grid_;
  std::vector<std::unique_ptr<SharedGpu>> gpu_of_clock_;
  std::vector<std::uint32_t> first_out_, out_;  // followers of each activity
  std::vector<double> out_lag_s_;
  std::vector<std::uint32_t> waits_;        // arcs into each activity
  std::vector<std::uint32_t> main_stream_;  // of each GPU
};

}  // namespace rubato
