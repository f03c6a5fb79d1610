#include "explorer/automatic.hpp"

#include <algorithm>

#include "explorer/choice.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

namespace {

using Runs = std::vector<ClockRun>;

SwitchingSolution solve_on_grid(const ExplorationInput& input, const GpuModel& model,
                                const ClockGrid& grid, const ProfileTable& per_launch,
                                const SwitchModel& switching, const LeastWaste& goal,
                                double budget_s, double gap_frac, std::vector<Runs> starts,
                                const RunContext& context) {
  std::vector<double> idle_power_w;
  for (const ClockPair& clock : grid.pairs())
    idle_power_w.push_back(model.idle_power_w(clock) + input.host_power_w);
  const SwitchingProblem problem{.trace = input.trace,
                                 .per_launch = per_launch,
                                 .clocks = grid.pairs(),
                                 .idle_power_w = idle_power_w,
                                 .switching = switching,
                                 .budget_s = budget_s};
  for (const auto granularity : {Granularity::iteration, Granularity::pass, Granularity::kernel}) {
    const ChoiceUnits units = choice_units(input.trace, granularity);
    const Solution solution = solve_global(unit_table(per_launch, input.trace, units), goal,
                                           grid.default_clock(), context);
    if (solution.clock_of_unit.empty()) continue;
    starts.push_back(
        runs_of(input.trace, plan_by_unit(input.trace, units, solution.clock_of_unit)));
  }
  return solve_switching(problem, starts, gap_frac, context);
}

// Where the clocks of `part`, or clocks with the same effect, are in `grid`. Empty if `grid` lacks
// one of them, or has no more clocks than `part`.
std::vector<ClockId> places_of(const ClockGrid& part, const ClockGrid& grid, const GpuSpec& spec) {
  if (part.size() >= grid.size()) return {};
  std::vector<ClockId> places;
  for (const ClockPair& clock : part.pairs()) {
    const auto same = std::ranges::find_if(grid.pairs(), [&](const ClockPair& other) {
      return other.mem == clock.mem &&
             effective_core_mhz(spec, other) == effective_core_mhz(spec, clock);
    });
    if (same == grid.pairs().end()) return {};
    places.push_back(grid.find(clock).value_or(
        id_at<ClockId>(static_cast<std::size_t>(same - grid.pairs().begin()))));
  }
  return places;
}

ProfileTable columns_of(const ProfileTable& table, std::span<const ClockId> clocks) {
  std::vector<double> time_s, energy_j;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const ClockId clock : clocks) {
      const Cost cost = table.cost(row, clock);
      time_s.push_back(cost.time_s);
      energy_j.push_back(cost.energy_j);
    }
  }
  return {table.rows(), clocks.size(), std::move(time_s), std::move(energy_j)};
}

}  // namespace

SwitchingSolution solve_automatic(const ExplorationInput& input, const GpuModel& model,
                                  const ClockGrid& grid, const ProfileTable& per_launch,
                                  const SwitchModel& switching, const LeastWaste& goal,
                                  double budget_s, double gap_frac, const RunContext& context) {
  std::vector<Runs> starts;
  if (!input.measured) {
    const ClockGrid part = make_clock_grid(input.spec, "");
    const std::vector<ClockId> places = places_of(part, grid, input.spec);
    if (!places.empty()) {
      const SwitchingSolution solution =
          solve_on_grid(input, model, part, columns_of(per_launch, places), switching, goal,
                        budget_s, gap_frac, {}, context);
      std::vector<std::uint32_t> clocks;
      for (const ClockRun& run : solution.runs)
        clocks.insert(clocks.end(), run.launches, places[run.clock].value);
      if (!clocks.empty()) starts.push_back(runs_of(clocks));
    }
  }
  return solve_on_grid(input, model, grid, per_launch, switching, goal, budget_s, gap_frac,
                       std::move(starts), context);
}

}  // namespace rubato
