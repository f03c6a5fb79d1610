#pragma once
// Loops over the clocks of dynamic programs over launches, compiled once for each instruction set
// that pays. All of them give the same answers: docs/decisions/0012-simd.md.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace rubato {

/// Rows over clocks have room for whole vectors, the widest ones there are.
inline constexpr std::size_t widest_vector = 8;
[[nodiscard]] constexpr std::size_t padded(std::size_t clocks) noexcept {
  return (clocks + widest_vector - 1) / widest_vector * widest_vector;
}

/// The least of some values and the first clock that has it.
struct LeastValue {
  double value = std::numeric_limits<double>::infinity();
  std::size_t clock = 0;
};

/// A launch, and the run of launches that may begin with it. Rows have shape [padded clocks]; those
/// behind the clocks are like the last one, but for `begun`, which is infinite.
struct LaunchRows {
  std::int64_t step = 0;  ///< number of the launch
  double best = 0.0;      ///< value of what was before the run
  const double* begun;    ///< added to it
  const double* costs;    ///< added to every run
  const double* times_s;  ///< of the launch
  const double* ended;    ///< added to a run that ends behind the launch, before it is compared
};

/// The best run of each clock. Rows of shape [clocks], a multiple of widest_vector.
struct OpenRows {
  std::size_t clocks;
  double* value;
  std::int64_t* start;  ///< launch it began with
};

/// Runs that began and are not yet long enough, and the best of those that are. Times and costs are
/// sums from a common moment, so that those of a run are differences.
struct WaitingRows {
  static constexpr std::size_t band = 128;  ///< clocks that come of age at almost the same launch

  OpenRows ready;   ///< values less total_cost
  double* total_s;  ///< rows of shape [clocks]
  double* total_cost;
  double* waiting;  ///< rows {total_s before, value less total_cost} of start s at s % capacity
  std::size_t capacity;     ///< a power of 2
  std::int64_t* oldest_of;  ///< start that some clock of a band waits for, of each band
  double least_s;           ///< length of a run that is long enough

  [[nodiscard]] double* begin_s(std::int64_t start) const {
    return waiting + (static_cast<std::size_t>(start) & (capacity - 1)) * 2 * ready.clocks;
  }
  [[nodiscard]] double* worth(std::int64_t start) const { return begin_s(start) + ready.clocks; }
};

/// The loops for one instruction set. Each returns the least value behind the launch.
struct ClockLoops {
  std::string_view name;  ///< "avx512", "avx2", "baseline"

  /// Runs of any length: each clock goes on, or begins here if that is less.
  LeastValue (*any_length)(const OpenRows& open, const LaunchRows& launch);

  /// Runs may end once they are long enough. @param waiting  with room for one more start
  LeastValue (*some_length)(const WaitingRows& waiting, const LaunchRows& launch);
};

/// Those this machine can run, the slowest first.
[[nodiscard]] std::span<const ClockLoops> clock_loops();

}  // namespace rubato
