#pragma once
// Chooses one clock per unit. Units are the rows of a ProfileTable whose costs
// already include launch counts.

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.hpp"
#include "common/run_context.hpp"
#include "explorer/goal.hpp"
#include "models/profile_table.hpp"

namespace rubato {

enum class SolveStatus { optimal, feasible, infeasible, time_limit };

/// Answer of a solver, with proof. `objective` and `lower_bound` are in the
/// unit of the goal (J, s, J s, J s^2); gap = (objective - bound) / objective.
struct Solution {
  SolveStatus status = SolveStatus::infeasible;
  std::vector<ClockId> clock_of_unit;  ///< shape [units]; empty if infeasible
  Cost total;                          ///< sum over units
  double objective = 0.0;
  double lower_bound = 0.0;
  std::uint64_t nodes = 0;  ///< work done: search nodes or states

  /// Relative gap, exactly 0 when the status is optimal.
  [[nodiscard]] double gap_frac() const noexcept;
};

/// Global optimum: one budget over all units (multiple-choice knapsack).
/// @param table          [units x clocks], counts included
/// @param default_clock  reference of LeastWaste
[[nodiscard]] Solution solve_global(const ProfileTable& table, const Goal& goal,
                                    ClockId default_clock, const RunContext& context = {});

/// Every unit on its own.
[[nodiscard]] Solution solve_local(const ProfileTable& table, const Goal& goal,
                                   ClockId default_clock);

}  // namespace rubato
