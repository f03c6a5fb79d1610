#pragma once
// Arcs of a graph as text, for tests: "from > to: kind", " (inferred)" where it was.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// Kernel name, or "host 12" for a host call 12 us after the origin.
inline std::string text_of(const ExecutionGraph& graph, ActivityId id) {
  const Activity& activity = graph[id];
  switch (activity.kind) {
    case ActivityKind::origin: return "origin";
    case ActivityKind::host: return fmt::format("host {:.0f}", activity.start_s * 1e6);
    case ActivityKind::arrival: return graph.kernels()[index(activity.kernel)].name + " arrives";
    case ActivityKind::departure: return graph.kernels()[index(activity.kernel)].name + " departs";
    default: return graph.kernels()[index(activity.kernel)].name;
  }
}

/// All arcs, sorted.
inline std::vector<std::string> arc_texts(const ExecutionGraph& graph) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i)))
      texts.push_back(fmt::format("{} > {}: {}{}", text_of(graph, arc.from),
                                  text_of(graph, id_at<ActivityId>(i)), name_of(arc.kind),
                                  arc.inferred ? " (inferred)" : ""));
  }
  std::ranges::sort(texts);
  return texts;
}

inline bool has_arc(const ExecutionGraph& graph, const std::string& text) {
  return std::ranges::count(arc_texts(graph), text) > 0;
}

/// Largest distance of a start at the captured durations from the captured start, s.
inline double replay_error_s(const ExecutionGraph& graph) {
  std::vector<double> duration_s, start_s(graph.size());
  for (const Activity& activity : graph.activities()) duration_s.push_back(activity.duration_s);
  earliest_starts(graph, duration_s, start_s);
  double error_s = 0.0;
  for (std::size_t i = 0; i < graph.size(); ++i)
    error_s = std::max(error_s, std::abs(start_s[i] - graph.activities()[i].start_s));
  return error_s;
}

/// Last end if launches took `factor` times as long as captured.
inline double scaled_span_s(const ExecutionGraph& graph, double factor) {
  std::vector<double> duration_s, start_s(graph.size());
  for (const Activity& activity : graph.activities())
    duration_s.push_back(factor * activity.duration_s);
  return earliest_starts(graph, duration_s, start_s);
}

}  // namespace rubato
