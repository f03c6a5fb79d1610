#pragma once
// Wall time, and searches that end early: after a time, or at a gap that is small enough.

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "common/run_context.hpp"
#include "explorer/exploration.hpp"

namespace rubato {

/// Wall time since then.
[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// When searches may end before their answers are proven. Bounds hold whenever they end.
struct SearchLimits {
  std::optional<double> time_s = {};  ///< of all questions together, > 0
  double gap_frac = 0.0;  ///< of automatic: (energy - bound) / energy that is good enough, >= 0
};

/// A context whose searches stop when a time is over, or when the one it is made from is stopped.
class TimeLimit {
 public:
  /// @param time_s  > 0; nothing: no limit
  /// @param outer   must outlive this
  TimeLimit(std::optional<double> time_s, const RunContext& outer);
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  [[nodiscard]] const RunContext& context() const noexcept { return context_; }

 private:
  std::atomic<bool> stop_ = false;
  RunContext context_;
  std::jthread watcher_;  // ends before what it writes to
};

/// As explore(), within limits. Each question is answered, at worst with the first plan that its
/// search finds. Such an answer has status `time_limit`.
[[nodiscard]] Exploration explore(const ExplorationInput& input, const SearchLimits& limits,
                                  const RunContext& context);

}  // namespace rubato
