#include "models/table/fill.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"

namespace rubato {

namespace {

using Launch = formulas::Launch<double>;

struct Extremes {
  double least = std::numeric_limits<double>::infinity(), most = 0.0;

  void take(double value) { take({value, value}); }
  void take(const Extremes& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
};

// Bounds over some clocks: the least and the most of what each offers.
struct ClockBounds {
  Extremes s_per_cycle, s_per_byte, idle_w, squared_voltage;

  void take(const ClockColumns& clocks, std::size_t at) {
    s_per_cycle.take(clocks.s_per_cycle[at]);
    s_per_byte.take(clocks.s_per_byte[at]);
    idle_w.take(clocks.idle_w[at]);
    squared_voltage.take(clocks.squared_voltage[at]);
  }
  void take(const ClockBounds& other) {
    s_per_cycle.take(other.s_per_cycle);
    s_per_byte.take(other.s_per_byte);
    idle_w.take(other.idle_w);
    squared_voltage.take(other.squared_voltage);
  }
};

// Whether bounds alone show that all cells of the kernel are positive and finite. If false, the
// cells must be looked at.
bool surely_sound(const ClockBounds& bounds, const Launch& kernel) {
  constexpr double far_from_overflow = 1e300;
  const double most_s = std::max(kernel.core_cycles * bounds.s_per_cycle.most,
                                 kernel.dram_bytes * bounds.s_per_byte.most) *
                            std::exp2(kernel.inverse_exponent) +
                        kernel.fixed_s;
  const double most_j = bounds.idle_w.most * kernel.idle_scale * most_s +
                        kernel.core_j * bounds.squared_voltage.most + kernel.dram_j;
  return kernel.fixed_s > 0.0 && kernel.core_j * bounds.squared_voltage.least > 0.0 &&
         kernel.idle_scale >= 0.0 && bounds.idle_w.least >= 0.0 && kernel.dram_j >= 0.0 &&
         most_s < far_from_overflow && most_j < far_from_overflow;
}

// Whether bounds alone show that no cell of the kernel is over the power limit. If false, the cells
// must be looked at.
bool surely_within_limit(const ClockBounds& bounds, const Launch& kernel) {
  constexpr double rounding = 1.0 + 1e-9;  // far more than rounding moves a cell
  const double least_s = std::max(kernel.core_cycles * bounds.s_per_cycle.least,
                                  kernel.dram_bytes * bounds.s_per_byte.least) +
                         kernel.fixed_s;
  const double most_j = kernel.core_j * bounds.squared_voltage.most + kernel.dram_j;
  const double most_w = bounds.idle_w.most * kernel.idle_scale + most_j / least_s;
  return most_w * rounding <= kernel.limit_w;
}

// Consecutive clocks of a grid at one memory state and power limit.
struct Run {
  std::size_t begin = 0, end = 0;
  std::size_t fastest = 0;  // the clock that most likely is over the power limit
  MemStateId mem;
  std::optional<double> power_limit_w;
  formulas::Memory<double> memory;
  ClockBounds bounds;

  [[nodiscard]] std::size_t cells() const noexcept { return end - begin; }
};

// The clocks of a grid on a GPU, computed once for all kernels.
class GridClocks {
 public:
  GridClocks(const GpuSpec& spec, const ClockSettings& settings, const TableCells& loops)
      : numbers_(columns_ * (settings.pairs.size() + ClockColumns::most_lanes)) {
    const std::size_t count = settings.pairs.size();
    const std::array<double**, columns_> columns{&clocks_.core_mhz,   &clocks_.s_per_cycle,
                                                 &clocks_.s_per_byte, &clocks_.log2_balance,
                                                 &clocks_.idle_w,     &clocks_.squared_voltage};
    for (std::size_t i = 0; i < columns_; ++i)
      *columns[i] = numbers_.data() + i * (count + ClockColumns::most_lanes);
    for (std::size_t i = 0; i < count; ++i) {
      const ClockPair& clock = settings.pairs[i];
      clocks_.core_mhz[i] =
          settings.applied ? applied_core_mhz(spec, clock) : effective_core_mhz(spec, clock);
      if (runs_.empty() || runs_.back().mem != clock.mem ||
          runs_.back().power_limit_w != clock.power_limit_w)
        runs_.push_back({i,
                         i,
                         i,
                         clock.mem,
                         clock.power_limit_w,
                         formulas::memory_of(spec.mem_states[index(clock.mem)]),
                         {}});
      Run& run = runs_.back();
      run.end = i + 1;
      if (clocks_.core_mhz[i] > clocks_.core_mhz[run.fastest]) run.fastest = i;
    }
    for (const Run& run : runs_)  // in order: each may write beyond its end, into the next one
      loops.states(spec, run.memory, clocks_, run.begin, run.end);
    for (Run& run : runs_) {
      for (std::size_t i = run.begin; i < run.end; ++i) run.bounds.take(clocks_, i);
      bounds_.take(run.bounds);
    }
    for (double** column : columns)
      std::fill_n(*column + count, ClockColumns::most_lanes, (*column)[count - 1]);
  }

  [[nodiscard]] const ClockColumns& clocks() const noexcept { return clocks_; }
  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }
  [[nodiscard]] const ClockBounds& bounds() const noexcept { return bounds_; }

