#pragma once
// Runs of launches at one clock that are long enough to end, for all clocks at once.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rubato {

/// For each clock the best of the runs that began long enough ago, as launches go by. A start
/// counts from the launch on with which its run reaches the least length at that clock. Starts wait
/// as rows over all clocks, so that a launch is a few loops over vectors and nothing is looked up
/// launch by launch; they are forgotten when they count at every clock.
class DwellWindow {
 public:
  /// @param least_s  length of the shortest run, > 0
  /// @param values   to begin with, shape [clocks]; infinity: there is no run yet
  DwellWindow(double least_s, std::vector<double> values);

  /// A launch, the first one of a run that may begin here.
  /// @param step      one more than at the call before
  /// @param begun     value with which such a run begins, shape [clocks]
  /// @param times_s   of the launch at each clock, shape [clocks]
  /// @param costs     added to every run, shape [clocks]
  void step(std::int64_t step, std::span<const double> begun, std::span<const double> times_s,
            std::span<const double> costs);

  /// Adds the value of every clock to `sums`, shape [clocks].
  void add_values(std::span<double> sums) const;
  /// Of the best run, costs included; infinity if none is long enough.
  [[nodiscard]] double value(std::size_t clock) const { return value_[clock] + total_cost_[clock]; }
  /// Where it began; 0 if none has.
  [[nodiscard]] std::int64_t start(std::size_t clock) const { return start_[clock]; }

  /// Bytes of the starts that wait, about, if launches take `mean_s` on average.
  [[nodiscard]] static double memory_bytes(double least_s, double mean_s, std::size_t clocks);

 private:
  [[nodiscard]] double* begin_s(std::int64_t step) { return waiting_.data() + slot(step); }
  [[nodiscard]] double* worth(std::int64_t step) {
    return waiting_.data() + slot(step) + value_.size();
  }
  [[nodiscard]] std::size_t slot(std::int64_t step) const {
    return static_cast<std::size_t>(step) % capacity_ * 2 * value_.size();
  }
  void make_room(std::int64_t step);
  void restart_sums(std::int64_t step);

  // Times and costs are sums from a common moment, so that those of a run are differences.
  double least_s_;
  std::vector<double> value_;  ///< less total_cost_
  std::vector<std::int64_t> start_;
  std::vector<double> total_s_, total_cost_;
  std::vector<double> waiting_;  ///< [capacity x {total_s before, value less total_cost} x clocks]
  std::size_t capacity_ = 0;     ///< starts
  std::int64_t oldest_ = 0;      ///< start that some clock waits for
  std::vector<std::int64_t> oldest_of_;  ///< of each band of clocks
};

}  // namespace rubato
