#pragma once
// Least energy of a graph within a time when launches share clocks in units, such as a pass or a
// kernel. Prices of time per launch choose a clock per unit. Where that ends late, units on the
// critical path are sped up. docs/graphs.md, section 5.

#include <cstdint>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/launch_prices.hpp"
#include "explorer/graph/launch_units.hpp"

namespace rubato {

/// The time that clocks of units are wanted for.
struct UnitDeadline {
  double time_s = 0.0;        ///< > 0
  double least_time_s = 0.0;  ///< of the fastest clocks
};

/// Clocks of units. Times and energies are those of LaunchCosts: each launch alone, or slowed down
/// by a factor of its own. Energies include the least idle power of all GPUs over the span.
struct UnitPlan {
  std::vector<ClockId> clock_of_unit;  ///< empty: no plan ends in time
  double span_s = 0.0;
  double energy_j = 0.0;
};

/// A heuristic: the clocks that prices choose, sped up until they are in time, then improved one
/// unit at a time.
/// @param prices  of each launch, e.g. of a FrontierPlan at the time asked for
[[nodiscard]] UnitPlan search_units(const LaunchCosts& costs, const LaunchUnits& units,
                                    LaunchPrices prices, const UnitDeadline& deadline,
                                    const RunContext& context = {});

/// Lower bound on the energy of all clocks of these units that end in time, J: the Lagrangian dual,
/// raised by subgradient steps. Stopped before the first: minus infinity.
/// @param prices  to start from
[[nodiscard]] double unit_bound_j(const LaunchCosts& costs, const LaunchUnits& units,
                                  LaunchPrices prices, const UnitDeadline& deadline,
                                  const RunContext& context = {});

}  // namespace rubato
