#include "models/kernel/cells.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "common/vectors/instruction_sets.hpp"

namespace rubato {

namespace {

using formulas::Launch;
using formulas::Memory;
using formulas::Point;
using formulas::State;

template <class V>
RUBATO_LANES void store_first(std::size_t n, const V& x, double* to) {
  const auto lane = lanes::each(x);
  for (std::size_t i = 0; i < n; ++i) to[i] = lane[i];
}

// How far a loop goes. whole: as many full vectors as there are. all: to the end, the last vector
// with lanes to spare. The few clocks that full wide vectors leave over take narrow vectors.
enum class Reach { whole, all };

template <class V, Reach reach>
RUBATO_LANES bool goes_on(std::size_t at, std::size_t end) {
  return reach == Reach::whole ? at + lanes::count<V> <= end : at < end;
}

// Returns where it ended, as do the loops of a row.
template <class V, Reach reach>
RUBATO_LANES std::size_t states_of(const GpuSpec& spec, const Memory<double>& memory,
                                   const ClockColumns& clocks, std::size_t at, std::size_t end) {
  for (; goes_on<V, reach>(at, end); at += lanes::count<V>) {
    const State<V> state = formulas::state_at(spec, memory, lanes::load<V>(clocks.core_mhz + at));
    lanes::store(state.s_per_cycle, clocks.s_per_cycle + at);
    lanes::store(state.s_per_byte, clocks.s_per_byte + at);
    lanes::store(state.log2_balance, clocks.log2_balance + at);
    lanes::store(state.idle_w, clocks.idle_w + at);
    lanes::store(state.squared_voltage, clocks.squared_voltage + at);
  }
  return at;
}

template <class Native, class V>
RUBATO_LANES void states(const GpuSpec& spec, const Memory<double>& memory,
                         const ClockColumns& clocks, std::size_t begin, std::size_t end) {
  const std::size_t at = states_of<V, Reach::whole>(spec, memory, clocks, begin, end);
  states_of<Native, Reach::all>(spec, memory, clocks, at, end);
}

template <class V>
RUBATO_LANES State<V> load_state(const ClockColumns& clocks, std::size_t at) {
  return {.core_mhz = V{},  // no cell needs it
          .s_per_cycle = lanes::load<V>(clocks.s_per_cycle + at),
          .s_per_byte = lanes::load<V>(clocks.s_per_byte + at),
          .log2_balance = lanes::load<V>(clocks.log2_balance + at),
          .idle_w = lanes::load<V>(clocks.idle_w + at),
          .squared_voltage = lanes::load<V>(clocks.squared_voltage + at)};
}

// Asks for the cache lines of `numbers` numbers, which need not exist.
template <std::size_t numbers>
RUBATO_LANES void prefetch(const double* at) {
  constexpr std::size_t line = 64 / sizeof(double);
  for (std::size_t i = 0; i < numbers; i += line) __builtin_prefetch(at + i, 1);
}

// Clocks [first, end) of a row, and what is worked out of them on the way.
struct RowPart {
  const Launch<double>& kernel;
  const ClockColumns& clocks;
  std::size_t first, end;
  double* work;  // from `first` on
  double *time_s, *energy_j;
};

template <class V, Reach reach>
RUBATO_LANES std::size_t powers(const RowPart& part, std::size_t at) {
  constexpr std::size_t width = lanes::count<V>;
  for (; goes_on<V, reach>(at, part.end); at += width) {
    const V balance = lanes::load<V>(part.clocks.log2_balance + at);
    lanes::store(lanes::exp2(formulas::log2_overlap(balance, part.kernel)),
                 part.work + (at - part.first));
    prefetch<width>(part.time_s + at);  // written by the third loop
    prefetch<width>(part.energy_j + at);
  }
  return at;
}

template <class V, Reach reach>
RUBATO_LANES std::size_t log2_factors(const RowPart& part, std::size_t at) {
  for (; goes_on<V, reach>(at, part.end); at += lanes::count<V>) {
    const V sum = 1.0 + lanes::load<V>(part.work + (at - part.first));
    lanes::store(lanes::log2_of_mantissa(sum) * part.kernel.inverse_exponent,
                 part.work + (at - part.first));
  }
  return at;
}

template <class V, Reach reach, bool near_zero>
RUBATO_LANES std::size_t finish(const RowPart& part, std::size_t at) {
  for (; goes_on<V, reach>(at, part.end); at += lanes::count<V>) {
    const V log2_factor = lanes::load<V>(part.work + (at - part.first));
    const V factor = near_zero ? lanes::exp2_near_zero(log2_factor) : lanes::exp2(log2_factor);
    const State<V> state = load_state<V>(part.clocks, at);
    const V time = formulas::time_at(state, part.kernel, factor);
    const V energy = formulas::energy_at(state, part.kernel, time);
    if (reach == Reach::whole || at + lanes::count<V> <= part.end) {
      lanes::store(time, part.time_s + at);
      lanes::store(energy, part.energy_j + at);
    } else {
      store_first(part.end - at, time, part.time_s + at);
      store_first(part.end - at, energy, part.energy_j + at);
    }
  }
  return at;
}

template <class Native, class V, bool near_zero>
RUBATO_LANES void finish(const RowPart& part, std::size_t first) {
  finish<Native, Reach::all, near_zero>(part, finish<V, Reach::whole, near_zero>(part, first));
}

// Three short loops in place of one long: there each step waits for the one before, and the
// processor does not look far enough ahead to begin the next cell meanwhile.
template <class Native, class V>
RUBATO_LANES void row(const Launch<double>& kernel, const ClockColumns& clocks, std::size_t cells,
                      double* time_s, double* energy_j) {
  constexpr std::size_t most = 1024;
  std::array<double, most> work;
  for (std::size_t first = 0; first < cells; first += most) {
    const RowPart part{kernel,      clocks, first,   std::min(first + most, cells),
                       work.data(), time_s, energy_j};
    powers<Native, Reach::all>(part, powers<V, Reach::whole>(part, first));
    log2_factors<Native, Reach::all>(part, log2_factors<V, Reach::whole>(part, first));
    // The logarithm of a sum of 1 and at most 1 is at most 1.
    if (kernel.inverse_exponent <= 0.5) {
      finish<Native, V, true>(part, first);
    } else {
      finish<Native, V, false>(part, first);
    }
  }
}

// One number of several launches, the last one's repeated.
template <class V, class Part>
RUBATO_LANES V gather(std::span<const RegulatedLaunch> launches, Part RegulatedLaunch::*part,
                      double Part::*number) {
  std::array<double, lanes::count<V>> lane;
  for (std::size_t i = 0; i < lane.size(); ++i)
    lane[i] = launches[std::min(i, launches.size() - 1)].*part.*number;
  return lanes::load<V>(lane.data());
}

template <class V>
RUBATO_LANES Launch<V> gather_kernels(std::span<const RegulatedLaunch> launches) {
  using L = Launch<double>;
  constexpr auto part = &RegulatedLaunch::kernel;
  return {.core_cycles = gather<V>(launches, part, &L::core_cycles),
          .dram_bytes = gather<V>(launches, part, &L::dram_bytes),
          .fixed_s = gather<V>(launches, part, &L::fixed_s),
          .core_j = gather<V>(launches, part, &L::core_j),
          .dram_j = gather<V>(launches, part, &L::dram_j),
          .idle_scale = gather<V>(launches, part, &L::idle_scale),
          .exponent = gather<V>(launches, part, &L::exponent),
          .inverse_exponent = gather<V>(launches, part, &L::inverse_exponent),
          .log2_intensity = gather<V>(launches, part, &L::log2_intensity),
          .most_distance = gather<V>(launches, part, &L::most_distance),
          .limit_w = gather<V>(launches, part, &L::limit_w)};
}

template <class V>
RUBATO_LANES void regulate_in(const GpuSpec& spec, std::span<const RegulatedLaunch> launches,
                              OperatingPoint* points) {
  using M = Memory<double>;
  constexpr auto part = &RegulatedLaunch::memory;
  for (; !launches.empty();
       launches = launches.subspan(std::min(lanes::count<V>, launches.size()))) {
    const Memory<V> memory{.bytes_per_s = gather<V>(launches, part, &M::bytes_per_s),
                           .base_power_w = gather<V>(launches, part, &M::base_power_w),
                           .voltage_scale = gather<V>(launches, part, &M::voltage_scale)};
    const Point<V> found = formulas::regulated(spec, memory, gather_kernels<V>(launches));
    const auto mhz = lanes::each(found.core_mhz), time_s = lanes::each(found.time_s),
               energy_j = lanes::each(found.energy_j);
    for (std::size_t i = 0; i < std::min(lanes::count<V>, launches.size()); ++i)
      *points++ = {time_s[i], energy_j[i], mhz[i], true};
  }
}

// A search takes about as long for one native vector as for four.
template <class Native, class V>
RUBATO_LANES void regulate(const GpuSpec& spec, std::span<const RegulatedLaunch> launches,
                           OperatingPoint* points) {
  if (launches.size() <= lanes::count<Native>) {
    regulate_in<Native>(spec, launches, points);
  } else {
    regulate_in<V>(spec, launches, points);
  }
}

template <class V>
RUBATO_LANES bool over_limit(const Launch<double>& kernel, std::size_t cells, const double* time_s,
                             const double* energy_j) {
  bool over = false;
  std::size_t i = 0;
  V most_over_j{};
  for (; i + lanes::count<V> <= cells; i += lanes::count<V>) {
    const V t = lanes::load<V>(time_s + i), e = lanes::load<V>(energy_j + i);
    most_over_j = lanes::larger(e - kernel.limit_w * t, most_over_j);
  }
  for (; i < cells; ++i) over = over || energy_j[i] - kernel.limit_w * time_s[i] > 0.0;
  return over || lanes::any(lanes::above(most_over_j, V{}));
}

template <class V>
RUBATO_LANES void hold(const Launch<double>& kernel, const OperatingPoint& regulated,
                       std::size_t cells, double* time_s, double* energy_j) {
  std::size_t i = 0;
  for (; i + lanes::count<V> <= cells; i += lanes::count<V>) {
    const V t = lanes::load<V>(time_s + i), e = lanes::load<V>(energy_j + i);
    const auto over = lanes::above(e, kernel.limit_w * t);
    lanes::store(lanes::select(over, lanes::all<V>(regulated.time_s), t), time_s + i);
    lanes::store(lanes::select(over, lanes::all<V>(regulated.energy_j), e), energy_j + i);
  }
  for (; i < cells; ++i) {
    if (!(energy_j[i] > kernel.limit_w * time_s[i])) continue;
    time_s[i] = regulated.time_s;
    energy_j[i] = regulated.energy_j;
  }
}

// Native vectors worked on side by side: four, but two where the machine has but 16 narrow
// registers.
template <class Native>
using Bundle = std::conditional_t<std::is_same_v<Native, lanes::Two>, lanes::Pair<Native>,
                                  lanes::Pair<lanes::Pair<Native>>>;

}  // namespace

std::span<const TableCells> table_cells() {
  return lanes::runnable([]<class Set>(Set) {
    using Native = typename Set::Vector;
    return TableCells{.name = Set::name,
                      .lanes = lanes::count<Native>,
                      .states = Set::template compiled<states<Native, Bundle<Native>>>,
                      .row = Set::template compiled<row<Native, Bundle<Native>>>,
                      .over_limit = Set::template compiled<over_limit<lanes::Pair<Native>>>,
                      .regulate = Set::template compiled<regulate<Native, Bundle<Native>>>,
                      .hold = Set::template compiled<hold<lanes::Pair<Native>>>};
  });
}

}  // namespace rubato
