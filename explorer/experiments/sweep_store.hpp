#pragma once
// The part of a result database that a sweep writes: finished units. Units that were explored
// together share a transaction.

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

/// Hashes that tell whether another run had the same results, to the last bit.
struct ResultHashes {
  std::string profile;             ///< of cells and baseline; if captured, of each single clock
  std::vector<std::string> plans;  ///< shape [plans]
};
[[nodiscard]] ResultHashes result_hashes(const Exploration& found);
[[nodiscard]] ResultHashes result_hashes(const GraphExploration& found);

/// Per object one thread at a time may write, and beside it one may ask is_finished() or
/// has_front(). Several processes may have the same file open.
class SweepStore {
 public:
  /// @throws IoError, see open_result_database
  explicit SweepStore(const std::filesystem::path& path);

  /// Records the experiment, and that it asks for those units of the plan that are stored already.
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

  /// Whether a captured run's lower bound of energy over time is stored. Reads beside a writer.
  [[nodiscard]] bool has_front(const Setting& setting) const;

  /// Stores a finished unit of a captured run in one transaction, and the setting if it is its
  /// first.
  /// @param found  of its question alone
  /// @param front  graph_front of it; may be empty where it is stored
  /// @return false if another process stored the unit meanwhile; it is left as it is then
  /// @throws IoError; nothing is stored then
  bool add(const SweepPlan& plan, const Unit& unit, const GraphExploration& found,
           std::span<const GraphFrontPoint> front, const ResultHashes& hashes,
           const std::string& command);

  /// Sum of times taken over sum of times estimated, of the units stored; 1 if there are none.
  [[nodiscard]] double estimate_scale() const;

 private:
  std::int64_t run_of(const SweepPlan& plan, const Unit& unit, const ExplorationInput& input,
                      const Exploration& found, const ResultHashes& hashes,
                      const std::string& command);
  std::int64_t captured_run_of(const Setting& setting, const GraphExploration& found,
                               const std::string& profile_hash, const std::string& command);
  // Row numbers of a plan and its run: the first two of a trace, the last two of a captured run.
  struct StoredPlan {
    std::optional<std::int64_t> run_id, plan_id, graph_run_id, graph_plan_id;
  };
  void add_unit(const Unit& unit, const StoredPlan& plan, const std::string& result_hash,
                double wall_time_s);
  void add_model_errors(const GpuSpec& spec, const std::string& spec_hash);
  void add_memberships(const SweepPlan& plan, const Unit& unit);

  SqlConnection connection_;
  SqlConnection reader_;  // closed first: the writer, closing last, copies the write-ahead log
};

}  // namespace rubato
