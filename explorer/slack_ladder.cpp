#include "explorer/slack_ladder.hpp"

#include <algorithm>
#include <array>

#include "common/algorithms/parallel.hpp"
#include "explorer/automatic.hpp"
#include "explorer/choice.hpp"
#include "explorer/plan/defaults.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

namespace {

// The first question for segments that counts changes of clock; null if there is none.
const Question* counted_segments(const ExplorationInput& input) {
  const auto asked = std::ranges::find_if(input.questions, [](const Question& question) {
    return question.granularity == Granularity::segment && question.counts_changes;
  });
  return asked == input.questions.end() ? nullptr : &*asked;
}

// The plan of segments that was asked for with that slack, without tolerance.
std::optional<Cost> planned(const Exploration& found, double slack_frac) {
  for (const PlanResult& plan : found.plans) {
    const auto* goal = std::get_if<LeastWaste>(&plan.question.goal);
    const bool for_all_of_it = !plan.bolder;  // the ladder is whatever the odds
    if (plan.question.granularity == Granularity::segment && plan.found() && for_all_of_it &&
        goal != nullptr && goal->slack_frac == slack_frac && goal->tolerance_frac == 0.0)
      return Cost{plan.sim.total.time_s, plan.sim.total.energy_j};
  }
  return std::nullopt;
}

void add_segments(const ExplorationInput& input, const Question& question, const Exploration& found,
                  const ProfileTable& per_launch, const RunContext& context,
                  std::vector<SlackStep>& steps) {
  const GpuModel model = model_of(input);
  const SwitchModel switching = applicable_switching(switching_of(input, question));
  std::array<std::optional<Cost>, ladder_slacks_frac.size()> least;
  parallel_for(least.size(), [&](std::size_t i) {
    const double slack_frac = ladder_slacks_frac[i];
    least[i] = planned(found, slack_frac);
    if (least[i]) return;
    const SwitchingSolution solution =
        solve_automatic(input, model, found.grid, per_launch, switching, {.slack_frac = slack_frac},
                        (1.0 + slack_frac) * found.baseline.total.time_s, 0.0, context);
    if (!solution.runs.empty()) least[i] = solution.total;
  });
  if (context.stop_requested()) return;
  for (std::size_t i = 0; i < least.size(); ++i) {
    if (i > 0 && least[i - 1] && (!least[i] || least[i - 1]->energy_j < least[i]->energy_j))
      least[i] = least[i - 1];
    steps.push_back({Granularity::segment, ladder_slacks_frac[i], least[i]});
  }
}

}  // namespace

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
  if (const Question* segments = counted_segments(input))
    add_segments(input, *segments, found, per_launch, context, steps);
  return steps;
}

}  // namespace rubato
