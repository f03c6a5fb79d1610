#include "explorer/limited_exploration.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace rubato {

TimeLimit::TimeLimit(std::optional<double> time_s, const RunContext& outer) : context_(outer) {
  if (!time_s) return;
  using Clock = std::chrono::steady_clock;
  constexpr double longest_s = 1e8;  // of a clock that counts nanoseconds
  static constexpr std::chrono::milliseconds look_again(20);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(std::min(*time_s, longest_s)));
  context_.cancelled = &stop_;
  watcher_ = std::jthread([this, end, &outer](const std::stop_token& done) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!done.stop_requested() && !outer.stop_requested() && Clock::now() < end)
      wake.wait_until(lock, done, std::min(end, Clock::now() + look_again), [] { return false; });
    stop_ = !done.stop_requested();
  });
}

}  // namespace rubato
