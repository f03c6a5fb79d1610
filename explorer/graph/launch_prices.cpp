#include "explorer/graph/launch_prices.hpp"

#include <algorithm>

namespace rubato {

void scale(LaunchPrices& prices, double factor) {
  for (double& flow_w : prices.flow_w) flow_w *= factor;
  prices.lag_cost_j *= factor;
  prices.price_w *= factor;
}

void raise_latest_path(const ExecutionGraph& graph, std::span<const double> end_s, double raise_w,
                       LaunchPrices& prices) {
  prices.price_w += raise_w;
  auto at = static_cast<std::uint32_t>(std::ranges::max_element(end_s) - end_s.begin());
  while (true) {
    prices.flow_w[at] += raise_w;
    const auto arcs = graph.arcs_into(ActivityId{at});
    if (arcs.empty()) return;
    const auto ready_s = [&](const GraphArc& arc) { return end_s[index(arc.from)] + arc.lag_s; };
    const auto latest = std::ranges::max_element(arcs, {}, ready_s);
    prices.lag_cost_j += raise_w * latest->lag_s;
    at = latest->from.value;
  }
}

}  // namespace rubato
