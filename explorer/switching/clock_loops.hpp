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

/// Launches in the order of a sweep. Rows have shape [padded clocks]; those behind the clocks are
/// like the last one.
struct LaunchList {
  const std::uint32_t* first;  ///< row of the sweep's first launch
  std::ptrdiff_t next;         ///< 1, or -1 backwards
  const double* costs;         ///< rows: added to every run
  const double* times_s;       ///< rows
  std::size_t clocks;          ///< padded

  [[nodiscard]] std::size_t row(std::int64_t step) const { return first[next * step] * clocks; }
};

/// What the runs that begin with a launch have behind them. Changes are of one or several kinds,
/// each of which has the clocks in groups.
struct RunBegins {
  const double* initial;       ///< shape [padded clocks], of runs that begin with the first launch
  const double* best;          ///< [launches x groups] of all kinds: least value before a launch
  std::int64_t first_step;     ///< launch that `best` begins with
  const double* into;          ///< [kinds x padded clocks], added; infinite behind the clocks
  const std::uint32_t* group;  ///< [kinds x padded clocks], in a row of `best`
  std::size_t clocks;          ///< padded
  std::int64_t kinds;
  std::size_t groups;

  /// Changes are all alike: only `best` differs from one launch to another.
  [[nodiscard]] bool alike() const { return groups == 1; }

  /// A launch and a kind of change as one number: step * kinds + kind.
  struct Begin {
    double value;
    std::int64_t label;
  };
  [[nodiscard]] Begin at(std::int64_t step, std::size_t clock) const {
    if (step == 0) return {initial[clock], 0};
    Begin least{std::numeric_limits<double>::infinity(), step * kinds};
    const double* before = best + static_cast<std::size_t>(step - first_step) * groups;
    for (std::int64_t kind = 0; kind < kinds; ++kind) {
      const std::size_t i = static_cast<std::size_t>(kind) * clocks + clock;
      const double value = before[group[i]] + into[i];
      if (value < least.value) least = {value, step * kinds + kind};
    }
    return least;
  }
};

/// The best run of each clock. Rows of shape [padded clocks].
struct OpenRows {
  std::size_t clocks;
  double* value;
  std::int64_t* begin;  ///< RunBegins label
};

/// Runs that began and are not yet long enough, and the best of those that are. Starts of runs wait
/// in line, clocks of a vector together: until the run is long enough at all of them.
struct WaitingRows {
  OpenRows ready;
  std::int64_t* waiting;  ///< first start that waits; equal in a vector
  double* waiting_s;      ///< time since that start
  double* waiting_cost;   ///< and cost
  double least_s;         ///< length of a run that is long enough, > 0
};

/// The loops for one instruction set. Each takes a launch into account, and returns the least value
/// behind it: that of a run that ends there, `ended` of its clock added.
struct ClockLoops {
  std::string_view name;  ///< "avx512", "avx2", "baseline"

  /// Runs of any length, changes all alike: each clock goes on, or begins here if that is less.
  LeastValue (*any_length)(const OpenRows& open, const LaunchList& launches,
                           const RunBegins& begins, std::int64_t step, const double* ended);

  /// Runs may end once they are long enough.
  LeastValue (*some_length)(const WaitingRows& waiting, const LaunchList& launches,
                            const RunBegins& begins, std::int64_t step, const double* ended);
};

/// Those this machine can run, the slowest first.
[[nodiscard]] std::span<const ClockLoops> clock_loops();

}  // namespace rubato
