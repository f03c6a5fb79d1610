#include "explorer/graph/contention/arc_flow.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/numbers.hpp"

namespace rubato {

ArcFlow arc_flow(const ExecutionGraph& graph, std::vector<double> arc_w) {
  ArcFlow flow;
  flow.arc_w = std::move(arc_w);
  flow.node_w.assign(graph.size(), 0.0);
  std::vector<double> out_w(graph.size(), 0.0);
  CompensatedSum lag_cost_j, price_w;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    for (const GraphArc& arc : graph.arcs_into(ActivityId{i})) {
      const double w = flow.arc_w[arc_index(graph, arc)];
      flow.node_w[i] += w;
      out_w[index(arc.from)] += w;
      lag_cost_j.add(w * arc.lag_s);
    }
  }
  flow.node_w[0] = out_w[0];
  // What is left is rounding, or ends there.
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    flow.to_end_w.push_back(std::max(flow.node_w[i] - out_w[i], 0.0));
    price_w.add(flow.to_end_w.back());
  }
  flow.lag_cost_j = lag_cost_j.value();
  flow.price_w = price_w.value();
  return flow;
}

void scale(ArcFlow& flow, double factor) {
  for (std::vector<double>* part : {&flow.arc_w, &flow.node_w, &flow.to_end_w}) {
    for (double& w : *part) w *= factor;
  }
  flow.lag_cost_j *= factor;
  flow.price_w *= factor;
}

void raise_along(const ExecutionGraph& graph, const LatestPath& path, double raise_w,
                 ArcFlow& flow) {
  const auto raised = [&](double w) { return std::max(w + raise_w, 0.0); };  // but for rounding
  flow.price_w += raise_w;
  flow.to_end_w[path.last] = raised(flow.to_end_w[path.last]);
  flow.node_w[path.last] = raised(flow.node_w[path.last]);
  for (const GraphArc* arc : path.waits) {
    double& arc_w = flow.arc_w[arc_index(graph, *arc)];
    arc_w = raised(arc_w);
    flow.node_w[index(arc->from)] = raised(flow.node_w[index(arc->from)]);
    flow.lag_cost_j += raise_w * arc->lag_s;
  }
}

double least_along(const ExecutionGraph& graph, const LatestPath& path, const ArcFlow& flow) {
  double least_w = flow.to_end_w[path.last];
  for (const GraphArc* arc : path.waits)
    least_w = std::min(least_w, flow.arc_w[arc_index(graph, *arc)]);
  return least_w;
}

void raise_latest_path(const ExecutionGraph& graph, std::span<const double> end_s, double raise_w,
                       ArcFlow& flow) {
  raise_along(graph, latest_path(graph, end_s), raise_w, flow);
}

}  // namespace rubato
