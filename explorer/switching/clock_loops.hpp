#pragma once
// Loops over the clocks of dynamic programs over launches, compiled once for each instruction set
// that pays. All of them give the same answers: docs/decisions/0012-simd.md.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace rubato {

/// Rows over clocks are padded to whole vectors of the widest kind: 8 doubles.
inline constexpr std::size_t widest_vector = 8;
[[nodiscard]] constexpr std::size_t padded(std::size_t clocks) noexcept {
  return (clocks + widest_vector - 1) / widest_vector * widest_vector;
}

/// The least of some values and the first clock that has it.
struct LeastValue {
  double value = std::numeric_limits<double>::infinity();
  std::size_t clock = 0;
};

/// Launches in the order of a sweep. Rows have shape [padded clocks]; what lies behind the clocks
/// is like the last clock.
struct LaunchList {
  const std::uint32_t* first;  ///< row of the sweep's first launch
  std::ptrdiff_t next;         ///< 1, or -1 backwards
  const double* costs;         ///< rows: priced launches, added to every run
  const double* times_s;       ///< rows: times of launches
  std::size_t clocks;          ///< padded

  [[nodiscard]] std::size_t row(std::int64_t step) const { return first[next * step] * clocks; }
};

/// The least cost of all that comes before a run, for runs that begin with each launch: earlier
/// runs, and the change into this one. Changes are of one or several kinds. Each kind has the
/// clocks in groups of its own (ChangeKind).
struct RunBegins {
  const double* initial;       ///< shape [padded clocks], of runs that begin with the first launch
  const double* best;          ///< [launches x groups of all kinds]: least value before a launch
  std::int64_t first_step;     ///< launch that `best` begins with
  const double* into;          ///< [kinds x padded clocks], added; infinite behind the clocks
  const std::uint32_t* group;  ///< [kinds x padded clocks], place in a row of `best`
  std::size_t clocks;          ///< padded
  std::int64_t kinds;
  std::size_t groups;

  /// Changes are all alike: only `best` differs from one launch to another.
  [[nodiscard]] bool alike() const { return groups == 1; }

  /// The beginning of a run.
  struct Begin {
    double value;
    std::int64_t label;  ///< first launch and kind of change as one number: step * kinds + kind
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

/// The best of the runs that are long enough, and the starts of those that are not yet. Starts wait
/// in line. The clocks of a vector share a line: a start leaves it when its run is long enough at
/// all of them.
struct WaitingRows {
  OpenRows ready;
  std::int64_t* waiting;  ///< first start that waits; equal in a vector
  double* waiting_s;      ///< time of the launches since that start
  double* waiting_cost;   ///< cost of the launches since that start
  double least_s;         ///< length of a run that is long enough, > 0
};

/// The loops for one instruction set. Each goes over one launch at all clocks. It returns the least
/// value of a run that ends with the launch, `ended` of its clock added.
struct ClockLoops {
  std::string_view name;  ///< "avx512", "avx2", "baseline"

  /// For runs of any length, where changes are all alike. At each clock the run goes on, or one
  /// begins here if that costs less.
  LeastValue (*any_length)(const OpenRows& open, const LaunchList& launches,
                           const RunBegins& begins, std::int64_t step, const double* ended);

  /// For runs that may end only once they are long enough.
  LeastValue (*some_length)(const WaitingRows& waiting, const LaunchList& launches,
                            const RunBegins& begins, std::int64_t step, const double* ended);
};

/// The loops that this machine can run, those of the slowest instruction set first.
[[nodiscard]] std::span<const ClockLoops> clock_loops();

}  // namespace rubato
