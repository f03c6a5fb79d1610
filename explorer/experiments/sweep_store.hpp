#pragma once
// The part of a result database that a sweep writes: finished units, which are plans. Units that
// were explored together share a transaction.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/sqlite.hpp"
#include "explorer/experiments/sweep_plan.hpp"
#include "explorer/graph/exploration.hpp"
#include "explorer/results/run_writer.hpp"

namespace rubato {

/// Units of one setting that were explored, as rows.
struct AnsweredUnits {
  std::vector<const Unit*> units;
  std::optional<RunRows> run;            ///< nothing: it was stored before
  std::vector<PlanRows> plans;           ///< shape [units]
  std::vector<StoredFrontPoint> fronts;  ///< may be empty where they are stored
  double wall_time_s = 0.0;              ///< of each unit
};

/// The run of a setting, with the values of its axes.
[[nodiscard]] RunRows setting_rows(const Setting& setting, const ExplorationInput& input,
                                   const Exploration& found);
[[nodiscard]] RunRows setting_rows(const Setting& setting, const GraphExploration& found,
                                   const std::string& command);

/// Per object one thread at a time may write, and beside it one may ask is_finished(), has_run() or
/// has_front(). Several processes may have the same file open.
class SweepStore {
 public:
  /// @throws IoError, see open_result_database
  explicit SweepStore(const std::filesystem::path& path);

  /// Records the experiment, and that it asks for those units of the plan that are stored already.
  void begin(const SweepPlan& plan);

  /// Whether each unit of the plan is in the database, shape [units].
  [[nodiscard]] std::vector<bool> finished(const SweepPlan& plan) const;
  /// Reads beside a writer, without waiting for it, as the next two.
  [[nodiscard]] bool is_finished(const Unit& unit) const;
  [[nodiscard]] bool has_run(const Setting& setting) const;
  /// Whether a run's least energy over time is stored.
  [[nodiscard]] bool has_front(const Setting& setting) const;

  /// Stores finished units in one transaction, and their run if they are its first.
  /// @return of each unit, false if another process stored it meanwhile; it is left as it is then
  /// @throws IoError; nothing is stored then
  std::vector<bool> add(const SweepPlan& plan, const AnsweredUnits& answered,
                        const std::string& command);

  /// Sum of times taken over sum of times estimated, of the units stored; 1 if there are none.
  [[nodiscard]] double estimate_scale() const;

 private:
  std::int64_t run_of(const Setting& setting, const AnsweredUnits& answered,
                      const std::string& command);
  void add_memberships(const SweepPlan& plan, const Unit& unit, std::int64_t plan_id);

  SqlConnection connection_;
  SqlConnection reader_;  // closed first: the writer, closing last, copies the write-ahead log
};

}  // namespace rubato
