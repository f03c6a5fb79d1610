#pragma once
// Which stored plan a user means, and which others of its question belong beside it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/results/store.hpp"
#include "models/gpu/spec.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// No plan ends in the time that it was asked for.
class NoPlanError : public Error {
 public:
  NoPlanError(const std::string& what, ErrorDetail detail)
      : Error(ExitStatus::no_plan, what, std::move(detail)) {}
};

/// A run in a result database.
struct StoredRun {
  std::int64_t id = 0;
  std::string kind = "trace";  ///< or "capture", "pipeline"

  [[nodiscard]] bool captured() const { return kind == "capture"; }
};

/// @param name  "latest" (that somebody asked for, not of an experiment) or a number
/// @throws UsageError if there is no such run
[[nodiscard]] StoredRun find_stored_run(const ResultStore& store, std::string_view name);

/// Power of the rest of the node that a run's energies include, W per GPU; 0: they are the GPUs'.
[[nodiscard]] double stored_host_power_w(const ResultStore& store, std::int64_t run_id);

/// The GPU spec that a run was planned with; nothing: a pipeline's profile names none.
[[nodiscard]] std::optional<GpuSpec> stored_spec(const ResultStore& store, std::int64_t run_id);

/// SQL of the plans of a run (?) with what makes them contenders: rows for stored_contender().
inline constexpr std::string_view contenders_sql =
    "SELECT plan_id, want, default_in_time, in_time, objective_frac, applicable, fitted, clocks, "
    "clock_changes, coalesce(slack_pct, 0.0) / 100, granularity, aggregation, comm_sms, "
    "odds_in_time_pct / 100, odds_pct / 100, "
    "CASE WHEN goal LIKE '%_waste' OR goal = 'straggler' THEN energy_change_low_pct END, "
    "applied_energy_change_pct, energy_change_high_pct FROM plans WHERE run_id = ? "
    "ORDER BY plan_id";
[[nodiscard]] Contender stored_contender(const std::vector<SqlValue>& row);

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
[[nodiscard]] PlanChoice choose_plans(const ResultStore& store, std::int64_t run_id,
                                      std::string_view granularity, std::string_view goal,
                                      std::optional<std::int64_t> plan_id);

/// A run at its default clocks, which changes are against; all its GPUs together.
struct StoredBaseline {
  double time_s = 0.0;
  double energy_j = 0.0;      ///< with the rest of the node, where that is counted
  double gpus = 1.0;          ///< number of GPUs in energy_j
  double host_power_w = 0.0;  ///< of the rest of the node in energy_j, for each GPU

  /// Energy of the GPUs alone.
  [[nodiscard]] double boards_j() const { return energy_j - gpus * host_power_w * time_s; }
};

/// What changes of clock take, as the run was asked for it. @param run_id  one that there is
[[nodiscard]] SwitchModel stored_switching(const ResultStore& store, std::int64_t run_id);

/// @param run_id  one that there is
[[nodiscard]] StoredBaseline stored_baseline(const ResultStore& store, std::int64_t run_id);

/// A plan's change of energy without the rest of the node, which is what energy counters of the
/// boards will show. Both ends of its interval are taken at the plan's own time.
[[nodiscard]] StoredChange change_of_boards(const PlanCandidate& plan,
                                            const StoredBaseline& baseline);

/// Which units of experiments to choose from, and in which order.
struct UnitOrder {
  std::string experiment_id = {};                     ///< empty: all of the database
  std::string_view expression = "energy_change_pct";  ///< SQL over v_plans, least first
  std::optional<double> most_time_pct = {};           ///< units whose time changes by at most this
};

/// Condition on a row of v_plans: units of experiments, or all plans of a database that has none.
/// ?1 is UnitOrder::experiment_id, ?2 most_time_pct or NULL.
inline constexpr std::string_view unit_condition =
    "(question_hash NOT NULL OR ?1 = '' AND NOT EXISTS (SELECT 1 FROM plans WHERE question_hash "
    "NOT "
    "NULL)) AND (?1 = '' OR plan_id IN (SELECT plan_id FROM experiment_plans WHERE "
    "experiment_id = ?1)) AND (?2 IS NULL OR time_change_pct <= ?2)";

/// The plan_id of the first unit in that order that is the answer of its setting; nothing where
/// each setting keeps the default clocks, or has no plan in time.
[[nodiscard]] std::optional<std::int64_t> best_unit(const ResultStore& store,
                                                    const UnitOrder& order);

/// A stretch of a GPU with one clock, as a plan sets it (view v_segments).
struct StoredSegment {
  std::string pass, clock;  ///< clock by label
  std::int64_t launches = 0;
  double time_s = 0.0, energy_j = 0.0;
  std::string first_kernel;
  std::int64_t first_index = 0;
};

/// What a plan of a captured run asks of one GPU, in order: in every step the same.
/// @return empty if the plan does not have the GPU
[[nodiscard]] std::vector<StoredSegment> stored_segments(const ResultStore& store,
                                                         std::int64_t plan_id, std::int64_t rank,
                                                         std::int64_t device);

/// Values of a query whose column is known to hold that type; real() also takes whole numbers.
[[nodiscard]] std::int64_t whole(const SqlValue& value);
[[nodiscard]] const std::string& text(const SqlValue& value);
[[nodiscard]] double real(const SqlValue& value);
/// Nothing for NULL.
[[nodiscard]] std::optional<double> real_or_none(const SqlValue& value);

}  // namespace rubato
