#pragma once
// Runs the units of a sweep in parallel and stores each as it is finished.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/experiments/sweep_plan.hpp"
#include "explorer/experiments/sweep_store.hpp"

namespace rubato {

/// What became of a unit.
enum class UnitOutcome {
  finished,
  failed,           ///< its input cannot be explored; a later run tries again
  stored_elsewhere  ///< another process stored it meanwhile
};

[[nodiscard]] std::string_view name_of(UnitOutcome value) noexcept;

/// What a finished unit came to.
struct UnitAnswer {
  SolveStatus status = SolveStatus::infeasible;
  /// Against the default clocks. Of a captured run changes of clock are counted, so that nothing is
  /// known where their cost is not.
  std::optional<double> time_change_pct, energy_change_pct;  ///< as stored; nothing if infeasible
  bool in_time = true;       ///< of captured runs: the plan keeps its slack as it is played
  double wall_time_s = 0.0;  ///< of its exploration, over the number of units explored together
};

/// State of a sweep after a unit.
struct SweepProgress {
  const Unit* unit = nullptr;
  UnitOutcome outcome = UnitOutcome::finished;
  std::optional<UnitAnswer> answer = {};  ///< nothing if failed or stored elsewhere before
  std::string error = {};                 ///< of a failed unit
  std::size_t done = 0;                   ///< units of this run so far, whatever their outcome
  std::size_t total = 0;
  double estimated_left_s = 0.0;  ///< on one core, not multiplied by SweepStore::estimate_scale()
};

/// Called from one thread at a time.
struct SweepObserver {
  std::function<void(const Unit&)> started = {};
  std::function<void(const SweepProgress&)> done = {};
};

struct SweepSummary {
  std::size_t finished = 0, failed = 0, stored_elsewhere = 0;
  std::size_t not_started = 0;  ///< Ctrl-C came first
  [[nodiscard]] bool interrupted() const noexcept { return not_started > 0; }
};

struct SweepRunOptions {
  std::size_t threads = 0;  ///< 0: one per core
  std::string command = {};
};

/// Runs `units` (positions in the plan) in batches, those with the longest estimate first. A batch
/// is one unit, or a few of one setting of a trace, which share its table, its models and one
/// transaction. After Ctrl-C no batch is started; those in flight are finished and stored. A unit
/// that cannot be explored is counted and left out.
/// @throws IoError if the database cannot be written; units stored before stay
SweepSummary run_sweep(const SweepPlan& plan, std::vector<std::size_t> units, SweepStore& store,
                       const SweepRunOptions& options, const SweepObserver& observer,
                       const RunContext& context);

/// What a unit of a trace explores.
[[nodiscard]] ExplorationInput exploration_input(const SweepPlan& plan, const Unit& unit);

/// What a unit of a captured run explores.
[[nodiscard]] GraphExplorationInput graph_exploration_input(const SweepPlan& plan,
                                                            const Unit& unit);

/// "gpt3-xl-b40-s1024-tp1-dp1 on rtx-3080-ti, 350 W, kernel, global, strict_waste +2 %"; printable.
[[nodiscard]] std::string unit_label(const SweepPlan& plan, const Unit& unit);

}  // namespace rubato
