#include "traces/graph/execution_graph.hpp"

#include <algorithm>

namespace rubato {

std::string_view name_of(ArcKind value) noexcept {
  switch (value) {
    case ArcKind::release: return "release";
    case ArcKind::stream_order: return "stream order";
    case ArcKind::launch_call: return "launch call";
    case ArcKind::host_order: return "host order";
    case ArcKind::event: return "event";
    case ArcKind::sync: return "sync";
    case ArcKind::collective: return "collective";
  }
  return "";
}

ArcCounts ExecutionGraph::count_arcs() const {
  ArcCounts counts;
  for (const GraphArc& arc : arcs_)
    ++(arc.inferred ? counts.inferred : counts.read)[static_cast<std::size_t>(arc.kind)];
  return counts;
}

std::vector<std::uint32_t> main_streams(const ExecutionGraph& graph) {
  std::vector<double> busy_s(graph.streams().size(), 0.0);
  for (const Activity& activity : graph.activities()) {
    if (activity.kind != ActivityKind::launch) continue;
    const KernelClass kind = graph.kernels()[index(activity.kernel)].kind;
    if (kind != KernelClass::communication) busy_s[*activity.stream] += activity.duration_s;
  }
  std::vector<std::uint32_t> main(graph.gpus().size(), 0);
  std::vector<double> longest_s(graph.gpus().size(), -1.0);
  for (std::uint32_t s = 0; s < busy_s.size(); ++s) {
    const std::size_t gpu = index(graph.streams()[s].gpu);
    if (busy_s[s] <= longest_s[gpu]) continue;
    longest_s[gpu] = busy_s[s];
    main[gpu] = s;
  }
  return main;
}

double earliest_starts(const ExecutionGraph& graph, std::span<const double> duration_s,
                       std::span<double> start_s) {
  double last_end_s = 0.0;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    double start = 0.0;
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      const std::size_t from = index(arc.from);
      start = std::max(start, start_s[from] + duration_s[from] + arc.lag_s);
    }
    start_s[i] = start;
    last_end_s = std::max(last_end_s, start + duration_s[i]);
  }
  return last_end_s;
}

ExecutionGraph ExecutionGraph::with_host_time(double factor) const {
  ExecutionGraph graph = *this;
  for (GraphArc& arc : graph.arcs_) {
    if (arc.kind == ArcKind::host_order) arc.lag_s *= factor;
  }
  return graph;
}

std::optional<double> host_time_factor(const ExecutionGraph& graph, double span_s) {
  constexpr int halvings = 30;
  std::vector<double> duration_s, start_s(graph.size());
  for (const Activity& activity : graph.activities()) duration_s.push_back(activity.duration_s);
  const auto ends_by = [&](double factor) {
    return earliest_starts(graph.with_host_time(factor), duration_s, start_s) <= span_s;
  };
  if (!ends_by(0.0)) return std::nullopt;
  if (ends_by(1.0)) return 1.0;
  double low = 0.0, high = 1.0;
  for (int i = 0; i < halvings; ++i) {
    const double middle = 0.5 * (low + high);
    (ends_by(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace rubato
