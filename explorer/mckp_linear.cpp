#include "explorer/mckp_linear.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "common/numbers.hpp"
#include "explorer/pareto.hpp"
#include "explorer/row_blocks.hpp"
#include "explorer/row_scan.hpp"

namespace rubato {

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

RowItems items_of(const MckpProblem& p, std::size_t row) {
  return {p.cost.data() + row * p.items, p.weight.data() + row * p.items, p.items};
}

// An item of a row.
struct Pick {
  double cost = 0.0, weight = 0.0;
  std::uint32_t item = 0;
};

Pick pick(const RowItems& row, std::uint32_t item) {
  return {row.cost[item], row.weight[item], item};
}

// The choice of least cost + price x weight.
struct Side {
  double price = 0.0;
  std::vector<Pick> picks;  ///< of each row
  double cost = 0.0, weight = 0.0;

  void add_up() {
    CompensatedSum costs, weights;
    for (const Pick& p : picks) {
      costs.add(p.cost);
      weights.add(p.weight);
    }
    cost = costs.value();
    weight = weights.value();
  }
};

// Two prices, with a choice that fits at the higher one and one that does not at the lower.
struct Enclosure {
  Side light, heavy;

  [[nodiscard]] bool wide() const {
    constexpr double narrow = 1.2;
    return light.price > narrow * heavy.price;
  }
  [[nodiscard]] bool open() const { return heavy.price == 0.0 || light.price == endless; }
  /// The price at which both cost the same.
  [[nodiscard]] double chord() const {
    return (light.cost - heavy.cost) / (heavy.weight - light.weight);
  }
  /// Where the weight would be the budget if it fell evenly with the price's logarithm, but not
  /// close to either end.
  [[nodiscard]] double between(double budget) const {
    constexpr double margin = 0.1;
    const double share = (heavy.weight - budget) / (heavy.weight - light.weight);
    return heavy.price *
           std::pow(light.price / heavy.price, std::clamp(share, margin, 1.0 - margin));
  }
};

// A price near the one sought, and by how much the weight falls from it on to e times the price.
struct Guess {
  double price = 0.0;
  double fall = 0.0;
};

class LinearSearch {
 public:
  explicit LinearSearch(const MckpProblem& p) : p_(p), blocks_(p.rows, p.items) {}

  /// Least weight and least cost.
  Enclosure ends() const {
    Enclosure found;
    found.light = {.price = endless, .picks = std::vector<Pick>(p_.rows)};
    found.heavy = {.price = 0.0, .picks = std::vector<Pick>(p_.rows)};
    blocks_.for_each([&](std::size_t, std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) {
        const RowItems items = items_of(p_, row);
        const RowEnds ends = scan_.ends(items);
        found.light.picks[row] = pick(items, ends.lightest);
        found.heavy.picks[row] = pick(items, ends.cheapest);
      }
    });
    found.light.add_up();
    found.heavy.add_up();
    return found;
  }

  /// Until the prices are close, or a chord has nothing below it.
  void narrow(Enclosure& e) const {
    constexpr int attempts = 64;
    for (int i = 0; e.wide() && i < attempts; ++i) {
      const bool by_chord = e.open();
      if (!try_price(e, by_chord ? e.chord() : e.between(p_.budget)) && by_chord) return;
    }
  }

  /// Steps from a guess until there is a price on either side of it, a little too far each time.
  void narrow_around(Enclosure& e, Guess guess) const {
    constexpr double too_far = 1.25, least_ratio = 1.03, largest_ratio = 4.0;
    constexpr int attempts = 5;
    double price = guess.price, tried = 0.0, weight = 0.0;
    for (int i = 0; i < attempts && e.open(); ++i) {
      if (!try_price(e, price)) return;
      const bool fits = price == e.light.price;
      const double now = fits ? e.light.weight : e.heavy.weight;
      if (i > 0 && now != weight) guess.fall = (weight - now) / std::log(price / tried);
      tried = price;
      weight = now;
      const double ratio = std::clamp(std::exp(too_far * std::abs(now - p_.budget) / guess.fall),
                                      least_ratio, largest_ratio);
      price = fits ? price / ratio : price * ratio;
    }
  }

  /// Every row's steps from the light to the heavy item, by rising weight.
  std::vector<HullStep> steps(const Enclosure& e) const {
    std::vector<std::vector<HullStep>> parts(blocks_.count());
    blocks_.for_each([&](std::size_t block, std::size_t first, std::size_t last) {
      RowSteps finder(p_.items);
      for (std::size_t row = first; row < last; ++row)
        finder.append(items_of(p_, row), e.light.picks[row], e.heavy.picks[row], row, parts[block]);
    });
    std::vector<HullStep> all = std::move(parts[0]);
    for (std::size_t i = 1; i < parts.size(); ++i)
      all.insert(all.end(), parts[i].begin(), parts[i].end());
    return all;
  }

 private:
  // The lower hull of the items that lie between two of its vertices.
  class RowSteps {
   public:
    explicit RowSteps(std::size_t items) : found_(items + 1) {}

