#pragma once
// Least energy within a time budget when each change of clock takes time: finds by itself which
// launches share a clock. docs/search.md, "Switching".

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/solver.hpp"
#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// How much a search may do.
struct SwitchingEffort {
  /// Partial plans, counted at each launch, of the exact end, and as many more as its sweeps take
  /// the time of; 0: no exact end, the gap stays as the bound leaves it.
  std::uint64_t labels = 1'000'000;
  /// (energy - bound) / energy at which the search ends, >= 0; 0: as near as sums of numbers go.
  double gap_frac = 0.0;
};

/// `total` and `lower_bound` (J) are of one iteration.
struct SwitchingSolution {
  /// Feasible: within gap_frac() of the optimum; time_limit: the same, and the search was stopped.
  SolveStatus status = SolveStatus::infeasible;
  std::vector<ClockRun> runs;  ///< empty if infeasible
  Cost total;
  double lower_bound = 0.0;
  std::uint64_t prices = 0;  ///< of time, each a dynamic program or a few
  std::uint64_t labels = 0;  ///< of the exact end

  [[nodiscard]] double gap_frac() const noexcept;
};

/// A price of time turns the budget into a part of the cost; for a price the cheapest plan is
/// exact (launch_dp.hpp), and its value less the price of the budget is a lower bound. The best
/// price is found by cutting planes. Of the plans on either side of the budget the better parts
/// are joined, their runs get new clocks (run_clocks.hpp), and the rest of the gap is searched
/// (label_search.hpp).
/// @param starts  further plans to begin with; those that break a rule are ignored
/// @throws DataError if idle powers or clocks do not have the table's width
[[nodiscard]] SwitchingSolution solve_switching(const SwitchingProblem& problem,
                                                std::span<const std::vector<ClockRun>> starts = {},
                                                const SwitchingEffort& effort = {},
                                                const RunContext& context = {});

}  // namespace rubato
