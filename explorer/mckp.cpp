#include "explorer/mckp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include <tbb/parallel_for.h>

#include "common/numbers.hpp"
#include "explorer/mckp_core.hpp"

namespace rubato {

namespace {

// A reduced cost is a difference of differences of doubles: a few ulps of its terms.
constexpr double reduced_rounding = 1e-15;

struct Sums {
  double cost = 0.0;
  double weight = 0.0;
};

Sums sums_of(const MckpProblem& p, const std::vector<std::size_t>& choice) {
  CompensatedSum cost, weight;
  for (std::size_t row = 0; row < p.rows; ++row) {
    cost.add(p.cost[row * p.items + choice[row]]);
    weight.add(p.weight[row * p.items + choice[row]]);
  }
  return {cost.value(), weight.value()};
}

bool fits(const MckpProblem& p, const std::vector<std::size_t>& choice) {
  return sums_of(p, choice).weight <= p.budget;
}

// budget - weight of the choice, without the cancellation of subtracting two sums.
double room_of(const MckpProblem& p, const std::vector<std::size_t>& choice) {
  CompensatedSum room;
  room.add(p.budget);
  for (std::size_t row = 0; row < p.rows; ++row) room.add(-p.weight[row * p.items + choice[row]]);
  return std::max(room.value(), 0.0);
}

// A step's place in the order of falling saving; ties keep the order of row_hulls.
struct StepKey {
  double saving = 0.0;
  double weight_change = 0.0;
  std::size_t step = 0;

  friend bool operator<(const StepKey& a, const StepKey& b) {
    return a.saving != b.saving ? a.saving > b.saving : a.step < b.step;
  }
};

// Steps beyond the room that the greedy choice looks at. More fill it better, which the search
// soon makes up for, and have to be sorted.
constexpr std::size_t greedy_steps = 256;

// Moves the steps that fit into the room to the front, and puts in order the one at
// which the room ends and some after it. Returns the number of those that fit.
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

// The linear relaxation: a choice that is optimal at `price`, which the budget ends.
struct Relaxed {
  std::vector<std::size_t> base;    ///< within the budget
  double price = 0.0;               ///< saving of the first step that does not fit, 0 if all fit
  double room = 0.0;                ///< budget less the weight of the base
  std::vector<std::size_t> greedy;  ///< base and later steps as far as they fit
};

Relaxed relaxed(const MckpProblem& p, const HullPath& hulls) {
  std::vector<StepKey> keys(hulls.steps.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = {hulls.steps[i].saving(), hulls.steps[i].weight_change, i};
  double room = room_of(p, hulls.start);
  Relaxed result;
  std::size_t split = 0;
  constexpr int attempts = 8;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    split = split_at_room(keys, room);
    std::vector<std::size_t> last(p.rows, 0);
    result.base = hulls.start;
    for (std::size_t i = 0; i < split; ++i) {
      const std::size_t step = keys[i].step;
      const HullStep& taken = hulls.steps[step];
      if (last[taken.row] > step) continue;  // steps of a row are in order
      last[taken.row] = step;
      result.base[taken.row] = taken.item;
    }
    if (fits(p, result.base)) break;
    // Steps rounded down more than the sum that counts: leave out the least of them.
    room -= std::max(1e-15 * std::abs(p.budget), 1e-15 * room) * std::ldexp(1.0, 2 * attempt);
    result.base = hulls.start;
    split = 0;
  }
  result.price = split < keys.size() ? keys[split].saving : 0.0;
  result.room = room_of(p, result.base);

  result.greedy = result.base;
  double left = result.room;
  std::vector<char> stopped(p.rows, 0);
  for (std::size_t i = split; i < std::min(split + greedy_steps, keys.size()); ++i) {
    const HullStep& step = hulls.steps[keys[i].step];
    if (stopped[step.row] != 0 || step.weight_change > left) {
      stopped[step.row] = 1;
      continue;
    }
    left -= step.weight_change;
    result.greedy[step.row] = step.item;
  }
  if (!fits(p, result.greedy)) result.greedy = result.base;
  return result;
}

// Cost of a choice above the linear bound, from its differences to the base.
double excess_of(const MckpProblem& p, const Relaxed& r, const std::vector<std::size_t>& choice) {
  CompensatedSum excess;
  excess.add(r.price * r.room);
  for (std::size_t row = 0; row < p.rows; ++row) {
    const std::size_t from = row * p.items + r.base[row], to = row * p.items + choice[row];
    if (from != to) excess.add(p.cost[to] - p.cost[from]);
  }
  return std::max(excess.value(), 0.0);
}

// Items of one row other than its base whose reduced cost is within the gap, without
// those another one of them or the base beats in cost and weight.
void add_core_row(const MckpProblem& p, const Relaxed& r, double gap, std::size_t row, Core& core) {
  const double* cost = p.cost.data() + row * p.items;
  const double* weight = p.weight.data() + row * p.items;
  const double base_cost = cost[r.base[row]], base_weight = weight[r.base[row]];
  const std::size_t first = core.items.size();
  for (std::size_t i = 0; i < p.items; ++i) {
    const double weight_change = weight[i] - base_weight;
    const double priced = r.price * weight_change;
    const double reduced = (cost[i] - base_cost) + priced;
    if (reduced > gap + reduced_rounding * std::abs(priced)) continue;
    if (weight_change >= 0.0 && cost[i] >= base_cost) continue;  // the base is no worse
    core.items.push_back({static_cast<std::uint32_t>(i), weight_change, cost[i] - base_cost,
                          std::max(reduced, 0.0)});
  }
  const auto begin = core.items.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, core.items.end(), [](const CoreItem& a, const CoreItem& b) {
    return std::tuple(a.weight, a.cost, a.item) < std::tuple(b.weight, b.cost, b.item);
  });
  double least_cost = std::numeric_limits<double>::infinity();
  const auto beaten = [&](const CoreItem& item) {
    if (item.cost >= least_cost) return true;
    least_cost = item.cost;
    return false;
  };
  core.items.erase(std::remove_if(begin, core.items.end(), beaten), core.items.end());
  const std::size_t count = core.items.size() - first;
  if (count == 0) return;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = first; i < first + count; ++i)
    least = std::min(least, core.items[i].reduced);
  core.rows.push_back({static_cast<std::uint32_t>(row), first, count, least});
}