    void append(const RowItems& items, const Pick& light, const Pick& heavy, std::size_t row,
                std::vector<HullStep>& steps) {
      if (light.weight >= heavy.weight || light.cost <= heavy.cost) return;
      const double chord = (light.cost - heavy.cost) / (heavy.weight - light.weight);
      const std::size_t count =
          row_scans().back().within(items, light.item, chord, 0.0, found_.data());
      weight_.clear();
      cost_.clear();
      kept_.clear();
      for (const std::uint32_t i : std::span(found_).first(count)) {
        // Beyond the two ends there may be ties.
        if (items.weight[i] < light.weight || items.cost[i] < heavy.cost) continue;
        kept_.push_back(i);
        weight_.push_back(items.weight[i]);
        cost_.push_back(items.cost[i]);
      }
      const std::span<const HullPoint> hull = hull_.of(weight_, cost_);
      for (std::size_t i = 1; i < hull.size(); ++i) {
        steps.push_back({static_cast<std::uint32_t>(row), kept_[hull[i].position],
                         hull[i].x - hull[i - 1].x, hull[i].y - hull[i - 1].y});
      }
    }

   private:
    std::vector<std::uint32_t> found_, kept_;
    std::vector<double> weight_, cost_;
    LowerHull hull_;
  };

  [[nodiscard]] Side at(const Enclosure& e, double price) const {
    Side side{.price = price, .picks = e.light.picks};
    blocks_.for_each([&](std::size_t, std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) {
        const std::uint32_t from = e.light.picks[row].item;
        if (from == e.heavy.picks[row].item) continue;
        const RowItems items = items_of(p_, row);
        side.picks[row] = pick(items, scan_.least(items, from, price));
      }
    });
    side.add_up();
    return side;
  }

  // False if that gives nothing new.
  bool try_price(Enclosure& e, double price) const {
    if (!(price > e.heavy.price && price < e.light.price)) return false;
    Side side = at(e, price);
    const bool fits = side.weight <= p_.budget;
    Side& replaced = fits ? e.light : e.heavy;
    const bool same = side.weight == replaced.weight;
    replaced = std::move(side);
    return !same;
  }

  const MckpProblem& p_;
  const RowScan& scan_ = row_scans().back();
  RowBlocks blocks_;
};

// A part of a large problem with about the same price; nothing of a small one.
class Sample {
 public:
  static std::optional<Sample> of(const MckpProblem& p) {
    constexpr std::size_t few_items = 64, few_rows = 64, share = 16;
    const std::size_t item_stride = std::clamp<std::size_t>(p.items / few_items, 1, share);
    const std::size_t row_stride =
        std::clamp<std::size_t>(p.rows / few_rows, 1, share / item_stride);
    if (item_stride * row_stride < share / 2) return std::nullopt;
    return Sample(p, row_stride, item_stride | 1U);  // odd, so that it visits all memory clocks
  }

  /// Of its linear relaxation at the same place between least weight and least cost.
  [[nodiscard]] Guess guess(const MckpProblem& p, const Enclosure& whole) const {
    MckpProblem part{rows_, items_, cost_, weight_, 0.0};
    const LinearSearch search(part);
    Enclosure e = search.ends();
    const double scale =
        (whole.heavy.weight - whole.light.weight) / (e.heavy.weight - e.light.weight);
    part.budget = e.light.weight + (p.budget - whole.light.weight) / scale;
    search.narrow(e);
    return {e.open() ? e.chord() : e.between(part.budget),
            scale * (e.heavy.weight - e.light.weight) / std::log(e.light.price / e.heavy.price)};
  }

 private:
  Sample(const MckpProblem& p, std::size_t row_stride, std::size_t item_stride)
      : rows_((p.rows + row_stride - 1) / row_stride),
        items_((p.items + item_stride - 1) / item_stride) {
    cost_.reserve(rows_ * items_);
    weight_.reserve(rows_ * items_);
    for (std::size_t row = 0; row < p.rows; row += row_stride) {
      const RowItems from = items_of(p, row);
      for (std::size_t i = 0; i < p.items; i += item_stride) {
        cost_.push_back(from.cost[i]);
        weight_.push_back(from.weight[i]);
      }
    }
  }

  std::size_t rows_, items_;
  std::vector<double> cost_, weight_;
};

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

// Changes one row after the other, each time the one and to the item that saves the most within
// the room. Of a large table it looks at some rows only.
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

// The steps that fit by falling saving, then a greedy choice of those behind them.
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
    // Steps rounded down more than the sum that counts: leave out the least of them.
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
  const LinearSearch search(problem);
  Enclosure e = search.ends();
  if (e.light.weight > problem.budget) return {};
  if (e.heavy.weight <= problem.budget) {
    LinearSolution all{.feasible = true, .base = choice_of(e.heavy.picks)};
    all.room = room_of(problem, all.base);
    all.greedy = all.base;
    return all;
  }
  if (const auto sample = Sample::of(problem)) search.narrow_around(e, sample->guess(problem, e));
  search.narrow(e);
  return filled(problem, e, search.steps(e));
}

}  // namespace rubato
