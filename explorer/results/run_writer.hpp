#pragma once
// Writes runs and plans of every kind. Whoever calls it owns the transaction, but for store_run().

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/sqlite.hpp"
#include "explorer/results/stored_rows.hpp"

namespace rubato {

/// What an experiment knows of a run.
struct OfExperiment {
  std::string run_hash;  ///< of inputs, options and program
};

/// How a run came about.
struct RunRecord {
  std::string command;                           ///< the command line
  std::optional<std::string> options_json = {};  ///< every option, defaults included
  std::optional<OfExperiment> experiment = {};   ///< nothing: somebody asked for it
};

/// What an experiment knows of a plan.
struct PlanRecord {
  std::string question_hash;  ///< of inputs, options and question, without the program
  double wall_time_s = 0.0, estimated_s = 0.0;
};

/// Writes one row; columns that are not named are NULL. @return its row number
std::int64_t insert_row(const SqlConnection& connection, std::string_view table,
                        const Columns& columns);

/// Writes a run without its plans. @return run_id
std::int64_t write_run(const SqlConnection& connection, const RunRows& run,
                       const RunRecord& record);

/// Writes points of fronts of those granularities that the run does not have yet.
void write_fronts(const SqlConnection& connection, std::int64_t run_id,
                  std::span<const StoredFrontPoint> fronts);

/// Writes a plan. Once all are written, choose_stored_answers() must follow. @return plan_id
std::int64_t write_plan(const SqlConnection& connection, std::int64_t run_id, const PlanRows& plan,
                        const std::optional<PlanRecord>& record = {});

/// Chooses the answers among all plans of a run, and its headline if somebody asked for it.
void choose_stored_answers(const SqlConnection& connection, std::int64_t run_id);

/// Keeps what a run was said to mean: labels and texts, in order (table screens).
void store_screen(const std::filesystem::path& database, std::int64_t run_id,
                  std::span<const std::pair<std::string_view, std::string>> lines);

/// Stores a run with its plans in one transaction; makes the database if there is none.
/// @return run_id
/// @throws IoError; nothing is stored then
std::int64_t store_run(const std::filesystem::path& database, const RunRows& run,
                       std::span<const PlanRows> plans, const RunRecord& record);

}  // namespace rubato
