#include "tools/commands/plans/captured_switching.hpp"

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/commands/plans/captured_tables.hpp"

namespace rubato {

OutputTable counted_changes_table(const GraphExploration& found) {
  OutputTable table({{"granularity"},
                     {"goal"},
                     {"slack_pct"},
                     {"clock_changes"},
                     {"late_launches"},
                     {"stalled_s"},
                     {"time_change_pct"},
                     {"energy_change_pct"},
                     {"deadline"}});
  for (const GraphPlanOutcome& outcome : found.plans) {
    if (!outcome.counted) continue;
    const CountedChanges& counted = *outcome.counted;
    table.add_row({std::string(name_of(outcome.result.question.grain)), goal_name(outcome),
                   percent * outcome.result.question.slack_frac,
                   static_cast<std::int64_t>(counted.clock_changes),
                   static_cast<std::int64_t>(counted.late_launches), counted.stalled_s,
                   percent * counted.change.time_frac, percent * counted.change.energy_frac,
                   std::string(deadline_text(outcome))});
  }
  return table;
}

std::string counted_changes_note(const SwitchModel& switching) {
  return fmt::format(
      "Changes of clock are taken as free, but for segments. 'played' and behind it: the plan as a "
      "GPU would play it, one step's clocks for all steps; {}.\n",
      switching.is_free()
          ? "changes take nothing, as asked for"
          : fmt::format("a change takes {}; a launch that waits for its clock is late",
                        change_text(switching)));
}

}  // namespace rubato
