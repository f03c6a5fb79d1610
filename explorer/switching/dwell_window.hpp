#pragma once
// Runs of launches at one clock that are long enough to end, for all clocks at once.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "explorer/switching/clock_loops.hpp"

namespace rubato {

/// For each clock the best of the runs that began long enough ago, as launches go by. A start
/// counts from the launch on with which its run reaches the least length at that clock. Starts wait
/// as rows over all clocks, so that a launch is a few loops over vectors and nothing is looked up
/// launch by launch; they are forgotten when they count at every clock.
class DwellWindow {
 public:
  /// @param least_s  length of the shortest run, > 0
  /// @param values   to begin with, shape [padded clocks]; infinity: there is no run yet
  DwellWindow(double least_s, std::vector<double> values,
              const ClockLoops& loops = clock_loops().back());

  /// @param launch  its step one more than at the call before
  /// @return        the least of what ended runs are worth
  LeastValue step(const LaunchRows& launch);

  /// Of the best run, costs included; infinity if none is long enough.
  [[nodiscard]] double value(std::size_t clock) const { return value_[clock] + total_cost_[clock]; }
  /// Where it began; 0 if none has.
  [[nodiscard]] std::int64_t start(std::size_t clock) const { return start_[clock]; }

  /// The same for runs of any length. @param value, start  shape [padded clocks]
  void open_runs(std::span<double> value, std::span<std::int64_t> start);

  /// Bytes of the starts that wait, about, if launches take `mean_s` on average.
  [[nodiscard]] static double memory_bytes(double least_s, double mean_s, std::size_t clocks);

 private:
  [[nodiscard]] WaitingRows rows();
  void make_room();
  void restart_sums();

  const ClockLoops* loops_;
  double least_s_;
  std::int64_t next_ = 0;      ///< step
  std::vector<double> value_;  ///< less total_cost_
  std::vector<std::int64_t> start_;
  std::vector<double> total_s_, total_cost_;
  std::vector<double> waiting_;
  std::size_t capacity_ = 0;             ///< starts
  std::int64_t oldest_ = 0;              ///< start that some clock waits for
  std::vector<std::int64_t> oldest_of_;  ///< of each band of clocks
};

}  // namespace rubato
