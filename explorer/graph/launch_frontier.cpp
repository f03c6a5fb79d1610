#include "explorer/graph/launch_frontier.hpp"

#include <utility>

namespace rubato {

Frontier LaunchFrontiers::sweep(const Contraction& launches, std::vector<double> times_s,
                                const RunContext& context) {
  constexpr std::size_t exact_curves_up_to = 50'000;  // vertices
  constexpr int coarse_bits = 20;
  FrontierOptions options;
  options.times_s = std::move(times_s);
  std::size_t vertices = 0;
  for (const CostCurve& curve : launches.problem().curves) vertices += curve.size();
  if (vertices > exact_curves_up_to) options.curve_error = 1e-4;
  if (exact_) {
    options.most_node_visits = most_exact_visits_;
    Frontier exact = sweep_contracted(launches, options, context);
    if (!exact.gave_up) return exact;
    exact_ = false;
    options.most_node_visits = FrontierOptions{}.most_node_visits;
  }
  options.slope_bits = coarse_bits;
  return sweep_contracted(launches, options, context);
}

}  // namespace rubato
