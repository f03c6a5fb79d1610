#include "tools/commands/plans/captured_switching.hpp"

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/plans/captured_tables.hpp"
#include "tools/terminal/exploration_notes.hpp"
#include "tools/terminal/time_text.hpp"

namespace rubato {

namespace {

std::string cost_text(const SwitchCost& cost) {
  std::string text = time_text(cost.latency_s());
  if (cost.stall_s > 0.0) text += fmt::format(" ({} of it a stall)", time_text(cost.stall_s));
  if (cost.energy_j > 0.0) text += fmt::format(" and {} J", format_number(cost.energy_j));
  return text;
}

}  // namespace

std::optional<SwitchOptions> given_switching(const CommandLine& line,
                                             const SwitchOptions& options) {
  for (const char* option : {"--switching", "--switch-latency-us", "--switch-stall-us",
                             "--switch-energy-j", "--switch-dwell-us", "--mem-switch-latency-us",
                             "--mem-switch-stall-us", "--mem-switch-energy-j"}) {
    if (line.has(option)) return options;
  }
  return std::nullopt;
}

std::optional<SwitchModel> captured_switching(const std::optional<SwitchOptions>& options,
                                              const GpuSpec& spec, bool needed) {
  if (options) return switch_model(*options, spec);
  if (!needed && !spec.switching.core_s) return std::nullopt;
  return switch_model(spec);
}

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

std::string counted_changes_note(const std::optional<SwitchModel>& switching) {
  if (!switching) {
    return unknown_changes_text();
  }
  std::string text =
      "Changes of clock are taken as free, but for segments. 'played' and behind it: the plan as a "
      "GPU would play it, one step's clocks for all steps; ";
  if (switching->is_free()) return text + "changes take nothing, as asked for.\n";
  text += fmt::format("a change takes {}", cost_text(switching->core));
  if (switching->mem) text += fmt::format(", of the memory clock {}", cost_text(*switching->mem));
  if (switching->dwell_s > 0.0)
    text += fmt::format(", the next one {} later", time_text(switching->dwell_s));
  return text + "; a launch that waits for its clock is late.\n";
}

}  // namespace rubato
