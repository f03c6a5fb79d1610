#pragma once
// How good any plan can be for a goal, where the least energy by each deadline is known.

#include <functional>

#include "explorer/plan/answer.hpp"

namespace rubato {

/// The least that a goal may come to under any plan, and when.
struct GoalBound {
  double least_frac = 0.0;  ///< over what the goal comes to at the default clocks; 0: not known
  double time_s = 0.0;      ///< of a plan that comes to this
};

/// Plans that take from one time to the next take no less than that time, and energy as of the
/// later one. So the bound is close for many times: 4,096 of them.
/// @param goal      any but LeastWaste
/// @param least_s   no plan is faster
/// @param slowest_s no plan needs more time; > least_s or equal
/// @param least_j   lower bound on the energy of plans that take from one time to another
/// @param defaults, gpus  as of contender()
[[nodiscard]] GoalBound goal_bound(const Goal& goal, double least_s, double slowest_s,
                                   const std::function<double(double from_s, double to_s)>& least_j,
                                   const Cost& defaults, double gpus);

}  // namespace rubato
