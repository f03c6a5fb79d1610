#include "explorer/knapsack/price_enclosure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "common/numbers.hpp"
#include "explorer/knapsack/row_blocks.hpp"
#include "explorer/knapsack/row_scan.hpp"
#include "explorer/pareto.hpp"

namespace rubato {

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

Pick pick(const RowItems& row, std::uint32_t item) {
  return {row.cost[item], row.weight[item], item};
}

void add_up(Side& side) {
  CompensatedSum costs, weights;
  for (const Pick& p : side.picks) {
    costs.add(p.cost);
    weights.add(p.weight);
  }
  side.cost = costs.value();
  side.weight = weights.value();
}

bool is_wide(const Enclosure& e) {
  constexpr double narrow = 1.2;
  return e.light.price > narrow * e.heavy.price;
}

bool is_open(const Enclosure& e) { return e.heavy.price == 0.0 || e.light.price == endless; }

// The price at which cost + price x weight is equal for both sides.
double chord(const Enclosure& e) {
  return (e.light.cost - e.heavy.cost) / (e.heavy.weight - e.light.weight);
}

// Interpolates: the price at which the weight would be the budget if weight fell linearly with the
// price's logarithm. It is kept away from either end.
double between(const Enclosure& e, double budget) {
  constexpr double margin = 0.1;
  const double share = (e.heavy.weight - budget) / (e.heavy.weight - e.light.weight);
  return e.heavy.price *
         std::pow(e.light.price / e.heavy.price, std::clamp(share, margin, 1.0 - margin));
}

// A price near the one sought, and by how much the weight falls when the price rises to e (2.718)
// times as much.
struct Guess {
  double price = 0.0;
  double fall = 0.0;
};

class PriceSearch {
 public:
  explicit PriceSearch(const MckpProblem& p) : p_(p), blocks_(p.rows, p.items) {}

  /// The choices of least weight and of least cost.
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
    add_up(found.light);
    add_up(found.heavy);
    return found;
  }

  /// Tries prices between the two sides until these are close, or until no choice lies below the
  /// chord between them.
  void narrow(Enclosure& e) const {
    constexpr int attempts = 64;
    for (int i = 0; is_wide(e) && i < attempts; ++i) {
      const bool by_chord = is_open(e);
      if (!try_price(e, by_chord ? chord(e) : between(e, p_.budget)) && by_chord) return;
    }
  }

  /// Steps from a guess towards the price sought, a little too far each time, until there is a
  /// price on either side of the one sought.
  void narrow_around(Enclosure& e, Guess guess) const {
    constexpr double too_far = 1.25, least_ratio = 1.03, largest_ratio = 4.0;
    constexpr int attempts = 5;
    double price = guess.price, tried = 0.0, weight = 0.0;
    for (int i = 0; i < attempts && is_open(e); ++i) {
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

 private:
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
    add_up(side);
    return side;
  }

  // Replaces the side that the choice at this price belongs to. False if nothing new comes of it.
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

// Every so-many-th row and item of a large problem, whose price is about the same. None is taken of
// a small problem.
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

  /// From the sample's own relaxation. Its budget lies at the same share of the way from the least
  /// weight to the weight of least cost.
  [[nodiscard]] Guess guess(const MckpProblem& p, const Enclosure& whole) const {
    MckpProblem part{rows_, items_, cost_, weight_, 0.0};
    const PriceSearch search(part);
    Enclosure e = search.ends();
    const double scale =
        (whole.heavy.weight - whole.light.weight) / (e.heavy.weight - e.light.weight);
    part.budget = e.light.weight + (p.budget - whole.light.weight) / scale;
    search.narrow(e);
    return {is_open(e) ? chord(e) : between(e, part.budget),
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

// The steps of a row's lower convex hull between two of its vertices.
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

}  // namespace

Enclosure enclose_price(const MckpProblem& problem) {
  const PriceSearch search(problem);
  Enclosure e = search.ends();
  if (e.light.weight > problem.budget || e.heavy.weight <= problem.budget) return e;
  if (const auto sample = Sample::of(problem)) search.narrow_around(e, sample->guess(problem, e));
  search.narrow(e);
  return e;
}

std::vector<HullStep> steps_between(const MckpProblem& problem, const Enclosure& e) {
  const RowBlocks blocks(problem.rows, problem.items);
  std::vector<std::vector<HullStep>> parts(blocks.count());
  blocks.for_each([&](std::size_t block, std::size_t first, std::size_t last) {
    RowSteps finder(problem.items);
    for (std::size_t row = first; row < last; ++row) {
      finder.append(items_of(problem, row), e.light.picks[row], e.heavy.picks[row], row,
                    parts[block]);
    }
  });
  std::vector<HullStep> all = std::move(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i)
    all.insert(all.end(), parts[i].begin(), parts[i].end());
  return all;
}

}  // namespace rubato
