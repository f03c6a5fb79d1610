#include "traces/graph/ordered_graph.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace rubato {

OrderedGraph::OrderedGraph(std::size_t activities, std::size_t arcs) {
  graph_.activities_.reserve(activities);
  graph_.first_in_.reserve(activities + 1);
  graph_.arcs_.reserve(arcs);
  (void)add({.kind = ActivityKind::origin});
}

GpuId OrderedGraph::add_gpu(GraphGpu gpu) {
  graph_.gpus_.push_back(std::move(gpu));
  return id_at<GpuId>(graph_.gpus_.size() - 1);
}

std::uint32_t OrderedGraph::add_stream(GraphStream stream) {
  graph_.streams_.push_back(std::move(stream));
  return static_cast<std::uint32_t>(graph_.streams_.size() - 1);
}

ActivityId OrderedGraph::add(const Activity& activity) {
  graph_.first_in_.push_back(static_cast<std::uint32_t>(graph_.arcs_.size()));
  graph_.activities_.push_back(activity);
  graph_.captured_span_s_ = std::max(graph_.captured_span_s_, activity.end_s());
  return id_at<ActivityId>(graph_.activities_.size() - 1);
}

void OrderedGraph::wait_for(ActivityId from, double lag_s, ArcKind kind) {
  assert(index(from) + 1 < graph_.activities_.size() && std::isfinite(lag_s) && lag_s >= 0.0);
  graph_.arcs_.push_back({from, lag_s, kind, false});
}

ExecutionGraph OrderedGraph::finish() && {
  graph_.first_in_.push_back(static_cast<std::uint32_t>(graph_.arcs_.size()));
  return std::move(graph_);
}

ExecutionGraph graph_of(const Trace& trace, const std::vector<double>& time_s) {
  const std::vector<KernelId> all = launches(trace.segments);
  OrderedGraph graph(all.size() + 1, all.size());
  const std::uint32_t stream = graph.add_stream({graph.add_gpu({}), 0, "kernels"});
  graph.set_kernels(trace.kernels);
  ActivityId last = OrderedGraph::origin;
  double end_s = 0.0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double duration_s = time_s.empty() ? 0.0 : time_s[index(all[i])];
    const ActivityId id = graph.add({.kind = ActivityKind::launch,
                                     .pass = trace.kernels[index(all[i])].pass,
                                     .stream = stream,
                                     .kernel = all[i],
                                     .launch = static_cast<std::uint32_t>(i),
                                     .start_s = end_s,
                                     .duration_s = duration_s});
    graph.wait_for(last, 0.0, i == 0 ? ArcKind::release : ArcKind::stream_order);
    last = id;
    end_s += duration_s;
  }
  return std::move(graph).finish();
}

ExecutionGraph graph_of(const PipelineSchedule& schedule, double input_delay_s) {
  const std::size_t passes = schedule.passes.size();
  std::vector<std::uint32_t> first(passes + 1, 0), into(schedule.dependencies.size());
  for (const Dependency& one : schedule.dependencies) ++first[index(one.to) + 1];
  for (std::size_t i = 0; i < passes; ++i) first[i + 1] += first[i];
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::size_t d = 0; d < into.size(); ++d)
    into[next[index(schedule.dependencies[d].to)]++] = static_cast<std::uint32_t>(d);

  OrderedGraph graph(passes + 1, into.size() + passes);
  for (std::uint32_t stage = 0; stage < schedule.shape.stages; ++stage)
    (void)graph.add_stream({graph.add_gpu({stage, 0, {}}), 0, fmt::format("stage {}", stage)});
  std::vector<Kernel> kernels;
  for (const std::string& name : pass_kind_names()) {
    kernels.emplace_back();
    kernels.back().name = kernels.back().label = name;
  }
  graph.set_kernels(std::move(kernels));
  std::vector<ActivityId> of_pass(passes);
  for (const PassId id : topological_order(schedule)) {
    const PipelinePass& pass = schedule.passes[index(id)];
    of_pass[index(id)] = graph.add({.kind = ActivityKind::launch,
                                    .stream = pass.stage,
                                    .kernel = id_at<KernelId>(static_cast<std::size_t>(pass.kind)),
                                    .rank = pass.stage,
                                    .launch = id.value});
    const bool takes_input = pass.stage == 0 && pass.chunk == 0 && pass.kind == PassKind::forward;
    const double later_s = takes_input ? input_delay_s : 0.0;
    for (std::uint32_t k = first[index(id)]; k < first[index(id) + 1]; ++k) {
      const Dependency& one = schedule.dependencies[into[k]];
      graph.wait_for(of_pass[index(one.from)], one.lag_s + later_s, ArcKind::event);
    }
    if (first[index(id)] == first[index(id) + 1])
      graph.wait_for(OrderedGraph::origin, later_s, ArcKind::release);
  }
  return std::move(graph).finish();
}

std::vector<bool> critical_activities(const ExecutionGraph& graph, std::span<const double> start_s,
                                      std::span<const double> end_s, double tolerance_s) {
  double last_s = 0.0;
  for (const double at_s : end_s) last_s = std::max(last_s, at_s);
  std::vector<bool> critical(graph.size(), false);
  for (std::size_t i = graph.size(); i-- > 0;) {
    critical[i] = critical[i] || end_s[i] >= last_s - tolerance_s;
    if (!critical[i]) continue;
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      const std::size_t from = index(arc.from);
      if (start_s[i] - end_s[from] - arc.lag_s <= tolerance_s) critical[from] = true;
    }
  }
  return critical;
}

}  // namespace rubato