 private:
  static constexpr std::size_t columns_ = 6;
  std::vector<double> numbers_;
  ClockColumns clocks_{};
  std::vector<Run> runs_;
  ClockBounds bounds_;
};

// A kernel at a run of clocks of which some are over the power limit.
struct LimitedRun {
  std::size_t first_cell, cells;
};

class Filler {
 public:
  Filler(const BoundKernels& bound, const ClockSettings& clocks, const TableCells& loops)
      : bound_(bound),
        loops_(loops),
        grid_(bound.spec, clocks, loops),
        clocks_(clocks.pairs.size()) {}

  /// Whether all cells are known to be positive and finite.
  [[nodiscard]] bool fill(double* time_s, double* energy_j) const {
    // Fewer cells than `worth_a_thread` take less time than waking another thread. More than `most`
    // have left the caches when the power limit is applied.
    constexpr std::size_t worth_a_thread = 4096, most = std::size_t{1} << 15;
    const std::size_t kernels = bound_.kernels.size();
    if (kernels == 0) return true;
    const auto threads = threads_at_hand();
    const auto chunks_of = [&](std::size_t rows) { return (kernels + rows - 1) / rows; };
    const std::size_t least = (worth_a_thread + clocks_ - 1) / clocks_;
    const std::size_t chunks =
        std::clamp(threads, chunks_of(std::max<std::size_t>(most / clocks_, 1)), chunks_of(least));
    const std::size_t rows = chunks_of(chunks);
    if (kernels <= rows) return fill_rows(0, kernels, time_s, energy_j);
    std::atomic<bool> sound = true;
    parallel_for(chunks_of(rows), [&](std::size_t i) {
      const std::size_t first = i * rows;
      if (!fill_rows(first, std::min(first + rows, kernels), time_s, energy_j))
        sound.store(false, std::memory_order_relaxed);
    });
    return sound;
  }

 private:
  [[nodiscard]] bool fill_rows(std::size_t first, std::size_t last, double* time_s,
                               double* energy_j) const {
    std::vector<RegulatedLaunch> launches;
    std::vector<LimitedRun> limited;
    constexpr std::size_t often_enough = 64;
    launches.reserve(often_enough);
    limited.reserve(often_enough);
    bool sound = true;
    for (std::size_t k = first; k < last; ++k) {
      Launch launch = launch_of(k);
      const std::size_t row = k * clocks_;
      loops_.row(launch, grid_.clocks(), clocks_, time_s + row, energy_j + row);
      sound = sound && surely_sound(grid_.bounds(), launch);
      for (const Run& run : grid_.runs()) {
        launch.limit_w = formulas::regulated_power_w(
            bound_.spec, bound_.kernels[k], run.power_limit_w.value_or(bound_.power_limit_w));
        if (surely_within_limit(run.bounds, launch)) continue;
        const std::size_t at = row + run.begin, fastest = row + run.fastest;
        if (energy_j[fastest] > launch.limit_w * time_s[fastest] ||
            loops_.over_limit(launch, run.cells(), time_s + at, energy_j + at)) {
          launches.push_back({launch, run.memory});
          limited.push_back({at, run.cells()});
        }
      }
    }
    // All searches at once: one alone would use few of the lanes.
    std::vector<OperatingPoint> points(launches.size());
    loops_.regulate(bound_.spec, launches, points.data());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto& [at, cells] = limited[i];
      loops_.hold(launches[i].kernel, points[i], cells, time_s + at, energy_j + at);
      sound = sound && std::isfinite(points[i].energy_j) && points[i].energy_j > 0.0 &&
              points[i].time_s > 0.0;
    }
    return sound;
  }

  [[nodiscard]] Launch launch_of(std::size_t kernel) const {
    return formulas::launch_of(bound_.kernels[kernel], bound_.spec, bound_.power_limit_w);
  }

  const BoundKernels& bound_;
  const TableCells& loops_;
  GridClocks grid_;
  std::size_t clocks_;
};

}  // namespace

bool fill_cells(const BoundKernels& bound, const ClockSettings& clocks, double* time_s,
                double* energy_j, const TableCells& loops) {
  return Filler(bound, clocks, loops).fill(time_s, energy_j);
}

void fill_costs(const GpuModel& model, const ClockGrid& grid, std::span<double> time_s,
                std::span<double> energy_j, const TableCells& loops) {
  const std::size_t cells = model.kernels() * grid.size();
  if (time_s.size() != cells || energy_j.size() != cells) {
    throw DataError(fmt::format("room for {} times and {} energies; expected {} x {}",
                                time_s.size(), energy_j.size(), model.kernels(), grid.size()));
  }
  const BoundKernels bound{model.spec(), model.coefficients(), model.power_limit_w()};
  if (!fill_cells(bound, {grid.pairs()}, time_s.data(), energy_j.data(), loops))
    expect_sound_costs(time_s, energy_j, grid.size());
}

ProfileTable fill_profile_table(const GpuModel& model, const ClockGrid& grid,
                                const TableCells& loops) {
  const std::size_t cells = model.kernels() * grid.size();
  const auto numbers = unset_numbers(2 * cells);
  fill_costs(model, grid, {numbers.get(), cells}, {numbers.get() + cells, cells}, loops);
  return {model.kernels(), grid.size(), numbers};
}

}  // namespace rubato
