#pragma once
// What long-running library code gets from its caller: where to report
// progress, and whether the user asked to stop. Library code never prints.

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace rubato {

/// State of a long computation, for a progress line.
struct ProgressUpdate {
  std::size_t done = 0;
  std::size_t total = 0;              ///< 0 if not known
  std::string note = {};              ///< e.g. best so far and its gap
  std::optional<double> left_s = {};  ///< time left where the caller knows better than by count
};

/// Passed down by reference; the members may be empty.
struct RunContext {
  std::function<void(const ProgressUpdate&)> progress = {};  ///< called from one thread at a time
  const std::atomic<bool>* cancelled = nullptr;  ///< set by Ctrl-C; work then ends early
  std::string command_line = {};                 ///< for the provenance of results

  void report(const ProgressUpdate& update) const {
    if (progress) progress(update);
  }
  [[nodiscard]] bool stop_requested() const noexcept {
    return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
  }
};

}  // namespace rubato
