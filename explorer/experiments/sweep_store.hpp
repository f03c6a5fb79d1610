#pragma once
// The part of a result database that a sweep writes: finished units, a transaction for those that
// were explored together.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/sqlite.hpp"
#include "explorer/experiments/sweep_plan.hpp"
#include "explorer/graph/exploration.hpp"
#include "explorer/results/graph_store.hpp"

namespace rubato {

/// What tells whether results of another run are the same, to the last bit.
struct ResultHashes {
  std::string profile;             ///< of the cells and the default clocks
  std::vector<std::string> plans;  ///< shape [plans]
};
[[nodiscard]] ResultHashes result_hashes(const Exploration& found);
[[nodiscard]] ResultHashes result_hashes(const GraphExploration& found);

/// One writer at a time per object, and beside it one thread that asks what is stored; several
/// processes may have the same file open.
class SweepStore {
 public:
  /// @throws IoError, see open_result_database
  explicit SweepStore(const std::filesystem::path& path);

  /// Records the experiment, and that finished units of the plan are its own too.
  void begin(const SweepPlan& plan);

  /// Whether each unit of the plan is in the database, shape [units].
  [[nodiscard]] std::vector<bool> finished(const SweepPlan& plan) const;
  /// Reads beside a writer, without waiting for it.
  [[nodiscard]] bool is_finished(const Unit& unit) const;

  /// Stores finished units of one setting in one transaction, and the setting if they are its
  /// first.
  /// @param found   the exploration of their questions, in order
  /// @param hashes  of `found`
  /// @return of each unit, false if another process stored it meanwhile; it is left as it is then
  /// @throws IoError; nothing is stored then
  std::vector<bool> add(const SweepPlan& plan, std::span<const Unit* const> units,
                        const ExplorationInput& input, const Exploration& found,
                        const ResultHashes& hashes, const std::string& command);

  /// Whether the bound over time of a captured run is stored. Reads beside a writer.
  [[nodiscard]] bool has_front(const Setting& setting) const;

  /// Stores a finished unit of a captured run in one transaction, and the setting if it is its
  /// first.
  /// @param found  of its question alone
  /// @param front  graph_front of it; may be empty where it is stored
  /// @return false if another process stored it meanwhile; it is left as it is then
  /// @throws IoError; nothing is stored then
  bool add(const SweepPlan& plan, const Unit& unit, const GraphExploration& found,
           std::span<const GraphFrontPoint> front, const ResultHashes& hashes,
           const std::string& command);

  /// Time taken over time estimated, of the units in the database; 1 if there are none.
  [[nodiscard]] double estimate_scale() const;

 private:
  std::int64_t run_of(const SweepPlan& plan, const Unit& unit, const ExplorationInput& input,
                      const Exploration& found, const ResultHashes& hashes,
                      const std::string& command);
  std::int64_t captured_run_of(const Setting& setting, const GraphExploration& found,
                               const std::string& profile_hash, const std::string& command);
  // A run and a plan of the tables of its kind.
  struct StoredPlan {
    std::optional<std::int64_t> run_id, plan_id, graph_run_id, graph_plan_id;
  };
  void add_unit(const Unit& unit, const StoredPlan& plan, const std::string& result_hash,
                double wall_time_s);
  void add_model_errors(const GpuSpec& spec, const std::string& spec_hash);
  void add_memberships(const SweepPlan& plan, const Unit& unit);

  SqlConnection connection_;
  SqlConnection reader_;  // closed first: whoever closes last copies the log into the file
};

}  // namespace rubato
