#pragma once
// Chooses one clock per unit. Units are the rows of a ProfileTable whose costs
// already include launch counts.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "common/run_context.hpp"
#include "explorer/goal.hpp"
#include "models/table/profile_table.hpp"

namespace rubato {

enum class SolveStatus { optimal, feasible, infeasible, time_limit };

[[nodiscard]] std::string_view name_of(SolveStatus value) noexcept;

/// Answer of a solver, with proof. `objective` and `lower_bound` are in the
/// unit of the goal (J, s, J s, J s^2, money); gap = (objective - bound) / objective.
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

/// Costs of a choice, summed over units. @param clock_of_unit  shape [units]
[[nodiscard]] Cost total_of(const ProfileTable& table, std::span<const ClockId> clock_of_unit);

/// Global optimum: one budget over all units (multiple-choice knapsack).
/// @param table          [units x clocks], counts included
/// @param default_clock  reference of LeastWaste
/// @throws UsageError if LeastTime does not have exactly one budget
[[nodiscard]] Solution solve_global(const ProfileTable& table, const Goal& goal,
                                    ClockId default_clock, const RunContext& context = {});

/// Every unit on its own; `objective` is the sum over units. For LeastTime a unit gets
/// the share of the energy budget that it takes of the default energy.
[[nodiscard]] Solution solve_local(const ProfileTable& table, const Goal& goal,
                                   ClockId default_clock);

/// Time-energy points of all choices that minimise energy + price x time for some
/// price, fastest first: the vertices of the global front's lower hull.
[[nodiscard]] std::vector<Cost> supported_front(const ProfileTable& table);

/// Every Pareto-optimal sum, fastest first. The number of points grows with the
/// product of the rows' fronts: for a few units only.
[[nodiscard]] std::vector<Cost> exact_front(const ProfileTable& table);

}  // namespace rubato
