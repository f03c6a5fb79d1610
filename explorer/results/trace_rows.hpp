#pragma once
// An exploration of a trace as rows of a result database.

#include <filesystem>
#include <vector>

#include "explorer/exploration.hpp"
#include "explorer/results/run_writer.hpp"

namespace rubato {

/// The run of an exploration.
[[nodiscard]] RunRows trace_rows(const ExplorationInput& input, const Exploration& found);

/// Its least energy over time.
[[nodiscard]] std::vector<StoredFrontPoint> trace_fronts(const Exploration& found);

/// A plan of it.
[[nodiscard]] PlanRows trace_plan_rows(const ExplorationInput& input, const Exploration& found,
                                       const PlanResult& plan);

/// All its plans.
[[nodiscard]] std::vector<PlanRows> trace_plans_rows(const ExplorationInput& input,
                                                     const Exploration& found);

/// Stores one exploration in one transaction; makes the database if there is none. @return run_id
/// @throws IoError; nothing is stored then
std::int64_t store_trace(const std::filesystem::path& database, const ExplorationInput& input,
                         const Exploration& found, const RunRecord& record);

}  // namespace rubato
