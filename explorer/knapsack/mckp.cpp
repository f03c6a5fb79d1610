#include "explorer/knapsack/mckp.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "common/numbers.hpp"
#include "explorer/knapsack/core.hpp"
#include "explorer/knapsack/linear.hpp"
#include "explorer/knapsack/row_blocks.hpp"
#include "explorer/knapsack/row_scan.hpp"

namespace rubato {

namespace {

// A bound is a sum of doubles. This share of the cost covers the rounding of the bound and of the
// cost that it is compared to, an ulp (2.2e-16) each.
constexpr double sum_rounding = 1e-15;

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

// Cost of a choice above the bound of the relaxation, summed from its differences to the base.
double excess_of(const MckpProblem& p, const LinearSolution& r,
                 const std::vector<std::size_t>& choice) {
  CompensatedSum excess;
  excess.add(r.price * r.room);
  for (std::size_t row = 0; row < p.rows; ++row) {
    const std::size_t from = row * p.items + r.base[row], to = row * p.items + choice[row];
    if (from != to) excess.add(p.cost[to] - p.cost[from]);
  }
  return std::max(excess.value(), 0.0);
}

// Moves to the front the items that are cheaper than all items of lighter bins, and returns how
// many they are. Bins are equal ranges of weight. That leaves far fewer items to sort.
std::size_t keep_near_front(std::span<CoreItem> items) {
  constexpr std::size_t bins = 64;
  const auto [lightest, heaviest] = std::ranges::minmax(items, {}, &CoreItem::weight);
  const double first = lightest.weight;
  const double spread = std::max(heaviest.weight - first, std::numeric_limits<double>::min());
  const auto bin_of = [&](const CoreItem& item) {
    return std::min(static_cast<std::size_t>((item.weight - first) / spread * bins), bins - 1);
  };
  std::array<double, bins + 1> least{};  // in the end: least cost in the bins before each
  least.fill(std::numeric_limits<double>::infinity());
  for (const CoreItem& item : items) {
    double& here = least[bin_of(item) + 1];
    here = std::min(here, item.cost);
  }
  for (std::size_t bin = 1; bin <= bins; ++bin) least[bin] = std::min(least[bin], least[bin - 1]);
  std::size_t kept = 0;
  for (const CoreItem item : items) {
    items[kept] = item;
    kept += static_cast<std::size_t>(item.cost < least[bin_of(item)]);
  }
  return kept;
}

// Moves the undominated items (the Pareto front) to the front, by rising weight, and returns how
// many they are. Of equal items the first stays.
std::size_t keep_front(std::span<CoreItem> items) {
  constexpr std::size_t many = 24;
  if (items.size() > many) items = items.first(keep_near_front(items));
  std::ranges::sort(items, [](const CoreItem& a, const CoreItem& b) {
    if (a.weight != b.weight) return a.weight < b.weight;
    return a.cost != b.cost ? a.cost < b.cost : a.item < b.item;
  });
  double least_cost = std::numeric_limits<double>::infinity();
  const auto beaten = [&](const CoreItem& item) {
    if (item.cost >= least_cost) return true;
    least_cost = item.cost;
    return false;
  };
  return static_cast<std::size_t>(std::remove_if(items.begin(), items.end(), beaten) -
                                  items.begin());
}

// Makes the core for growing gaps. It looks at all items once, then only at rows whose least
// reduced cost is within the gap.
class CoreMaker {
 public:
  /// Rows with a change whose reduced cost is at most `largest_gap`.
  CoreMaker(const MckpProblem& p, const LinearSolution& r, double largest_gap)
      : p_(p), r_(r), largest_gap_(largest_gap) {
    const RowBlocks blocks(p.rows, p.items);
    std::vector<std::vector<Row>> parts(blocks.count());
    blocks.for_each([&](std::size_t block, std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) {
        const double least =
            scan_.least_change(items_of(p, row), static_cast<std::uint32_t>(r.base[row]), r.price);
        if (least <= largest_gap) parts[block].push_back({least, static_cast<std::uint32_t>(row)});
      }
    });
    for (const std::vector<Row>& part : parts) rows_.insert(rows_.end(), part.begin(), part.end());
    std::sort(rows_.begin(), rows_.end());
  }

  /// The first gap worth a search: a few rows have changes within it.
  [[nodiscard]] double first_gap() const {
    constexpr std::size_t few_rows = 12;
    return std::max(gap_of(few_rows), std::ldexp(largest_gap_, -20));
  }

  /// Below this gap the core has at most so many rows.
  [[nodiscard]] double gap_of(std::size_t rows) const {
    if (rows_.size() <= rows) return largest_gap_;
    return std::min(rows_[rows].least_reduced, largest_gap_);
  }