Core core_of(const MckpProblem& p, const Relaxed& r, double gap) {
  constexpr std::size_t block_cells = std::size_t{1} << 16;
  const std::size_t block_rows = std::max<std::size_t>(block_cells / p.items, 1);
  const std::size_t blocks = (p.rows + block_rows - 1) / block_rows;
  std::vector<Core> parts(blocks);
  const auto work = [&](std::size_t block) {
    const std::size_t last = std::min((block + 1) * block_rows, p.rows);
    for (std::size_t row = block * block_rows; row < last; ++row)
      add_core_row(p, r, gap, row, parts[block]);
  };
  if (blocks == 1) {
    work(0);
  } else {
    tbb::parallel_for(std::size_t{0}, blocks, work);
  }
  Core core;
  for (const Core& part : parts) {
    const std::size_t offset = core.items.size();
    core.items.insert(core.items.end(), part.items.begin(), part.items.end());
    for (CoreRow row : part.rows) {
      row.first += offset;
      core.rows.push_back(row);
    }
  }
  std::ranges::sort(core.rows, {},
                    [](const CoreRow& row) { return std::pair(row.least_reduced, row.row); });
  return core;
}

std::vector<std::size_t> moved(std::vector<std::size_t> choice, std::span<const CoreMove> moves) {
  for (const CoreMove& move : moves) choice[move.row] = move.item;
  return choice;
}

// The first gap worth a search: that of the rows with the cheapest changes.
double first_gap(const Core& core, double gap) {
  constexpr std::size_t few_rows = 12;
  if (core.rows.size() <= few_rows) return gap;
  return std::clamp(core.rows[few_rows].least_reduced, std::ldexp(gap, -20), gap);
}

