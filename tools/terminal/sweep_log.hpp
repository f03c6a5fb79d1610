#pragma once
// What a sweep tells while it runs: a live line, text lines, JSON lines.

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/experiments/sweep.hpp"

namespace rubato {

struct SweepLogOptions {
  std::string json_file;  ///< JSON lines are appended; "-" is standard error, "" none
  bool verbose = false;   ///< a text line per unit on standard error
};

/// Watches one sweep. While it lives, the first Ctrl-C is answered with the units in flight.
class SweepLog {
 public:
  /// @throws IoError if the file cannot be opened
  SweepLog(const SweepPlan& plan, const SweepLogOptions& options, const RunContext& context);
  ~SweepLog();
  SweepLog(const SweepLog&) = delete;
  SweepLog& operator=(const SweepLog&) = delete;

  void begin(std::size_t total, std::size_t already_finished, double estimated_s);
  [[nodiscard]] SweepObserver observer();
  void end(const SweepSummary& summary);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept;
  };

  void unit_started(const Unit& unit);
  void unit_done(const SweepProgress& progress);
  void write_json(const std::string& line);
  void watch(const std::stop_token& stop);

  const SweepPlan& plan_;
  const RunContext& context_;
  bool verbose_;
  std::unique_ptr<std::FILE, CloseFile> json_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double finished_estimated_s_ = 0.0;
  std::optional<double> best_pct_;
  std::mutex mutex_;  // guards in_flight_, which the watcher reads
  std::vector<const Unit*> in_flight_;
  std::jthread watcher_;  // last: it uses the members above
};

}  // namespace rubato
