#include "tools/commands/plans/captured_notes.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "tools/commands/plans/captured_tables.hpp"

namespace rubato {

OutputTable captured_notes_table(const GraphExploration& found) {
  OutputTable table({{"granularity"},
                     {.key = "goal", .for_programs = true},
                     {"slack_pct", "slack %", 1},
                     {"note"},
                     {"reason"}});
  const auto add = [&](std::string_view granularity, const std::string& goal, const Cell& slack_pct,
                       const std::vector<Mark>& marks) {
    for (const Mark& mark : marks)
      table.add_row({std::string(granularity), goal, slack_pct, std::string(name_of(mark.kind)),
                     mark.reason});
  };
  add("default", "default", std::monostate{}, found.baseline_marks);
  for (const GraphPlanOutcome& outcome : found.plans) {
    const GraphQuestion& question = outcome.result.question;
    add(name_of(question.grain), goal_name(outcome), 100.0 * question.slack_frac, outcome.marks);
  }
  return table;
}

std::string captured_notes_text(const GraphExploration& found) {
  std::vector<Mark> marks = found.baseline_marks;
  for (const GraphPlanOutcome& outcome : found.plans) {
    std::ranges::copy_if(outcome.marks, std::back_inserter(marks), [&](const Mark& mark) {
      return !outcome.counted || !is_said_by_playing(mark);
    });
  }
  return reasons_text(std::array<const std::vector<Mark>*, 1>{&marks});
}

}  // namespace rubato
