#pragma once
// One sweep of the dynamic program over launches.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "explorer/switching/dwell_window.hpp"
#include "explorer/switching/launch_dp.hpp"

namespace rubato {

/// Where the best run that ends with a launch begins.
struct RunStart {
  std::uint32_t step = 0;
  std::uint16_t clock = 0;
  std::uint16_t kind = 0;  ///< of the change it began with
};

/// A dynamic program whose states are clocks. After each step (launch) it has the least value per
/// clock, over all ways to change clocks before.
class ClockSweep {
 public:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  /// @param first_of_any_length  the first run may be shorter than changes allow
  ClockSweep(const PricedSequence& priced, bool first_of_any_length);

  /// All launches. A repeat of a block that only does again what the repeat before did is not gone
  /// through: all further ones are added at once.
  void run_to_end();

  /// Least value with the last run at this clock and still open: it may have any length.
  [[nodiscard]] double open(std::size_t clock) const { return open_[clock]; }

  /// The runs behind open(clock), after the last step.
  [[nodiscard]] std::vector<ClockRun> open_runs(std::size_t clock) const;

 private:
  // All that the next steps depend on, to be compared with itself one repeat later.
  struct State {
    std::size_t step = 0;
    double base = 0.0;
    std::vector<double> open;
    std::vector<std::int64_t> open_begin;
    std::vector<DwellWindow> windows;
    std::vector<double> best;
    std::size_t first_best_step = 0;
  };
  // Steps that were not gone through. Each is like the step a whole number of repeats before it.
  struct Skip {
    std::size_t first = 0;  ///< step
    std::size_t steps = 0;
    std::size_t block = 0;         ///< steps of a repeat
    std::size_t first_winner = 0;  ///< in winners_, of the repeat before
    std::vector<bool> same_start;  ///< [block x groups]: the run began where it did a repeat before
  };

  [[nodiscard]] State state() const;
  [[nodiscard]] double base() const;
  [[nodiscard]] bool repeats(const State& before, std::size_t block) const;
  [[nodiscard]] bool winners_repeat(std::size_t block, std::vector<bool>& same_start) const;
  void step();
  void skip(const State& before, std::size_t block, std::size_t count);
  [[nodiscard]] RunStart winner(std::size_t step, std::size_t group) const;

  void read_kinds(bool first_of_any_length);
  void choose_best_before();
  void choose_best_of_groups();
  void go_on_or_begin();
  void forget_old_starts();
  [[nodiscard]] RunBegins begins() const { return begins(best_, first_best_step_); }
  [[nodiscard]] RunBegins begins(std::span<const double> best, std::size_t first_step) const;
  [[nodiscard]] LaunchList launches() const;
  [[nodiscard]] RunStart run_start(std::int64_t label, std::size_t clock) const;
  [[nodiscard]] const DwellWindow* window_of(std::size_t kind) const {
    return windows_.empty() ? nullptr : &windows_[window_of_kind_[kind]];
  }
  [[nodiscard]] std::vector<ClockRun> trace_back(RunStart last) const;

  const PricedSequence& priced_;
  std::size_t clocks_, size_, kinds_;
  bool alike_ = false;       ///< all changes are: one run is the best before a step for all clocks
  bool follow_open_ = true;  ///< open_ is needed before the end
  std::size_t step_ = 0;
  std::size_t groups_ = 0;            ///< of all kinds
  std::vector<std::uint32_t> group_;  ///< [kinds x clocks] place in a row of best_
  std::vector<double> initial_;       ///< shape [clocks]: 0
  std::vector<double> open_;
  std::vector<std::int64_t> open_begin_;  ///< RunBegins labels
  std::vector<DwellWindow> windows_;      ///< none if runs may have any length
  std::vector<std::size_t> window_of_kind_;
  LeastValue least_;                 ///< of a run that ended, if alike_; infinite before any step
  std::vector<double> best_;         ///< [steps kept x groups] least value to change clocks from
  std::size_t first_best_step_ = 0;  ///< first step kept in best_
  std::vector<RunStart> winners_;    ///< [steps gone through x groups] the runs behind best_
  std::vector<Skip> skips_;
};

}  // namespace rubato
