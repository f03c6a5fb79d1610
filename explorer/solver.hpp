#pragma once
// Chooses one clock per unit. Units are the rows of a ProfileTable, whose costs are sums over all
// launches of a unit.

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

/// Answer of a solver, with a bound that proves how good it is. `objective` and `lower_bound` are
/// in the unit of the goal (J, s, J s, J s^2, money); gap = (objective - bound) / objective.
struct Solution {
  SolveStatus status = SolveStatus::infeasible;
  std::vector<ClockId> clock_of_unit;  ///< shape [units]; empty if infeasible
  Cost total;                          ///< sum over units
  double objective = 0.0;
  double lower_bound = 0.0;
  std::uint64_t nodes = 0;  ///< work done: states of the search

  /// Relative gap, exactly 0 when the status is optimal.
  [[nodiscard]] double gap_frac() const noexcept;
};

/// Costs of a choice, summed over units. @param clock_of_unit  shape [units]
[[nodiscard]] Cost total_of(const ProfileTable& table, std::span<const ClockId> clock_of_unit);

/// Global optimum: one budget over all units. Under a budget this is the multiple-choice knapsack
/// problem, solved exactly; stopped by `context`, it is the best choice so far and a bound.
/// @param table          [units x clocks], launch counts included
/// @param default_clock  reference of LeastWaste
/// @throws UsageError if LeastTime does not have exactly one budget
[[nodiscard]] Solution solve_global(const ProfileTable& table, const Goal& goal,
                                    ClockId default_clock, const RunContext& context = {});

/// Every unit by itself; `objective` is the sum over units. For LeastTime each unit gets a share of
/// the energy budget: that which it has of the energy at the default clock.
[[nodiscard]] Solution solve_local(const ProfileTable& table, const Goal& goal,
                                   ClockId default_clock);

/// Supported points of the global Pareto front, fastest first: the vertices of its lower convex
/// hull. Each is a choice that minimises energy + price x time for some price.
[[nodiscard]] std::vector<Cost> supported_front(const ProfileTable& table);

/// The global Pareto front: every Pareto-optimal sum over units, fastest first. The number of
/// points may grow with the product of the fronts of all units: for a few units only.
[[nodiscard]] std::vector<Cost> exact_front(const ProfileTable& table);

}  // namespace rubato
