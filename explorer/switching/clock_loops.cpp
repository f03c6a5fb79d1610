#include "explorer/switching/clock_loops.hpp"

#include <algorithm>

#include "common/vectors/instruction_sets.hpp"

namespace rubato {

namespace {

static_assert(widest_vector == lanes::count<lanes::Eight>);

constexpr double unseen = std::numeric_limits<double>::infinity();

constexpr std::size_t band = WaitingRows::band;

// The band with the least value so far.
struct LeastBand {
  double value = unseen;
  std::size_t first = 0;  ///< clock

  RUBATO_LANES void look_at(double least, std::size_t clock) {
    first = least < value ? clock : first;
    value = least < value ? least : value;
  }

  // Of a band whose values `at` gives.
  template <class At>
  RUBATO_LANES LeastValue found(std::size_t clocks, const At& at) const {
    std::size_t clock = first;
    while (clock + 1 < clocks && at(clock) != value) ++clock;
    return {value, value == unseen ? 0 : clock};
  }
};

// Pointers are copied from their structs before each loop: to the compiler, a store might change
// what is in there.

template <class V>
RUBATO_LANES LeastValue any_length(const OpenRows& open, const LaunchRows& launch) {
  const lanes::Bits<V> here = lanes::Bits<V>{} + static_cast<std::uint64_t>(launch.step);
  const std::size_t clocks = open.clocks;
  double* values = open.value;
  std::int64_t* starts = open.start;
  const double *begun_by = launch.begun, *costs = launch.costs, *ended = launch.ended;
  const double best = launch.best;
  LeastBand least_band;
  for (std::size_t first = 0; first < clocks; first += band) {
    const std::size_t end = std::min(first + band, clocks);
    V least = lanes::all<V>(unseen);
    for (std::size_t c = first; c < end; c += lanes::count<V>) {
      const V begun = best + lanes::load<V>(begun_by + c), before = lanes::load<V>(values + c);
      const V value = lanes::smaller(begun, before) + lanes::load<V>(costs + c);
      lanes::store_bits<V>(lanes::if_above(before, begun, here, lanes::load_bits<V>(starts + c)),
                           starts + c);
      lanes::store(value, values + c);
      least = lanes::smaller(value + lanes::load<V>(ended + c), least);
    }
    least_band.look_at(lanes::least(least), first);
  }
  return least_band.found(clocks, [&](std::size_t c) { return values[c] + ended[c]; });
}

// Whether a start is long enough ago at some clock of a band, and at all of them.
struct Readiness {
  bool some, all;
};

template <class V>
RUBATO_LANES Readiness take(const WaitingRows& rows, std::int64_t start, std::size_t first,
                            std::size_t end) {
  const double *begin_s = rows.begin_s(start), *worth = rows.worth(start);
  const double* total_s = rows.total_s;
  double* values = rows.ready.value;
  std::int64_t* starts = rows.ready.start;
  const lanes::Bits<V> here = lanes::Bits<V>{} + static_cast<std::uint64_t>(start);
  const V never = lanes::all<V>(unseen), least_s = lanes::all<V>(rows.least_s);
  V longest = -never, shortest = never;
  for (std::size_t c = first; c < end; c += lanes::count<V>) {
    const V length = lanes::load<V>(total_s + c) - lanes::load<V>(begin_s + c);
    const V value = lanes::if_above(least_s, length, never, lanes::load<V>(worth + c));
    const V before = lanes::load<V>(values + c);
    lanes::store_bits<V>(lanes::if_above(before, value, here, lanes::load_bits<V>(starts + c)),
                         starts + c);
    lanes::store(lanes::smaller(value, before), values + c);
    longest = lanes::larger(length, longest);
    shortest = lanes::smaller(length, shortest);
  }
  return {lanes::largest(longest) >= rows.least_s, lanes::least(shortest) >= rows.least_s};
}

// A launch goes by: its start is added to those that wait.
template <class V>
RUBATO_LANES void begin(const WaitingRows& rows, const LaunchRows& launch, std::size_t first,
                        std::size_t end) {
  double *begin_s = rows.begin_s(launch.step), *worth = rows.worth(launch.step);
  double *total_s = rows.total_s, *total_cost = rows.total_cost;
  const double *begun = launch.begun, *times_s = launch.times_s, *costs = launch.costs;
  const double best = launch.best;
  for (std::size_t c = first; c < end; c += lanes::count<V>) {
    const V so_far_s = lanes::load<V>(total_s + c), so_far = lanes::load<V>(total_cost + c);
    lanes::store(so_far_s, begin_s + c);
    lanes::store(best + lanes::load<V>(begun + c) - so_far, worth + c);
    lanes::store(so_far_s + lanes::load<V>(times_s + c), total_s + c);
    lanes::store(so_far + lanes::load<V>(costs + c), total_cost + c);
  }
}

template <class V>
RUBATO_LANES LeastValue some_length(const WaitingRows& rows, const LaunchRows& launch) {
  const double *values = rows.ready.value, *total_cost = rows.total_cost, *ended = launch.ended;
  const std::size_t clocks = rows.ready.clocks;
  LeastBand least_band;
  for (std::size_t first = 0, b = 0; first < clocks; first += band, ++b) {
    const std::size_t end = std::min(first + band, clocks);
    begin<V>(rows, launch, first, end);
    std::int64_t oldest = rows.oldest_of[b];
    for (std::int64_t start = oldest; start <= launch.step; ++start) {
      const Readiness ready = take<V>(rows, start, first, end);
      if (!ready.some) break;  // nor are later starts
      if (ready.all) oldest = start + 1;
    }
    rows.oldest_of[b] = oldest;
    V least = lanes::all<V>(unseen);
    for (std::size_t c = first; c < end; c += lanes::count<V>) {
      const V value = lanes::load<V>(values + c) + lanes::load<V>(total_cost + c);
      least = lanes::smaller(value + lanes::load<V>(ended + c), least);
    }
    least_band.look_at(lanes::least(least), first);
  }
  return least_band.found(clocks,
                          [&](std::size_t c) { return values[c] + total_cost[c] + ended[c]; });
}

}  // namespace

std::span<const ClockLoops> clock_loops() {
  return lanes::runnable([]<class Set>(Set) {
    using V = typename Set::Vector;
    return ClockLoops{.name = Set::name,
                      .any_length = Set::template compiled<any_length<V>>,
                      .some_length = Set::template compiled<some_length<V>>};
  });
}

}  // namespace rubato
