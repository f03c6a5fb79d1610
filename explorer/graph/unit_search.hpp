#pragma once
// Least energy of a graph within a time when launches share clocks in units: a pass, a kernel.
// Prices of time per launch choose a clock per unit; where that ends late, units on the late path
// are sped up. docs/graphs.md, section 5.

#include <cstdint>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/launch_prices.hpp"
#include "explorer/graph/launch_units.hpp"

namespace rubato {

/// What units are searched for.
struct UnitDeadline {
  double time_s = 0.0;        ///< > 0
  double least_time_s = 0.0;  ///< no clocks are faster
};

/// Clocks of units, chosen on costs of launches alone. Energies are costs (see LaunchCosts) and the
/// least idle power of all GPUs over the span.
struct UnitPlan {
  std::vector<ClockId> clock_of_unit;  ///< empty: no plan ends in time
  double span_s = 0.0;
  double energy_j = 0.0;
};

/// @param prices  a start, e.g. of a FrontierPlan at the time asked for
[[nodiscard]] UnitPlan search_units(const LaunchCosts& costs, const LaunchUnits& units,
                                    LaunchPrices prices, const UnitDeadline& deadline,
                                    const RunContext& context = {});

/// No clocks of these units take less energy within the time.
[[nodiscard]] double unit_bound_j(const LaunchCosts& costs, const LaunchUnits& units,
                                  LaunchPrices prices, const UnitDeadline& deadline,
                                  const RunContext& context = {});

}  // namespace rubato
