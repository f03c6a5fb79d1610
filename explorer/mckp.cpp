#include "explorer/mckp.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>

#include "common/numbers.hpp"
#include "explorer/pareto.hpp"

namespace rubato {

namespace {

// Sums of n doubles in another order differ by about n x 1e-16: bounds are
// loosened by this much, so that rounding never cuts off the optimum.
constexpr double rounding = 1e-12;

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

// An item that may be part of an optimal choice.
struct CoreItem {
  std::size_t item = 0;
  double reduced_cost = 0.0;  ///< cost + price x weight above the row's least
  double weight = 0.0;
};

// Least reduced cost plus price x unused budget that some rows can still reach,
// as a function of the budget left to them: their linear relaxation.
class Relaxation {
 public:
  struct Step {
    double weight = 0.0;
    double cost = 0.0;  ///< negative

    [[nodiscard]] double saving() const { return -cost / weight; }
  };

  /// @param start  least weight of the rows and the cost there; steps by falling saving
  Relaxation(Sums start, const std::vector<Step>& steps) {
    points_.push_back(start);
    for (const Step& step : steps)
      points_.push_back({points_.back().cost + step.cost, points_.back().weight + step.weight});
  }

  /// Infinity if the rows do not fit.
  [[nodiscard]] double least_cost(double budget) const {
    const auto after = std::ranges::upper_bound(points_, budget, {}, &Sums::weight);
    if (after == points_.begin()) return std::numeric_limits<double>::infinity();
    const Sums& left = *std::prev(after);
    if (after == points_.end()) return left.cost;
    return left.cost +
           (budget - left.weight) / (after->weight - left.weight) * (after->cost - left.cost);
  }

 private:
  std::vector<Sums> points_;
};

struct CoreRow {
  std::size_t row = 0;
  std::vector<CoreItem> items;  ///< by rising weight

  [[nodiscard]] double spread() const { return items.back().weight - items.front().weight; }
};

// A partial choice: one item of each core row so far.
struct State {
  double reduced_cost = 0.0;
  double weight = 0.0;
  std::uint32_t parent = 0;
  std::uint32_t item = 0;  ///< position in CoreRow::items
};

// Greedy along the path: the last choice within the budget, then any later
// step that still fits.
std::vector<std::size_t> greedy_choice(const MckpProblem& p, const HullPath& path) {
  std::vector<std::size_t> choice = path.start;
  std::vector<char> stopped(p.rows, 0);
  double weight = sums_of(p, choice).weight;
  for (const HullStep& step : path.steps) {
    if (stopped[step.row] != 0 || weight + step.weight_change > p.budget) {
      stopped[step.row] = 1;
      continue;
    }
    weight += step.weight_change;
    choice[step.row] = step.item;
  }
  // The running sum may have rounded the other way than the sum that counts.
  for (auto step = path.steps.rbegin();
       step != path.steps.rend() && sums_of(p, choice).weight > p.budget; ++step) {
    choice[step->row] = path.start[step->row];
  }
  return choice;
}

// The saving of the step at which the budget runs out: the multiplier whose
// Lagrangian bound is the value of the linear relaxation.
double critical_price(const MckpProblem& p, const HullPath& path) {
  CompensatedSum weight;
  weight.add(sums_of(p, path.start).weight);
  for (const HullStep& step : path.steps) {
    weight.add(step.weight_change);
    if (weight.value() > p.budget) return step.saving();
  }
  return 0.0;
}

struct Lagrangian {
  double bound = 0.0;
  std::vector<double> least;  ///< of cost + price x weight per row
};

Lagrangian lagrangian(const MckpProblem& p, double price) {
  Lagrangian found;
  CompensatedSum bound;
  for (std::size_t row = 0; row < p.rows; ++row) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = row * p.items; i < (row + 1) * p.items; ++i) {
      least = std::min(least, p.cost[i] + price * p.weight[i]);
    }
    found.least.push_back(least);
    bound.add(least);
  }
  bound.add(-price * p.budget);
  found.bound = bound.value();
  return found;
}

