#pragma once
// Choice units: sets of kernels that get one clock.

#include <map>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "explorer/goal.hpp"
#include "models/table/profile_table.hpp"
#include "sim/plan.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Units of one granularity and the kernels they cover.
struct ChoiceUnits {
  std::vector<std::string> names;      ///< shape [units]
  std::vector<UnitId> unit_of_kernel;  ///< shape [kernels]
};

/// iteration: one unit. pass: "forward" (embedding, forward, loss), "backward" (backward, embedding
/// backward) and "optimizer", as far as the trace has them; that of Spaan et al. has the first two.
/// kernel and automatic: one unit per kernel.
[[nodiscard]] ChoiceUnits choice_units(const Trace& trace, Granularity granularity);

/// The table with the energy of the rest of the node in every cell, as plans are chosen by it.
/// @param host_power_w  of the rest of the node, for each GPU, >= 0
[[nodiscard]] ProfileTable with_host_power(const ProfileTable& table, double host_power_w);

/// Sums a per-launch table [kernels x clocks] over the launches of each unit:
/// [units x clocks].
[[nodiscard]] ProfileTable unit_table(const ProfileTable& per_launch, const Trace& trace,
                                      const ChoiceUnits& units);

/// Units of a trace and their tables, each made when it is first asked for. For one thread. Table
/// and trace must outlive it.
class UnitTables {
 public:
  UnitTables(const ProfileTable& per_launch, const Trace& trace)
      : per_launch_(per_launch), trace_(trace) {}

  [[nodiscard]] const ChoiceUnits& units(Granularity granularity);
  [[nodiscard]] const ProfileTable& table(Granularity granularity);  ///< by unit_table()

 private:
  const ProfileTable& per_launch_;
  const Trace& trace_;
  std::map<Granularity, ChoiceUnits> units_;
  std::map<Granularity, ProfileTable> tables_;
};

/// The plan in which every launch has its unit's clock. @param clock_of_unit  shape [units]
[[nodiscard]] Plan plan_by_unit(const Trace& trace, const ChoiceUnits& units,
                                const std::vector<ClockId>& clock_of_unit);

}  // namespace rubato
