#include "explorer/switching/run_crossing.hpp"

#include <algorithm>
#include <numeric>

namespace rubato {

namespace {

std::vector<std::uint32_t> expanded(std::span<const ClockRun> runs) {
  std::vector<std::uint32_t> clocks;
  for (const ClockRun& run : runs) clocks.insert(clocks.end(), run.launches, run.clock);
  return clocks;
}

Cost operator+(const Cost& a, const Cost& b) {
  return {a.time_s + b.time_s, a.energy_j + b.energy_j};
}
Cost operator-(const Cost& a, const Cost& b) {
  return {a.time_s - b.time_s, a.energy_j - b.energy_j};
}

Cost change(const LaunchSequence& sequence, std::uint32_t from, std::uint32_t to) {
  return from == to ? Cost{} : sequence.kind(from, to).into[to];
}

// Cost of the launches before each position and of the changes between them: shape [launches + 1].
std::vector<Cost> sums(const LaunchSequence& sequence, std::span<const std::uint32_t> clocks) {
  std::vector<Cost> list(1);
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    const Cost before = i == 0 ? Cost{} : change(sequence, clocks[i - 1], clocks[i]);
    list.push_back(list.back() + before + sequence.launch(i, clocks[i]));
  }
  return list;
}

}  // namespace

std::vector<ClockRun> join(const LaunchSequence& sequence, std::span<const ClockRun> before,
                           std::span<const ClockRun> after, double budget_s) {
  const std::vector<std::uint32_t> left = expanded(before), right = expanded(after);
  const std::vector<Cost> to_left = sums(sequence, left), to_right = sums(sequence, right);
  const Cost back = change(sequence, right.back(), left.front());
  struct Cut {
    double energy_j;
    std::size_t position;
  };
  std::vector<Cut> cuts;
  for (std::size_t p = 1; p < left.size(); ++p) {
    // The change into launch p belongs to neither part.
    const Cost rest = to_right.back() - to_right[p] - change(sequence, right[p - 1], right[p]);
    const Cost total = to_left[p] + change(sequence, left[p - 1], right[p]) + rest + back;
    if (total.time_s <= budget_s) cuts.push_back({total.energy_j, p});
  }
  // At most cuts runs are long enough; where many are not, more tries seldom help.
  constexpr std::size_t most_tried = 32;
  const std::size_t tried = std::min(most_tried, cuts.size());
  std::ranges::partial_sort(cuts, cuts.begin() + static_cast<std::ptrdiff_t>(tried), {},
                            [](const Cut& cut) { return std::pair(cut.energy_j, cut.position); });
  for (std::size_t i = 0; i < tried; ++i) {
    std::vector<std::uint32_t> clocks(right);
    std::copy_n(left.begin(), cuts[i].position, clocks.begin());
    std::vector<ClockRun> runs = runs_of(clocks);
    const auto total = iteration_cost(sequence, runs);
    if (total && total->time_s <= budget_s) return runs;
  }
  return {};
}

}  // namespace rubato
