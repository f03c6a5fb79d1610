#pragma once
// Least energy within a time budget when each change of clock costs time and
// energy: finds by itself which launches share a clock.

#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/solver.hpp"
#include "models/profile_table.hpp"
#include "sim/plan.hpp"
#include "sim/simulator.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// What a search needs to know of one iteration. The device stalls at each change
/// of clock and draws the idle power of the new clock meanwhile.
struct SwitchingProblem {
  const Trace& trace;
  const ProfileTable& per_launch;        ///< [kernels x clocks]
  std::span<const double> idle_power_w;  ///< shape [clocks]
  SwitchCost cost;
  double budget_s = 0.0;
};

/// `objective` is energy, J; `lower_bound` is the best Lagrangian bound.
struct SwitchingSolution {
  SolveStatus status = SolveStatus::infeasible;
  Plan plan;  ///< empty if infeasible
  Cost total;
  double lower_bound = 0.0;
  std::uint64_t evaluations = 0;  ///< dynamic programs run

  [[nodiscard]] double gap_frac() const noexcept;
};

/// Time and energy of one iteration of a plan, switches included.
[[nodiscard]] Cost iteration_cost(const SwitchingProblem& problem,
                                  const std::vector<ClockId>& clock_of_site);

/// The plan with the least energy + price x time, exactly: a dynamic program over launches with
/// clocks as states. A repeated segment is solved once, for every clock it may begin with.
/// O(sites x clocks^2 + segments x clocks^3).
[[nodiscard]] std::vector<ClockId> least_priced_plan(const SwitchingProblem& problem,
                                                     double price_w);

/// Bisects the price of time until the budget holds, then moves runs of launches to other
/// clocks while that saves energy within the budget. `starts` are further plans to improve.
/// Status optimal only if the bound is met; otherwise feasible with a gap.
[[nodiscard]] SwitchingSolution solve_switching(const SwitchingProblem& problem,
                                                const std::vector<Plan>& starts = {},
                                                const RunContext& context = {});

}  // namespace rubato
