#pragma once
// The part of a result database that a sweep writes: finished units, one
// transaction each.

#include <filesystem>
#include <string>
#include <vector>

#include "common/sqlite.hpp"
#include "explorer/experiments/sweep_plan.hpp"

namespace rubato {

/// One writer at a time per object; several processes may have the same file open.
class SweepStore {
 public:
  /// @throws IoError, see open_result_database
  explicit SweepStore(const std::filesystem::path& path);

  /// Records the experiment, and that finished units of the plan are its own too.
  void begin(const SweepPlan& plan);

  /// Whether each unit of the plan is in the database, shape [units].
  [[nodiscard]] std::vector<bool> finished(const SweepPlan& plan) const;
  [[nodiscard]] bool is_finished(const Unit& unit) const;

  /// Stores a finished unit, and its setting if it is the first one of it.
  /// @param found  the exploration of the unit's question alone
  /// @return false if another process stored the unit meanwhile; nothing changes then
  /// @throws IoError; nothing of the unit is stored then
  bool add(const SweepPlan& plan, const Unit& unit, const ExplorationInput& input,
           const Exploration& found, const std::string& command);

  /// Time taken over time estimated, of the units in the database; 1 if there are none.
  [[nodiscard]] double estimate_scale() const;

 private:
  std::int64_t run_of(const SweepPlan& plan, const Unit& unit, const ExplorationInput& input,
                      const Exploration& found, const std::string& command);
  void add_memberships(const SweepPlan& plan, const Unit& unit);

  SqlConnection connection_;
};

}  // namespace rubato
