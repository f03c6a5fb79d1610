#pragma once
// The launches of an iteration as a search over clocks sees them: each launch names a row of a
// table of costs, and each kind of change between two clocks has its price.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/gpu/clock_pair.hpp"
#include "models/table/profile_table.hpp"
#include "sim/plan.hpp"
#include "sim/switch_model.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// What a search needs to know of one iteration, which repeats for ever (steady state).
struct SwitchingProblem {
  const Trace& trace;
  const ProfileTable& per_launch;        ///< [kernels x clocks]
  std::span<const ClockPair> clocks;     ///< shape [clocks]
  std::span<const double> idle_power_w;  ///< shape [clocks]
  SwitchModel switching;
  double budget_s = 0.0;  ///< time of the iteration, changes included
};

/// Changes with the same latency: all changes; or those of the core clock alone, of the memory
/// clock alone, or of both.
struct ChangeKind {
  /// Before such a change, launches have run at one clock for at least this long: the dwell after
  /// the change before, then the lead of this one. That holds for the first run of an iteration
  /// too, so that a request is issued in the iteration of its launch.
  double least_run_s = 0.0;
  /// Shape [clocks]. A change of this kind leads from one clock of a group to another one of the
  /// same group. For example, a change of the core clock alone stays at its memory clock.
  std::vector<std::uint32_t> group_of_clock;
  std::uint32_t groups = 1;
  std::vector<Cost> into;  ///< shape [clocks]: stall and energy of a change to this clock
};

/// Launches that are repeated as a whole.
struct LaunchBlock {
  std::size_t launches = 0;  ///< of one repeat
  std::size_t repeats = 1;
};

/// The launches of an iteration in order, repeats expanded. Each is told by its row in the table.
class LaunchSequence {
 public:
  explicit LaunchSequence(const SwitchingProblem& problem);

  [[nodiscard]] const SwitchingProblem& problem() const noexcept { return *problem_; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  [[nodiscard]] std::size_t clocks() const noexcept { return problem_->per_launch.clocks(); }
  [[nodiscard]] std::span<const std::uint32_t> rows() const noexcept { return rows_; }
  /// The same launches, cut into blocks.
  [[nodiscard]] std::span<const LaunchBlock> blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::span<const ChangeKind> kinds() const noexcept { return kinds_; }
  /// Position in kinds() of a change between two different clocks, and the kind itself.
  [[nodiscard]] std::size_t kind_position(std::size_t from, std::size_t to) const;
  [[nodiscard]] const ChangeKind& kind(std::size_t from, std::size_t to) const {
    return kinds_[kind_position(from, to)];
  }
  [[nodiscard]] Cost launch(std::size_t position, std::size_t clock) const {
    return problem_->per_launch.cost(rows_[position], ClockId{static_cast<std::uint32_t>(clock)});
  }

 private:
  const SwitchingProblem* problem_;
  std::vector<std::uint32_t> rows_;
  std::vector<LaunchBlock> blocks_;
  std::vector<ChangeKind> kinds_;  ///< one, or: core clock, memory clock, both
};

/// Successive launches at one clock.
struct ClockRun {
  std::uint32_t clock = 0;
  std::size_t launches = 0;  ///< > 0

  friend bool operator==(const ClockRun&, const ClockRun&) = default;
};

/// Time and energy of one iteration in steady state, changes included.
/// @param runs  cover the launches in order; neighbours have different clocks
/// @return nothing if a run before a change is too short for it
[[nodiscard]] std::optional<Cost> iteration_cost(const LaunchSequence& sequence,
                                                 std::span<const ClockRun> runs);

/// Launches that follow each other at the same clock, joined. @param clocks  shape [launches]
[[nodiscard]] std::vector<ClockRun> runs_of(std::span<const std::uint32_t> clocks);
[[nodiscard]] std::vector<ClockRun> runs_of(const Trace& trace, const Plan& plan);

/// A plan with these clocks. Its segments are those of the trace, cut where a repeat runs at other
/// clocks than the repeat before.
[[nodiscard]] Plan plan_of_runs(const Trace& trace, std::span<const ClockRun> runs);

}  // namespace rubato
