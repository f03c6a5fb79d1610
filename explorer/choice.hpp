#pragma once
// From kernels to choice units: what gets one clock.

#include <map>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "explorer/goal.hpp"
#include "models/table/profile_table.hpp"
#include "sim/plan.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Units of one granularity and the launches they cover.
struct ChoiceUnits {
  std::vector<std::string> names;      ///< shape [units]
  std::vector<UnitId> unit_of_kernel;  ///< shape [kernels]
};

/// iteration: one unit. pass: "forward" (embedding, forward, loss), "backward" (backward,
/// embedding backward) and "optimizer", as far as the trace has them; the two of the
/// paper. kernel and automatic: one unit per kernel.
[[nodiscard]] ChoiceUnits choice_units(const Trace& trace, Granularity granularity);

/// What solvers minimise: energies with the rest of the node, which draws so many watts, >= 0.
[[nodiscard]] ProfileTable with_host_power(const ProfileTable& table, double host_power_w);

/// Sums a per-launch table [kernels x clocks] over the launches of each unit:
/// [units x clocks].
[[nodiscard]] ProfileTable unit_table(const ProfileTable& per_launch, const Trace& trace,
                                      const ChoiceUnits& units);

/// Units of a trace and their tables, each made when it is first asked for; for one thread.
/// What it is made from must outlive it.
class UnitTables {
 public:
  UnitTables(const ProfileTable& per_launch, const Trace& trace)
      : per_launch_(per_launch), trace_(trace) {}

  [[nodiscard]] const ChoiceUnits& units(Granularity granularity);
  [[nodiscard]] const ProfileTable& table(Granularity granularity);  ///< of unit_table

 private:
  const ProfileTable& per_launch_;
  const Trace& trace_;
  std::map<Granularity, ChoiceUnits> units_;
  std::map<Granularity, ProfileTable> tables_;
};

/// @param clock_of_unit  shape [units]
[[nodiscard]] Plan plan_by_unit(const Trace& trace, const ChoiceUnits& units,
                                const std::vector<ClockId>& clock_of_unit);

}  // namespace rubato