  /// A core with all rows for this gap. Of each row it has the items for the largest gap.
  [[nodiscard]] const Core& up_to(double gap) {
    const auto end = std::ranges::upper_bound(rows_, gap, {}, &Row::least_reduced);
    const auto wanted = static_cast<std::size_t>(end - rows_.begin());
    if (wanted <= made_) return core_;
    const std::span<const Row> rows = std::span(rows_).subspan(made_, wanted - made_);
    const RowBlocks blocks(rows.size(), p_.items);
    std::vector<Core> parts(blocks.count());
    blocks.for_each([&](std::size_t block, std::size_t first, std::size_t last) {
      std::vector<std::uint32_t> found(p_.items + 1);
      for (const Row& row : rows.subspan(first, last - first)) add_row(row, found, parts[block]);
    });
    for (const Core& part : parts) {
      const std::size_t offset = core_.items.size();
      core_.items.insert(core_.items.end(), part.items.begin(), part.items.end());
      for (CoreRow row : part.rows) {
        row.first += offset;
        core_.rows.push_back(row);
      }
    }
    made_ = wanted;
    return core_;
  }

 private:
  struct Row {
    double least_reduced = 0.0;
    std::uint32_t row = 0;
    friend bool operator<(const Row& a, const Row& b) {
      return a.least_reduced != b.least_reduced ? a.least_reduced < b.least_reduced : a.row < b.row;
    }
  };

  // Adds the items of one row other than its base whose reduced cost is within the largest gap.
  // Left out are those that another one or the base dominates. `found` is room for them.
  void add_row(const Row& row, std::vector<std::uint32_t>& found, Core& core) const {
    const RowItems items = items_of(p_, row.row);
    const auto base = static_cast<std::uint32_t>(r_.base[row.row]);
    const double base_cost = items.cost[base], base_weight = items.weight[base];
    const std::size_t first = core.items.size();
    const std::size_t seen = scan_.within(items, base, r_.price, largest_gap_, found.data());
    for (const std::uint32_t i : std::span(found).first(seen)) {
      const double weight = items.weight[i] - base_weight, cost = items.cost[i] - base_cost;
      if (weight >= 0.0 && cost >= 0.0) continue;  // the base is no worse
      core.items.push_back({i, weight, cost, std::max(cost + r_.price * weight, 0.0)});
    }
    core.items.resize(first + keep_front(std::span(core.items).subspan(first)));
    core.rows.push_back({row.row, first, core.items.size() - first, row.least_reduced});
  }

  const MckpProblem& p_;
  const LinearSolution& r_;
  const RowScan& scan_ = row_scans().back();
  double largest_gap_;
  std::vector<Row> rows_;  ///< by rising least_reduced
  Core core_;
  std::size_t made_ = 0;  ///< rows_ that are in core_
};

std::vector<std::size_t> moved(std::vector<std::size_t> choice, std::span<const CoreMove> moves) {
  for (const CoreMove& move : moves) choice[move.row] = move.item;
  return choice;
}

// Widens the gap until what is found lies within it.
class GapSearch {
 public:
  GapSearch(const MckpProblem& p, const LinearSolution& r) : p_(p), r_(r), best_(r.greedy) {
    excess_ = excess_of(p, r, best_);
  }

  void run(const RunContext& context, std::uint64_t max_states) {
    proven_ = excess_ == 0.0;
    if (proven_) return;
    CoreMaker cores(p_, r_, excess_);
    // Above what is already excluded, the gap grows from tiny to all there is.
    constexpr double growth = 4.0, jump = 8.0;
    std::uint64_t last_states = 0;
    std::optional<CoreSearch> search;
    double width = cores.first_gap();
    while (!proven_) {
      const double gap = excluded_ + jump * width >= excess_ ? excess_ : excluded_ + width;
      // While searches are cheap, items beyond the gap are in too: the bound may move past it.
      constexpr std::uint64_t cheap = 4096;
      constexpr double beyond = 8.0;
      constexpr std::size_t small_core = 40;  // rows
      if (last_states >= cheap) {
        search.emplace(cores.up_to(gap), gap);
      } else if (!search || search->item_gap() < gap) {
        const double item_gap = std::min(excess_, std::max(beyond * gap, cores.gap_of(small_core)));
        search.emplace(cores.up_to(item_gap), item_gap);
      }
      const CoreAnswer answer = search->run(question(gap, max_states), context);
      last_states = answer.states;
      states_ += answer.states;
      if (answer.found && answer.excess < excess_) {
        best_ = moved(r_.base, answer.moves);
        excess_ = std::max(answer.excess, 0.0);
      }
      if (!answer.complete) return;
      // The gap widens only where the bound has not moved far by itself.
      if (answer.excluded - excluded_ < jump * width) width *= growth;
      excluded_ = answer.excluded;
      proven_ = excess_ <= excluded_;
    }
  }

  [[nodiscard]] bool proven() const { return proven_; }
  [[nodiscard]] const std::vector<std::size_t>& best() const { return best_; }
  [[nodiscard]] std::uint64_t states() const { return states_; }
  /// No choice has an excess below both this one and that of the best choice.
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
  const LinearSolution& r_;
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
  const LinearSolution relaxation = solve_linear(problem);
  if (!relaxation.feasible) return result;
  result.feasible = true;
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
    const double rounding = sum_rounding * std::abs(sums.cost);
    result.lower_bound = std::min(bound.value() - rounding, sums.cost);
  }
  return result;
}

}  // namespace rubato
