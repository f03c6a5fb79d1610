#pragma once
// Traces and pipeline schedules as execution graphs. Their activities are added in topological
// order, so that graphs of millions of launches are made without sorting.

#include <optional>
#include <vector>

#include "traces/graph/execution_graph.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Makes an execution graph whose activities come in topological order: arcs point forward.
class OrderedGraph {
 public:
  static constexpr ActivityId origin{0};

  /// @param activities, arcs  room for so many, the origin's included
  OrderedGraph(std::size_t activities, std::size_t arcs);

  GpuId add_gpu(GraphGpu gpu);
  std::uint32_t add_stream(GraphStream stream);
  void set_kernels(std::vector<Kernel> kernels) { graph_.kernels_ = std::move(kernels); }
  ActivityId add(const Activity& activity);
  /// The activity that was added last starts no earlier than `lag_s` after the end of `from`. Each
  /// activity needs such an arc, if only from the origin.
  void wait_for(ActivityId from, double lag_s, ArcKind kind);
  [[nodiscard]] ExecutionGraph finish() &&;

 private:
  ExecutionGraph graph_;
};

/// The launches of a trace in a row on one stream of one GPU, repeats expanded. The k-th of them is
/// activity k + 1 and has `launch` k. Kernels are those of the trace.
/// @param time_s  of each kernel as captured, shape [kernels]; empty: nothing was captured, and
///                activities have neither starts nor durations
[[nodiscard]] ExecutionGraph graph_of(const Trace& trace, const std::vector<double>& time_s = {});

/// A GPU of one stream for each stage, and a launch for each pass, whose `launch` is the pass.
/// There is a kernel for each kind of pass. Nothing was captured: activities have neither starts
/// nor durations.
/// @param input_delay_s  of each forward pass of the first stage's first chunk: its input comes so
///                       much later than what else it waits for
[[nodiscard]] ExecutionGraph graph_of(const PipelineSchedule& schedule, double input_delay_s = 0.0);

/// Which activities lie on a critical path: to delay one of them delays the end of the run. It ends
/// last, or a critical one started as soon as it allowed. Shape [activities].
/// @param start_s, end_s  s, shape [activities]
/// @param tolerance_s     times closer than this are equal
[[nodiscard]] std::vector<bool> critical_activities(const ExecutionGraph& graph,
                                                    std::span<const double> start_s,
                                                    std::span<const double> end_s,
                                                    double tolerance_s);

}  // namespace rubato
