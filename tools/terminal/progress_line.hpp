#pragma once
// A progress line on a terminal: done of total, rate, time left, best so far.

#include <chrono>
#include <optional>
#include <string>

#include "common/run_context.hpp"

namespace rubato {

/// "45 s", "12 min", "3.5 h".
[[nodiscard]] std::string duration_text(double time_s);

/// Writes a line to standard error in place of a progress line that may stand there.
void print_message(const std::string& line);

/// Rewrites one line on standard error a few times a second, and only after the first second; does
/// nothing if standard error is no terminal, unless RUBATO_PROGRESS is set: the Python package
/// shows it in notebooks.
class ProgressLine {
 public:
  explicit ProgressLine(std::chrono::milliseconds first_after = std::chrono::seconds(1));
  ~ProgressLine();  ///< clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const ProgressUpdate& update);

 private:
  using Clock = std::chrono::steady_clock;

  bool is_shown_;
  std::chrono::milliseconds first_after_;
  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> last_;  // of a line that was shown
};

}  // namespace rubato
