#include "explorer/knapsack/row_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/vectors/instruction_sets.hpp"

namespace rubato {

namespace {

// A reduced cost is a difference of differences of doubles: a few ulps of its terms.
constexpr double reduced_rounding = 1e-15;

constexpr double unseen = std::numeric_limits<double>::infinity();

// The item of the least value in each lane so far, of several the first.
template <class V>
struct Best {
  V value = lanes::all<V>(unseen), place{};

  RUBATO_LANES void look_at(const V& values, const V& places) {
    const auto better = lanes::above(value, values);
    value = lanes::select(better, values, value);
    place = lanes::select(better, places, place);
  }

  RUBATO_LANES std::uint32_t item() const {
    const V here = lanes::select(lanes::above(value, lanes::all<V>(lanes::least(value))),
                                 lanes::all<V>(unseen), place);
    return static_cast<std::uint32_t>(lanes::least(here));
  }
};

// 0, 1, 2, ... in the lanes.
template <class V>
RUBATO_LANES V counting() {
  V count{};
  for (std::size_t i = 0; i < lanes::count<V>; ++i) count[i] = static_cast<double>(i);
  return count;
}

RowEnds ends_of_few(const RowItems& row) {
  RowEnds found{0, 0};
  for (std::uint32_t i = 1; i < row.count; ++i) {
    const auto before = [i](const double* x, const double* y, std::uint32_t best) {
      return x[i] != x[best] ? x[i] < x[best] : y[i] < y[best];
    };
    if (before(row.weight, row.cost, found.lightest)) found.lightest = i;
    if (before(row.cost, row.weight, found.cheapest)) found.cheapest = i;
  }
  return found;
}

template <class V>
RUBATO_LANES RowEnds ends(const RowItems& row) {
  constexpr std::size_t width = lanes::count<V>;
  if (row.count < width) return ends_of_few(row);
  // The last group reaches back over items of the one before.
  const std::size_t last = row.count - width;
  V least_weight = lanes::all<V>(unseen), least_cost = least_weight;
  for (std::size_t at = 0;; at = std::min(at + width, last)) {
    least_weight = lanes::smaller(lanes::load<V>(row.weight + at), least_weight);
    least_cost = lanes::smaller(lanes::load<V>(row.cost + at), least_cost);
    if (at == last) break;
  }
  least_weight = lanes::all<V>(lanes::least(least_weight));
  least_cost = lanes::all<V>(lanes::least(least_cost));
  const V first = counting<V>(), never = lanes::all<V>(unseen);
  Best<V> lightest, cheapest;
  for (std::size_t at = 0;; at = std::min(at + width, last)) {
    const V weight = lanes::load<V>(row.weight + at), cost = lanes::load<V>(row.cost + at);
    const V place = first + static_cast<double>(at);
    lightest.look_at(lanes::select(lanes::above(weight, least_weight), never, cost), place);
    cheapest.look_at(lanes::select(lanes::above(cost, least_cost), never, weight), place);
    if (at == last) break;
  }
  return {lightest.item(), cheapest.item()};
}

// Cost and weight of items as differences to a reference.
struct Reference {
  double cost, weight, price;

