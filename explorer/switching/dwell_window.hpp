#pragma once
// Runs of launches at one clock that are long enough to end, for all clocks at once. A run has to
// last for the dwell time after the change before it, and for the lead of the change after it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "explorer/switching/clock_loops.hpp"

namespace rubato {

/// A sliding window over the starts of runs. As launches go by, it has for each clock the best of
/// the runs that are long enough. A start counts from the launch on with which its run reaches the
/// least length at that clock. Each launch is one loop over vectors of clocks, whatever the kinds
/// of change.
class DwellWindow {
 public:
  /// @param least_s  length of the shortest run, > 0
  /// @param values   to begin with, shape [padded clocks]; infinity: there is no run yet
  DwellWindow(double least_s, std::vector<double> values,
              const ClockLoops& loops = clock_loops().back());

  /// @param step    one more than at the call before
  /// @param begins  of all launches from oldest() to this one
  /// @return        the least value of a run that ends with this launch
  LeastValue step(const LaunchList& launches, const RunBegins& begins, std::int64_t step,
                  const double* ended);

  /// Value of the best run, its launches included; infinity if none is long enough.
  [[nodiscard]] double value(std::size_t clock) const { return value_[clock]; }
  /// RunBegins label of the best run; 0 if none is long enough.
  [[nodiscard]] std::int64_t begin(std::size_t clock) const { return begin_[clock]; }
  /// The first start that still waits at some clock.
  [[nodiscard]] std::int64_t oldest() const { return std::ranges::min(waiting_); }

  /// Values and labels of the best runs of any length, those that wait included.
  /// @param value, begin  filled, shape [padded clocks]
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
  const ClockLoops* loops_;
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
