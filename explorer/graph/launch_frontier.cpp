#include "explorer/graph/launch_frontier.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

Frontier LaunchFrontiers::sweep(const Contraction& launches, std::vector<double> times_s,
                                double enough_w, const RunContext& context) {
  constexpr std::size_t exact_curves_up_to = 50'000;  // vertices
  constexpr int coarse_bits = 20;
  FrontierOptions options;
  options.times_s = std::move(times_s);
  options.only_times = true;
  options.enough_w = enough_w;
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

const FrontierPlan* ShorterPlans::at(std::size_t deadline, std::size_t share,
                                     const RunContext& context) {
  // One or two hundredths of a percent are swept in passing.
  constexpr std::size_t made_first = 4;
  if (share >= shares_made_) {
    shares_made_ = share < made_first ? std::min(made_first, shorter_.size()) : shorter_.size();
    std::vector<double> times_s;
    for (const double deadline_s : deadlines_s_) {
      for (const double shorter : shorter_.first(shares_made_))
        times_s.push_back(deadline_s * (1.0 - shorter));
    }
    plans_ = sweeps_.sweep(launches_, std::move(times_s), 0.0, context).plans;
  }
  const FrontierPlan& plan = plans_[deadline * shares_made_ + share];
  return plan.duration_s.empty() ? nullptr : &plan;
}

}  // namespace rubato
