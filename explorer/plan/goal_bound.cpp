#include "explorer/plan/goal_bound.hpp"

#include <cmath>
#include <limits>

namespace rubato {

GoalBound goal_bound(const Goal& goal, double least_s, double slowest_s,
                     const std::function<double(double from_s, double to_s)>& least_j,
                     const Cost& defaults, double gpus) {
  constexpr int steps = 4096;
  constexpr double for_ever = 1e6;
  const double step_s = (slowest_s - least_s) / steps;
  GoalBound bound{std::numeric_limits<double>::infinity(), 0.0};
  for (int i = 0; i <= steps; ++i) {
    const double from_s = least_s + i * step_s;
    const double to_s = i < steps ? from_s + step_s : for_ever * slowest_s;
    const double energy_j = least_j(from_s, to_s);
    if (!contender(goal, Cost{to_s, energy_j}, defaults, gpus).holds) continue;
    const Contender one = contender(goal, Cost{from_s, energy_j}, defaults, gpus);
    if (one.objective_frac < bound.least_frac) bound = {one.objective_frac, from_s};
  }
  return std::isfinite(bound.least_frac) ? bound : GoalBound{};
}

}  // namespace rubato