// Items of every row that are on its Pareto front, by rising weight.
std::vector<CoreRow> priced_rows(const MckpProblem& p, double price, const Lagrangian& bound) {
  std::vector<CoreRow> rows(p.rows);
  for (std::size_t row = 0; row < p.rows; ++row) {
    const auto cost = p.cost.subspan(row * p.items, p.items);
    const auto weight = p.weight.subspan(row * p.items, p.items);
    rows[row].row = row;
    for (const std::size_t item : pareto_front(weight, cost)) {
      const double reduced = std::max(cost[item] + price * weight[item] - bound.least[row], 0.0);
      rows[row].items.push_back({item, reduced, weight[item]});
    }
  }
  return rows;
}

enum class SearchEnd { found, nothing, gave_up };

// Exact search for a choice whose cost exceeds the Lagrangian bound by at most
// `gap`: only items with a reduced cost up to the gap can be part of it.
class CoreSearch {
 public:
  CoreSearch(const MckpProblem& p, const std::vector<CoreRow>& rows, double price, double gap,
             std::vector<std::size_t> incumbent)
      : p_(p), price_(price), gap_(gap), choice_(std::move(incumbent)) {
    for (const CoreRow& row : rows) add_row(row);
    // Wide rows first: what is left then moves the weight little.
    std::ranges::sort(core_, {}, [](const CoreRow& r) { return std::tuple(-r.spread(), r.row); });
    relax();
  }

  SearchEnd run(const RunContext& context, std::uint64_t max_states) {
    levels_.push_back(
        {State{.reduced_cost = 0.0, .weight = fixed_weight_, .parent = 0, .item = 0}});
    for (std::size_t level = 0; level < core_.size(); ++level) {
      if (states_ > max_states || context.stop_requested()) return SearchEnd::gave_up;
      levels_.push_back(next_states(level));
      if (levels_.back().empty()) return SearchEnd::nothing;
    }
    return take_best() ? SearchEnd::found : SearchEnd::nothing;
  }

  [[nodiscard]] std::uint64_t states() const { return states_; }
  [[nodiscard]] const std::vector<std::size_t>& choice() const { return choice_; }

 private:
  void add_row(const CoreRow& row) {
    CoreRow core{.row = row.row, .items = {}};
    std::ranges::copy_if(row.items, std::back_inserter(core.items),
                         [this](const CoreItem& item) { return item.reduced_cost <= gap_; });
    if (core.items.size() == 1) {
      fixed_weight_ += core.items.front().weight;
      choice_[row.row] = core.items.front().item;
      return;
    }
    core_.push_back(std::move(core));
  }

  // Cost of an item or state up to a constant: reduced cost less price x weight.
  [[nodiscard]] double relative_cost(double reduced_cost, double weight) const {
    return reduced_cost - price_ * weight;
  }

  // rest_[i] is the relaxation of the core rows from i on.
  void relax() {
    Sums start;
    std::vector<Relaxation::Step> steps;
    rest_.assign(1, Relaxation(start, steps));
    for (std::size_t i = core_.size(); i-- > 0;) {
      std::vector<double> cost, weight;
      for (const CoreItem& item : core_[i].items) {
        cost.push_back(relative_cost(item.reduced_cost, item.weight));
        weight.push_back(item.weight);
      }
      const std::vector<std::size_t> hull = lower_hull(weight, cost);
      start.cost += cost[hull.front()];
      start.weight += weight[hull.front()];
      for (std::size_t h = 1; h < hull.size(); ++h) {
        steps.push_back({weight[hull[h]] - weight[hull[h - 1]], cost[hull[h]] - cost[hull[h - 1]]});
      }
      std::ranges::sort(steps, std::ranges::greater{}, &Relaxation::Step::saving);
      rest_.emplace_back(start, steps);
    }
    std::ranges::reverse(rest_);
  }

  // Some completion within the budget may be as good as the gap asks.
  [[nodiscard]] bool promising(const State& state, std::size_t level) const {
    const double left = p_.budget - state.weight + rounding * std::abs(p_.budget);
    const double rest = rest_[level].least_cost(left);
    return relative_cost(state.reduced_cost, state.weight) + rest + price_ * p_.budget <= gap_;
  }

