#include "explorer/knapsack/linear.hpp"

#include <algorithm>
#include <cmath>

#include "common/numbers.hpp"
#include "explorer/knapsack/price_enclosure.hpp"
#include "explorer/knapsack/row_scan.hpp"

namespace rubato {

namespace {

// budget - weight of the choice, without the cancellation of subtracting two sums.
double room_of(const MckpProblem& p, const std::vector<std::size_t>& choice) {
  CompensatedSum room;
  room.add(p.budget);
  for (std::size_t row = 0; row < p.rows; ++row) room.add(-p.weight[row * p.items + choice[row]]);
  return std::max(room.value(), 0.0);
}

// A step's place in the order of falling saving; ties go by row.
struct StepKey {
  double saving = 0.0;
  double weight_change = 0.0;
  std::size_t step = 0;

  friend bool operator<(const StepKey& a, const StepKey& b) {
    return a.saving != b.saving ? a.saving > b.saving : a.step < b.step;
  }
};

// How many steps beyond the room the greedy choice looks at. More of them would fill the room
// better, but would have to be sorted; the search soon makes up for it.
constexpr std::size_t greedy_steps = 256;

// Moves the steps that fit into the room to the front and returns how many they are. The step at
// which the room ends and some after it are put in order. Halves around medians, without a sort of
// all steps.
// Source: Balas and Zemel, Operations Research 28(5), 1980, for the plain knapsack.
std::size_t split_at_room(std::vector<StepKey>& keys, double room) {
  constexpr std::size_t few = 64;
  CompensatedSum used;
  std::size_t low = 0, high = keys.size();
  const auto at = [&](std::size_t i) { return keys.begin() + static_cast<std::ptrdiff_t>(i); };
  while (high - low > few) {
    const std::size_t middle = low + (high - low) / 2;
    std::nth_element(at(low), at(middle), at(high));
    CompensatedSum more = used;
    for (std::size_t i = low; i <= middle; ++i) more.add(keys[i].weight_change);
    if (more.value() <= room) {
      used = more;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  std::sort(at(low), at(high));
  for (; low < keys.size(); ++low) {
    used.add(keys[low].weight_change);
    if (used.value() > room) break;
  }
  const std::size_t end = std::min(low + greedy_steps, keys.size());
  if (end < keys.size()) std::nth_element(at(low), at(end), keys.end());
  std::sort(at(low), at(end));
  return low;
}

// Three times moves one row to another item: of all such changes that fit into the room, the one
// that saves the most. Of a large table it looks at some rows only.
void fill(const MckpProblem& p, std::vector<std::size_t>& choice, double room) {
  constexpr int changes = 3;
  constexpr std::size_t enough_cells = std::size_t{1} << 16;
  const RowScan& scan = row_scans().back();
  const std::size_t stride = 1 + p.rows * p.items / enough_cells;
  for (int i = 0; i < changes; ++i) {
    double best = 0.0, weight = 0.0;
    std::size_t best_row = 0;
    std::uint32_t best_item = 0;
    for (std::size_t row = 0; row < p.rows; row += stride) {
      const RowItems items = items_of(p, row);
      const auto from = static_cast<std::uint32_t>(choice[row]);
      const std::uint32_t to = scan.cheapest(items, from, room);
      const double change = items.cost[to] - items.cost[from];
      if (change >= best) continue;
      best = change;
      weight = items.weight[to] - items.weight[from];
      best_row = row;
      best_item = to;
    }
    if (best >= 0.0) return;
    choice[best_row] = best_item;
    room -= weight;
  }
}

std::vector<std::size_t> choice_of(const std::vector<Pick>& picks) {
  std::vector<std::size_t> choice;
  choice.reserve(picks.size());
  for (const Pick& p : picks) choice.push_back(p.item);
  return choice;
}

// The base: the steps that fit, by falling saving. The greedy choice: the base, further steps that
// fit, and changes by fill().
LinearSolution filled(const MckpProblem& p, const Enclosure& e,
                      const std::vector<HullStep>& steps) {
  std::vector<StepKey> keys(steps.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = {steps[i].saving(), steps[i].weight_change, i};
  const std::vector<std::size_t> start = choice_of(e.light.picks);
  double room = room_of(p, start);
  LinearSolution result{.feasible = true};
  std::size_t split = 0;
  constexpr int attempts = 8;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    split = split_at_room(keys, room);
    std::vector<std::size_t> last(p.rows, 0);
    result.base = start;
    for (std::size_t i = 0; i < split; ++i) {
      const std::size_t step = keys[i].step;
      const HullStep& taken = steps[step];
      if (last[taken.row] > step) continue;  // steps of a row are in order
      last[taken.row] = step;
      result.base[taken.row] = taken.item;
    }
    if (fits(p, result.base)) break;
    // The sum that counts is a little above that of the steps: try again with a little less room.
    room -= std::max(1e-15 * std::abs(p.budget), 1e-15 * room) * std::ldexp(1.0, 2 * attempt);
    result.base = start;
    split = 0;
  }
  result.price = split < keys.size() ? keys[split].saving : e.heavy.price;
  result.room = room_of(p, result.base);

  result.greedy = result.base;
  double left = result.room;
  std::vector<char> stopped(p.rows, 0);
  for (std::size_t i = split; i < std::min(split + greedy_steps, keys.size()); ++i) {
    const HullStep& step = steps[keys[i].step];
    if (stopped[step.row] != 0 || step.weight_change > left) {
      stopped[step.row] = 1;
      continue;
    }
    left -= step.weight_change;
    result.greedy[step.row] = step.item;
  }
  fill(p, result.greedy, left);
  if (!fits(p, result.greedy)) result.greedy = result.base;
  return result;
}

}  // namespace

bool fits(const MckpProblem& problem, const std::vector<std::size_t>& choice) {
  CompensatedSum weight;
  for (std::size_t row = 0; row < problem.rows; ++row)
    weight.add(problem.weight[row * problem.items + choice[row]]);
  return weight.value() <= problem.budget;
}

LinearSolution solve_linear(const MckpProblem& problem) {
  const Enclosure e = enclose_price(problem);
  if (e.light.weight > problem.budget) return {};
  if (e.heavy.weight <= problem.budget) {
    LinearSolution all{.feasible = true, .base = choice_of(e.heavy.picks)};
    all.room = room_of(problem, all.base);
    all.greedy = all.base;
    return all;
  }
  return filled(problem, e, steps_between(problem, e));
}

}  // namespace rubato
