#include "explorer/switching/clock_loops.hpp"

#include <algorithm>
#include <array>

#include "common/vectors/instruction_sets.hpp"

namespace rubato {

namespace {

static_assert(widest_vector == lanes::count<lanes::Eight>);

constexpr double unseen = std::numeric_limits<double>::infinity();

// The least value so far and the band of clocks that it is in. Its clock is found at the end.
struct LeastBand {
  static constexpr std::size_t clocks = 128;
  double value = unseen;
  std::size_t first = 0;  ///< clock

  RUBATO_LANES void look_at(double least, std::size_t clock) {
    first = least < value ? clock : first;
    value = least < value ? least : value;
  }

  RUBATO_LANES LeastValue found(std::size_t all, const double* values, const double* ended) const {
    std::size_t clock = first;
    while (clock + 1 < all && values[clock] + ended[clock] != value) ++clock;
    return {value, value == unseen ? 0 : clock};
  }
};

// Pointers are copied from their structs before each loop: to the compiler, a store might change
// what is in there.

template <class V>
RUBATO_LANES LeastValue any_length(const OpenRows& open, const LaunchList& launches,
                                   const RunBegins& begins, std::int64_t step,
                                   const double* ended) {
  const lanes::Bits<V> here = lanes::all_bits<V>(step);
  const std::size_t clocks = open.clocks;
  double* values = open.value;
  std::int64_t* starts = open.begin;
  const double *into = begins.into, *costs = launches.costs + launches.row(step);
  double best = unseen;  // the first run is there already
  if (step > 0) best = begins.best[step - begins.first_step];
  LeastBand least_band;
  for (std::size_t first = 0; first < clocks; first += LeastBand::clocks) {
    const std::size_t end = std::min(first + LeastBand::clocks, clocks);
    V least = lanes::all<V>(unseen);
    for (std::size_t c = first; c < end; c += lanes::count<V>) {
      const V begun = best + lanes::load<V>(into + c), before = lanes::load<V>(values + c);
      const V value = lanes::smaller(begun, before) + lanes::load<V>(costs + c);
      lanes::store_bits<V>(lanes::if_above(before, begun, here, lanes::load_bits<V>(starts + c)),
                           starts + c);
      lanes::store(value, values + c);
      least = lanes::smaller(value + lanes::load<V>(ended + c), least);
    }
    least_band.look_at(lanes::least(least), first);
  }
  return least_band.found(clocks, values, ended);
}

// RunBegins::Begin at the clocks of a vector.
template <class V>
struct Begins {
  V value;
  lanes::Bits<V> label;
};

template <class V, bool alike>
RUBATO_LANES Begins<V> begins_at(const RunBegins& begins, std::int64_t start, std::size_t c) {
  if constexpr (alike) {
    if (start == 0) return {lanes::load<V>(begins.initial + c), lanes::Bits<V>{}};
    return {begins.best[start - begins.first_step] + lanes::load<V>(begins.into + c),
            lanes::all_bits<V>(start)};
  } else {
    std::array<double, lanes::count<V>> values;
    std::array<std::int64_t, lanes::count<V>> labels;
    for (std::size_t i = 0; i < lanes::count<V>; ++i) {
      const RunBegins::Begin begin = begins.at(start, c + i);
      values[i] = begin.value;
      labels[i] = begin.label;
    }
    return {lanes::load<V>(values.data()), lanes::load_bits<V>(labels.data())};
  }
}

// Goes over one launch at the clocks of a vector. @return the values after it
template <class V, bool alike>
RUBATO_LANES V go_by(const WaitingRows& rows, const LaunchList& launches, const RunBegins& begins,
                     std::int64_t step, std::size_t c) {
  const double *costs = launches.costs + c, *times_s = launches.times_s + c;
  const double least_s = rows.least_s;
  const std::size_t now = launches.row(step);
  const V cost = lanes::load<V>(costs + now);
  V value = lanes::load<V>(rows.ready.value + c) + cost;
  lanes::Bits<V> label = lanes::load_bits<V>(rows.ready.begin + c);
  // Time and cost of the run that begins with `start`.
  V run_s = lanes::load<V>(rows.waiting_s + c) + lanes::load<V>(times_s + now);
  V run_cost = lanes::load<V>(rows.waiting_cost + c) + cost;
  std::int64_t start = rows.waiting[c];
  const auto shorten = [&] {
    const std::size_t row = launches.row(start);
    run_s = run_s - lanes::load<V>(times_s + row);
    run_cost = run_cost - lanes::load<V>(costs + row);
    ++start;
  };
  // A run that is long enough at all of these clocks: its start leaves the line.
  while (start <= step && lanes::least(run_s) >= least_s) {
    const Begins<V> begun = begins_at<V, alike>(begins, start, c);
    const V begun_value = begun.value + run_cost;
    label = lanes::if_above(value, begun_value, begun.label, label);
    value = lanes::smaller(begun_value, value);
    shorten();
  }
  if (start > step) run_s = run_cost = V{};
  lanes::store_bits<V>(lanes::all_bits<V>(start), rows.waiting + c);
  lanes::store(run_s, rows.waiting_s + c);
  lanes::store(run_cost, rows.waiting_cost + c);
  // Runs that are long enough at some clocks: they count there, and stay in the line.
  const V never = lanes::all<V>(unseen), enough_s = lanes::all<V>(least_s);
  while (start <= step && lanes::largest(run_s) >= least_s) {
    const Begins<V> begun = begins_at<V, alike>(begins, start, c);
    const V begun_value = lanes::if_above(enough_s, run_s, never, begun.value + run_cost);
    label = lanes::if_above(value, begun_value, begun.label, label);
    value = lanes::smaller(begun_value, value);
    shorten();
  }
  lanes::store_bits<V>(label, rows.ready.begin + c);
  lanes::store(value, rows.ready.value + c);
  return value;
}

template <class V, bool alike>
RUBATO_LANES LeastValue some_length_of(const WaitingRows& rows, const LaunchList& launches,
                                       const RunBegins& begins, std::int64_t step,
                                       const double* ended) {
  using Two = lanes::Pair<V>;
  const std::size_t clocks = rows.ready.clocks;
  LeastBand least_band;
  for (std::size_t first = 0; first < clocks; first += LeastBand::clocks) {
    const std::size_t end = std::min(first + LeastBand::clocks, clocks);
    Two least = lanes::all<Two>(unseen);
    std::size_t c = first;
    for (; c + lanes::count<Two> <= end; c += lanes::count<Two>) {
      const Two value = go_by<Two, alike>(rows, launches, begins, step, c);
      least = lanes::smaller(value + lanes::load<Two>(ended + c), least);
    }
    for (; c < end; c += lanes::count<V>) {
      const V value = go_by<V, alike>(rows, launches, begins, step, c);
      least.first = lanes::smaller(value + lanes::load<V>(ended + c), least.first);
    }
    least_band.look_at(lanes::least(least), first);
  }
  return least_band.found(clocks, rows.ready.value, ended);
}

template <class V>
RUBATO_LANES LeastValue some_length(const WaitingRows& rows, const LaunchList& launches,
                                    const RunBegins& begins, std::int64_t step,
                                    const double* ended) {
  return begins.alike() ? some_length_of<V, true>(rows, launches, begins, step, ended)
                        : some_length_of<V, false>(rows, launches, begins, step, ended);
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