  std::vector<State> next_states(std::size_t level) {
    const std::vector<State>& from = levels_.back();
    std::vector<State> all;
    for (std::size_t s = 0; s < from.size(); ++s) {
      for (std::size_t i = 0; i < core_[level].items.size(); ++i) {
        const CoreItem& item = core_[level].items[i];
        const State next{from[s].reduced_cost + item.reduced_cost, from[s].weight + item.weight,
                         static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(i)};
        if (promising(next, level + 1)) all.push_back(next);
      }
    }
    states_ += from.size() * core_[level].items.size();
    // Dominated: no less weight and no less cost.
    const auto cost = [&](const State& s) { return relative_cost(s.reduced_cost, s.weight); };
    std::ranges::sort(
        all, {}, [&](const State& s) { return std::tuple(s.weight, cost(s), s.parent, s.item); });
    std::vector<State> kept;
    for (const State& state : all) {
      if (kept.empty() || cost(state) < cost(kept.back())) kept.push_back(state);
    }
    return kept;
  }

  [[nodiscard]] std::vector<std::size_t> choice_of(std::size_t state) const {
    std::vector<std::size_t> choice = choice_;
    for (std::size_t level = core_.size(); level-- > 0;) {
      const State& s = levels_[level + 1][state];
      choice[core_[level].row] = core_[level].items[s.item].item;
      state = s.parent;
    }
    return choice;
  }

  // The last state is the cheapest, but its exact sum may exceed the budget by rounding.
  bool take_best() {
    for (std::size_t s = levels_.back().size(); s-- > 0;) {
      std::vector<std::size_t> choice = choice_of(s);
      if (sums_of(p_, choice).weight > p_.budget) continue;
      choice_ = std::move(choice);
      return true;
    }
    return false;
  }

  const MckpProblem& p_;
  double price_;
  double gap_;
  std::vector<std::size_t> choice_;
  std::vector<CoreRow> core_;
  double fixed_weight_ = 0.0;
  std::vector<Relaxation> rest_;
  std::vector<std::vector<State>> levels_;
  std::uint64_t states_ = 0;
};

}  // namespace

HullPath hull_path(const MckpProblem& problem) {
  HullPath path;
  for (std::size_t row = 0; row < problem.rows; ++row) {
    const auto cost = problem.cost.subspan(row * problem.items, problem.items);
    const auto weight = problem.weight.subspan(row * problem.items, problem.items);
    const std::vector<std::size_t> hull = lower_hull(weight, cost);
    path.start.push_back(hull.front());
    for (std::size_t i = 1; i < hull.size(); ++i) {
      path.steps.push_back(
          {row, hull[i], weight[hull[i]] - weight[hull[i - 1]], cost[hull[i]] - cost[hull[i - 1]]});
    }
  }
  // Stable: within a row savings fall, and equal ones keep their order.
  std::ranges::stable_sort(path.steps, std::ranges::greater{}, &HullStep::saving);
  return path;
}

MckpResult solve_mckp(const MckpProblem& problem, const RunContext& context,
                      std::uint64_t max_states) {
  MckpResult result;
  const HullPath path = hull_path(problem);
  if (sums_of(problem, path.start).weight > problem.budget) return result;
  result.feasible = true;

  std::vector<std::size_t> greedy = greedy_choice(problem, path);
  const double price = critical_price(problem, path);
  const Lagrangian bound = lagrangian(problem, price);
  const Sums greedy_sums = sums_of(problem, greedy);
  const double scale = std::abs(greedy_sums.cost) + price * std::abs(problem.budget);
  const double gap = std::max(greedy_sums.cost - bound.bound, 0.0);

  // Most often the optimum lies far closer to the bound than the greedy choice:
  // a search with a small gap is cheap, and what it finds is optimal.
  constexpr double first_share = 1.0 / 4096.0, growth = 2.0;
  const std::vector<CoreRow> rows = priced_rows(problem, price, bound);
  result.choice = greedy;
  for (double share = first_share; !result.proven; share *= growth) {
    const double tried_gap = std::min(share, 1.0) * gap + rounding * scale;
    CoreSearch search(problem, rows, price, tried_gap, greedy);
    const SearchEnd end = search.run(context, max_states - std::min(max_states, result.states));
    result.states += search.states();
    if (end == SearchEnd::gave_up) break;
    if (end == SearchEnd::found) result.choice = search.choice();
    result.proven = end == SearchEnd::found || share >= 1.0;  // nothing better than greedy
  }
  const Sums sums = sums_of(problem, result.choice);
  result.cost = sums.cost;
  result.weight = sums.weight;
  result.lower_bound = result.proven ? sums.cost : std::min(bound.bound, sums.cost);
  return result;
}

}  // namespace rubato
