#pragma once
// Least energy within a time budget when each change of clock takes time or energy. The search
// finds by itself which launches share a clock. docs/search.md, "Switching".

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/solver.hpp"
#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// `total` and `lower_bound` (J) are of one iteration.
struct SwitchingSolution {
  /// feasible: within gap_frac() of the optimum. time_limit: the same, but the search was stopped;
  /// or no plan was found, although none is proven impossible.
  SolveStatus status = SolveStatus::infeasible;
  std::vector<ClockRun> runs;  ///< empty if there is no plan
  Cost total;
  double lower_bound = 0.0;
  std::uint64_t prices = 0;  ///< prices of time tried, each a few dynamic programs

  [[nodiscard]] double gap_frac() const noexcept;
};

/// Lagrangian relaxation: a price of time (the Lagrange multiplier) replaces the budget.
/// - At a price the cheapest plan is found by dynamic programs (launch_dp.hpp). Its value less
///   price x budget is a lower bound on the energy.
/// - The price of the highest bound is found by cutting planes.
/// - Plans on either side of the budget are cut and joined (run_crossing.hpp).
/// @param starts    further plans to begin with; those that break a rule are ignored
/// @param gap_frac  (energy - bound) / energy at which the search ends, >= 0; 0: up to the rounding
///                  of sums
/// @throws DataError if idle powers or clocks do not have the table's width
[[nodiscard]] SwitchingSolution solve_switching(const SwitchingProblem& problem,
                                                std::span<const std::vector<ClockRun>> starts = {},
                                                double gap_frac = 0.0,
                                                const RunContext& context = {});

}  // namespace rubato
