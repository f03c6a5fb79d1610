#include "explorer/switching/run_clocks.hpp"

#include <algorithm>

#include "explorer/knapsack/mckp.hpp"

namespace rubato {

namespace {

// The most that any kind of change costs, and the longest run that any kind asks for.
struct DearestChange {
  std::vector<Cost> into;  ///< shape [clocks]
  double least_run_s = 0.0;

  explicit DearestChange(const LaunchSequence& sequence) : into(sequence.clocks()) {
    for (const ChangeKind& kind : sequence.kinds()) {
      least_run_s = std::max(least_run_s, kind.least_run_s);
      for (std::size_t c = 0; c < into.size(); ++c) {
        into[c].time_s = std::max(into[c].time_s, kind.into[c].time_s);
        into[c].energy_j = std::max(into[c].energy_j, kind.into[c].energy_j);
      }
    }
  }
};

// A row for each run, an item for each clock.
struct RunTable {
  std::size_t clocks;
  std::vector<double> energy_j, time_s;
  std::vector<std::uint32_t> clock_of_item;

  RunTable(const LaunchSequence& sequence, std::size_t rows)
      : clocks(sequence.clocks()), energy_j(rows * clocks), time_s(energy_j.size()) {}

  void add_launches(const LaunchSequence& sequence, std::size_t row, std::size_t first,
                    std::size_t count) {
    const ProfileTable& table = sequence.problem().per_launch;
    for (std::size_t i = first; i < first + count; ++i) {
      const std::span<const double> energies_j = table.energies_j(sequence.rows()[i]),
                                    times_s = table.times_s(sequence.rows()[i]);
      for (std::size_t c = 0; c < clocks; ++c) {
        energy_j[row * clocks + c] += energies_j[c];
        time_s[row * clocks + c] += times_s[c];
      }
    }
  }

  // A clock at which the run would be too short is replaced by the run's own.
  void keep_long_enough(std::size_t row, std::uint32_t own, double least_s) {
    for (std::uint32_t c = 0; c < clocks; ++c)
      clock_of_item.push_back(time_s[row * clocks + c] >= least_s ? c : own);
  }

  void add_changes(const std::vector<Cost>& into) {
    const std::vector<double> launches_j = energy_j, launches_s = time_s;
    for (std::size_t i = 0; i < time_s.size(); ++i) {
      const std::size_t clock = clock_of_item[i], item = i - i % clocks + clock;
      energy_j[i] = launches_j[item] + into[clock].energy_j;
      time_s[i] = launches_s[item] + into[clock].time_s;
    }
  }
};

}  // namespace

std::vector<ClockRun> with_new_clocks(const LaunchSequence& sequence,
                                      std::span<const ClockRun> runs, double budget_s,
                                      const RunContext& context) {
  const DearestChange change(sequence);
  // Without a change between them, the last run and the next iteration's first share one clock.
  const bool goes_on = runs.front().clock == runs.back().clock;
  const std::size_t rows = runs.size() - (goes_on ? 1 : 0);
  RunTable table(sequence, rows);
  std::size_t position = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    table.add_launches(sequence, r, position, runs[r].launches);
    table.keep_long_enough(r, runs[r].clock, change.least_run_s);
    position += runs[r].launches;
  }
  if (goes_on) table.add_launches(sequence, 0, position, sequence.size() - position);
  table.add_changes(change.into);
  constexpr std::uint64_t most_states = 100'000;
  const MckpResult best = solve_mckp({rows, table.clocks, table.energy_j, table.time_s, budget_s},
                                     context, most_states);
  if (!best.feasible) return {};
  std::vector<std::uint32_t> clocks;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::size_t row = r < rows ? r : 0;
    const std::uint32_t clock = table.clock_of_item[row * table.clocks + best.choice[row]];
    clocks.insert(clocks.end(), runs[r].launches, clock);
  }
  return runs_of(clocks);
}

}  // namespace rubato