// Widens the gap until what is found lies within it.
class GapSearch {
 public:
  GapSearch(const MckpProblem& p, const Relaxed& r) : p_(p), r_(r), best_(r.greedy) {
    excess_ = excess_of(p, r, best_);
  }

  void run(const RunContext& context, std::uint64_t max_states) {
    proven_ = excess_ == 0.0;
    if (proven_) return;
    const Core core = core_of(p_, r_, excess_);
    // Above what is already excluded, the gap grows from tiny to all there is.
    constexpr double growth = 2.0, jump = 4.0;
    std::uint64_t last_states = 0;
    std::optional<CoreSearch> search;
    double width = first_gap(core, excess_);
    while (!proven_) {
      const double gap = excluded_ + jump * width >= excess_ ? excess_ : excluded_ + width;
      // While little is left of the lists, items beyond the gap help to move the bound.
      constexpr std::uint64_t cheap = 4096;
      constexpr double beyond = 8.0;
      if (last_states >= cheap) {
        search.emplace(core, gap);
      } else if (!search || search->item_gap() < gap) {
        search.emplace(core, std::min(excess_, beyond * gap));
      }
      const CoreAnswer answer = search->run(question(gap, max_states), context);
      last_states = answer.states;
      states_ += answer.states;
      if (answer.found && answer.excess < excess_) {
        best_ = moved(r_.base, answer.moves);
        excess_ = std::max(answer.excess, 0.0);
      }
      if (!answer.complete) return;
      // A bound that cuts everything off moves far; only where it does not, widen.
      if (answer.excluded - excluded_ < jump * width) width *= growth;
      excluded_ = answer.excluded;
      proven_ = excess_ <= excluded_;
    }
  }

  [[nodiscard]] bool proven() const { return proven_; }
  [[nodiscard]] const std::vector<std::size_t>& best() const { return best_; }
  [[nodiscard]] std::uint64_t states() const { return states_; }
  /// No choice has a smaller excess than this one or the best.
  [[nodiscard]] double excluded() const { return excluded_; }

 private:
  [[nodiscard]] CoreQuestion question(double gap, std::uint64_t max_states) const {
    // Room and decisive sum are each rounded once, by half an ulp of the budget.
    const double margin = std::numeric_limits<double>::epsilon() * std::abs(p_.budget);
    return {.price = r_.price,
            .room = r_.room,
            .room_margin = margin,
            .gap = gap,
            .fits = [this](std::span<const CoreMove> m) { return fits(p_, moved(r_.base, m)); },
            .max_states = max_states - std::min(max_states, states_)};
  }

  const MckpProblem& p_;
  const Relaxed& r_;
  std::vector<std::size_t> best_;
  double excess_ = 0.0;
  double excluded_ = 0.0;
  bool proven_ = false;
  std::uint64_t states_ = 0;
};

}  // namespace

MckpResult solve_mckp(const MckpProblem& problem, const RunContext& context,
                      std::uint64_t max_states) {
  MckpResult result;
  const HullPath hulls = row_hulls(problem);
  if (!fits(problem, hulls.start)) return result;
  result.feasible = true;
  const Relaxed relaxation = relaxed(problem, hulls);
  GapSearch search(problem, relaxation);
  search.run(context, max_states);
  result.choice = search.best();
  result.proven = search.proven();
  result.states = search.states();
  const Sums sums = sums_of(problem, result.choice);
  result.cost = sums.cost;
  result.weight = sums.weight;
  result.lower_bound = sums.cost;
  if (!result.proven) {
    CompensatedSum bound;
    bound.add(sums_of(problem, relaxation.base).cost);
    bound.add(-relaxation.price * relaxation.room);
    bound.add(search.excluded());
    // One ulp of either sum.
    const double rounding = reduced_rounding * std::abs(sums.cost);
    result.lower_bound = std::min(bound.value() - rounding, sums.cost);
  }
  return result;
}

}  // namespace rubato
