#pragma once
// Runs of launches at one clock that are long enough to end, for all clocks at once. A run has to
// last for the dwell time after the change before it, and for the lead of the change after it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace rubato {

/// The least of some values and the first clock that has it.
struct LeastValue {
  double value = std::numeric_limits<double>::infinity();
  std::size_t clock = 0;
};

/// Launches in order. Rows have shape [clocks].
struct LaunchList {
  const std::uint32_t* first;  ///< row of the first launch
  const double* costs;         ///< rows: priced launches, added to every run
  const double* times_s;       ///< rows: times of launches
  std::size_t clocks;

  [[nodiscard]] std::size_t row(std::int64_t step) const { return first[step] * clocks; }
};

/// The least cost of all that comes before a run, for runs that begin with each launch: earlier
/// runs, and the change into this one. Changes are of one or several kinds. Each kind has the
/// clocks in groups of its own (ChangeKind).
struct RunBegins {
  const double* initial;       ///< shape [clocks], of runs that begin with the first launch
  const double* best;          ///< [launches x groups of all kinds]: least value before a launch
  std::int64_t first_step;     ///< launch that `best` begins with
  const double* into;          ///< [kinds x clocks], added
  const std::uint32_t* group;  ///< [kinds x clocks], place in a row of `best`
  std::size_t clocks;
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

/// A sliding window over the starts of runs. As launches go by, it has for each clock the best of
/// the runs that are long enough. A start counts from the launch on with which its run reaches the
/// least length at that clock.
class DwellWindow {
 public:
  /// @param least_s  length of the shortest run, > 0
  /// @param values   to begin with, shape [clocks]; infinity: there is no run yet
  DwellWindow(double least_s, std::vector<double> values);

  /// @param step    one more than at the call before
  /// @param begins  of all launches from oldest() to this one
  /// @return        the least value of a run that ends with this launch
  LeastValue step(const LaunchList& launches, const RunBegins& begins, std::int64_t step);

  /// Value of the best run, its launches included; infinity if none is long enough.
  [[nodiscard]] double value(std::size_t clock) const { return value_[clock]; }
  /// RunBegins label of the best run; 0 if none is long enough.
  [[nodiscard]] std::int64_t begin(std::size_t clock) const { return begin_[clock]; }
  /// The first start that still waits at some clock.
  [[nodiscard]] std::int64_t oldest() const { return std::ranges::min(waiting_); }

  /// Values and labels of the best runs of any length, those that wait included.
  /// @param value, begin  filled, shape [clocks]
  void open_runs(const LaunchList& launches, const RunBegins& begins, std::int64_t steps,
                 std::span<double> value, std::span<std::int64_t> begin) const;

  /// Whether all is as it was in `before`, but later by `later` launches and dearer by a constant.
  /// Then the launches in between have the same effect when they come again.
  /// @param steps  launches gone by
  /// @param apart  of two values, whether they differ by the constant or are both infinite
  template <class Apart>
  [[nodiscard]] bool repeats(const DwellWindow& before, const LaunchList& launches,
                             const RunBegins& begins_before, const RunBegins& begins,
                             std::int64_t steps, std::int64_t later, const Apart& apart) const;
  /// Goes over `launches` that are such repeats, and cost `cost` together, at once.
  /// @param before  as for repeats()
  void skip(const DwellWindow& before, std::int64_t launches, std::int64_t kinds, double cost);

 private:
  template <bool alike>
  LeastValue step_of(const LaunchList& launches, const RunBegins& begins, std::int64_t step);

  double least_s_;
  std::vector<double> value_;
  std::vector<std::int64_t> begin_;
  std::vector<std::int64_t> waiting_;
  std::vector<double> waiting_s_, waiting_cost_;
};

/// Whether label `now` is that of the same run as label `before`, or of a run that begins `later`
/// launches after it with the same kind of change.
[[nodiscard]] inline bool label_repeats(std::int64_t before, std::int64_t now, std::int64_t kinds,
                                        std::int64_t later) {
  return now == before || now == before + kinds * later;
}

template <class Apart>
bool DwellWindow::repeats(const DwellWindow& before, const LaunchList& launches,
                          const RunBegins& begins_before, const RunBegins& begins,
                          std::int64_t steps, std::int64_t later, const Apart& apart) const {
  for (std::size_t c = 0; c < value_.size(); ++c) {
    // The first start that waits has to move on by a repeat too.
    if (!apart(before.value_[c], value_[c]) || waiting_[c] != before.waiting_[c] + later ||
        !label_repeats(before.begin_[c], begin_[c], begins.kinds, later))
      return false;
    for (std::int64_t start = waiting_[c]; start < steps; ++start) {
      // The starts that waited in `before` may lie in front of what repeats.
      if (launches.row(start - later) != launches.row(start) ||
          !apart(begins_before.at(start - later, c).value, begins.at(start, c).value))
        return false;
    }
  }
  return true;
}

}  // namespace rubato
