#include "explorer/slack_ladder.hpp"

#include "explorer/choice.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

std::vector<SlackStep> slack_ladder(const ExplorationInput& input, const Exploration& found,
                                    const RunContext& context) {
  const ProfileTable per_launch =
      with_host_power(profile_table(found.cells, input.trace.kernels.size(), found.grid.size()),
                      input.host_power_w);
  UnitTables tables(per_launch, input.trace);
  const ClockId default_clock = found.grid.default_clock();
  std::vector<SlackStep> steps;
  for (const Front& front : found.fronts) {
    const ProfileTable& table = tables.table(front.granularity);
    for (const double slack_frac : ladder_slacks_frac) {
      if (context.stop_requested()) return steps;
      const Solution solution =
          solve_global(table, LeastWaste{.slack_frac = slack_frac}, default_clock, context);
      const bool solved = solution.status == SolveStatus::optimal;
      steps.push_back(
          {front.granularity, slack_frac, solved ? std::optional(solution.total) : std::nullopt});
    }
  }
  return steps;
}

}  // namespace rubato
