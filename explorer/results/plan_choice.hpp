#pragma once
// Which stored plan a user means, and which others of its question belong beside it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// No plan ends in the time that it was asked for.
class NoPlanError : public Error {
 public:
  NoPlanError(const std::string& what, ErrorDetail detail)
      : Error(ExitStatus::no_plan, what, std::move(detail)) {}
};

/// A run in a result database: of a trace (table runs) or captured (graph_runs).
struct StoredRun {
  bool captured = false;
  std::int64_t id = 0;
};

/// @param name  "latest" (that somebody asked for, not of an experiment), a number, or "run:N" and
/// "graph:N" where both kinds have N
/// @throws UsageError if there is no such run, or there are two
[[nodiscard]] StoredRun find_stored_run(const ResultStore& store, std::string_view name);

/// Power of the rest of the node that a run's energies include, W per GPU; 0: they are the GPUs'.
[[nodiscard]] double stored_host_power_w(const ResultStore& store, StoredRun run);

/// A change against the default clocks as a fraction, with its interval where one was worked out.
struct StoredChange {
  double value = 0.0;
  std::optional<double> low, high;
};

/// A plan that was found, as the tables know it.
struct PlanCandidate {
  std::int64_t id = 0;
  std::string granularity, goal, aggregation;
  double slack_frac = 0.0;
  double time_s = 0.0, energy_j = 0.0;  ///< by the simulator
  /// Include what changes of clock take, where that is known. time_s and energy_j are as planned:
  /// the plan may have taken changes of clock to be free.
  StoredChange time_change, energy_change;
  bool in_time = true;  ///< within its slack with those changes

  /// @throws NoPlanError if it is not
  void require_in_time() const;
  std::optional<double> lower_bound_j;  ///< where the goal is energy
  std::optional<double> gap_frac;
  std::optional<std::int64_t> clock_changes;
  std::optional<double> comm_sms;  ///< of collectives beside compute; nothing: as captured
};

/// The chosen plan and those of its run, goal and aggregation that may stand in for it.
struct PlanChoice {
  std::vector<PlanCandidate> plans;  ///< the chosen one, then coarser ones in time, finest first
  /// In time, of its granularity with more slack, least slack first.
  std::vector<PlanCandidate> slower;
};

/// @param granularity, goal  empty: any; goals as they are stored or asked for ("cost")
/// The answer among the plans that fit (plan/answer.hpp): of all plans of a run the one it is known
/// by.
/// @return the chosen plan and those beside it
/// @throws UsageError if no plan fits; NoPlanError if none that fits is in time and applicable, or
///         the default clocks are the answer, unless a plan is named by its id
[[nodiscard]] PlanChoice choose_plans(const ResultStore& store, StoredRun run,
                                      std::string_view granularity, std::string_view goal,
                                      std::optional<std::int64_t> plan_id);

/// A run at its default clocks, which changes are against; of a captured run all GPUs together.
struct StoredBaseline {
  double time_s = 0.0;
  double energy_j = 0.0;      ///< with the rest of the node, where that is counted
  double gpus = 1.0;          ///< number of GPUs in energy_j
  double host_power_w = 0.0;  ///< of the rest of the node in energy_j, for each GPU

  /// Energy of the GPUs alone.
  [[nodiscard]] double boards_j() const { return energy_j - gpus * host_power_w * time_s; }
};

/// @param run  one that there is
[[nodiscard]] StoredBaseline stored_baseline(const ResultStore& store, StoredRun run);

/// A plan's change of energy without the rest of the node, which is what energy counters of the
/// boards will show. Both ends of its interval are taken at the plan's own time.
[[nodiscard]] StoredChange change_of_boards(const PlanCandidate& plan,
                                            const StoredBaseline& baseline);

/// Values of a query whose column is known to hold that type; real() also takes whole numbers.
[[nodiscard]] std::int64_t whole(const SqlValue& value);
[[nodiscard]] const std::string& text(const SqlValue& value);
[[nodiscard]] double real(const SqlValue& value);

}  // namespace rubato