  template <class V>
  RUBATO_LANES V priced(const V& item_weight) const {
    return price * (item_weight - weight);
  }
};

template <class V>
RUBATO_LANES std::uint32_t least(const RowItems& row, std::uint32_t reference, double price) {
  constexpr std::size_t width = lanes::count<V>;
  const Reference from{row.cost[reference], row.weight[reference], price};
  std::uint32_t found = 0;
  if (row.count < width) {
    double best = unseen;
    for (std::size_t i = 0; i < row.count; ++i) {
      const double value = (row.cost[i] - from.cost) + from.priced(row.weight[i]);
      if (value < best) {
        best = value;
        found = static_cast<std::uint32_t>(i);
      }
    }
    return found;
  }
  const V first = counting<V>();
  Best<V> best;
  const std::size_t last = row.count - width;
  for (std::size_t at = 0;; at = std::min(at + width, last)) {
    const V priced = from.priced(lanes::load<V>(row.weight + at));
    best.look_at((lanes::load<V>(row.cost + at) - from.cost) + priced,
                 first + static_cast<double>(at));
    if (at == last) break;
  }
  return best.item();
}

template <class V>
RUBATO_LANES std::uint32_t cheapest(const RowItems& row, std::uint32_t reference, double room) {
  constexpr std::size_t width = lanes::count<V>;
  const double weight = row.weight[reference];
  if (row.count < width) {
    std::uint32_t best = reference;
    for (std::uint32_t i = 0; i < row.count; ++i) {
      if (row.weight[i] - weight <= room && row.cost[i] < row.cost[best]) best = i;
    }
    return best;
  }
  const V first = counting<V>(), never = lanes::all<V>(unseen), limit = lanes::all<V>(room);
  Best<V> best;
  const std::size_t last = row.count - width;
  for (std::size_t at = 0;; at = std::min(at + width, last)) {
    const V change = lanes::load<V>(row.weight + at) - weight;
    best.look_at(lanes::select(lanes::above(change, limit), never, lanes::load<V>(row.cost + at)),
                 first + static_cast<double>(at));
    if (at == last) break;
  }
  return best.item();
}

template <class V>
RUBATO_LANES double least_change(const RowItems& row, std::uint32_t reference, double price) {
  constexpr std::size_t width = lanes::count<V>;
  const Reference from{row.cost[reference], row.weight[reference], price};
  double best = unseen;
  std::size_t at = 0;
  if (row.count >= width) {
    const V zero{}, never = lanes::all<V>(unseen);
    V least = never;
    for (; at + width <= row.count; at += width) {
      const V cost = lanes::load<V>(row.cost + at) - from.cost;
      const V weight = lanes::load<V>(row.weight + at) - from.weight;
      const V above = cost + price * weight;
      const auto better = lanes::above(zero, lanes::smaller(weight, cost));
      least = lanes::smaller(lanes::select(better, above, never), least);
    }
    best = lanes::least(least);
  }
  for (; at < row.count; ++at) {
    const double cost = row.cost[at] - from.cost, weight = row.weight[at] - from.weight;
    if (cost < 0.0 || weight < 0.0) best = std::min(best, cost + price * weight);
  }
  return best;
}

template <class V>
RUBATO_LANES std::size_t within(const RowItems& row, std::uint32_t reference, double price,
                                double gap, std::uint32_t* found) {
  constexpr std::size_t width = lanes::count<V>;
  const Reference from{row.cost[reference], row.weight[reference], price};
  std::size_t count = 0;
  const auto look_at = [&](std::size_t i) {
    const double priced = from.priced(row.weight[i]);
    const double above = (row.cost[i] - from.cost) + priced;
    found[count] = static_cast<std::uint32_t>(i);
    count += static_cast<std::size_t>(above <= gap + reduced_rounding * std::abs(priced));
  };
  std::size_t at = 0;
  for (; at + width <= row.count; at += width) {
    const V priced = from.priced(lanes::load<V>(row.weight + at));
    const V above = (lanes::load<V>(row.cost + at) - from.cost) + priced;
    const V limit = gap + reduced_rounding * lanes::magnitude(priced);
    if (lanes::least(above - limit) > 0.0) continue;
    for (std::size_t i = at; i < at + width; ++i) look_at(i);
  }
  for (; at < row.count; ++at) look_at(at);
  return count;
}

}  // namespace

std::span<const RowScan> row_scans() {
  return lanes::runnable([]<class Set>(Set) {
    using V = typename Set::Vector;
    return RowScan{.name = Set::name,
                   .ends = Set::template compiled<ends<V>>,
                   .least = Set::template compiled<least<V>>,
                   .cheapest = Set::template compiled<cheapest<V>>,
                   .least_change = Set::template compiled<least_change<V>>,
                   .within = Set::template compiled<within<V>>};
  });
}

}  // namespace rubato
