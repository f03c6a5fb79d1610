#pragma once
// A planned pipeline as rows of a result database. Energies are of one pipeline with one GPU per
// stage.

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "explorer/marks.hpp"
#include "explorer/pipeline/planner.hpp"
#include "explorer/results/run_writer.hpp"
#include "models/gpu/spec.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// What the caller knows of a pipeline beyond planner and plans.
struct PipelineRecord {
  std::string command;  ///< the command line
  std::string profile;  ///< where the options came from: a file, or model and GPU
  SwitchModel switching = {};
  std::uint32_t tensor_parallel = 1;     ///< GPUs per stage
  std::uint32_t data_parallel = 1;       ///< copies of the pipeline
  std::optional<GpuSpec> spec = {};      ///< of modelled stages, with its power limit
  std::optional<std::string> grid = {};  ///< their clocks: name or selection
  /// What to know beside a plan; nothing: nothing is known.
  std::function<std::vector<Mark>(const PipelinePlan&)> marks = {};
};

[[nodiscard]] RunRows stage_rows(const PipelinePlanner& planner, const PipelineRecord& record);

/// The plans of it that were asked for.
[[nodiscard]] std::vector<PlanRows> stage_plans_rows(const PipelinePlanner& planner,
                                                     std::span<const PipelineResult> plans,
                                                     const PipelineRecord& record);

/// Stores a pipeline and plans of it in one transaction; makes the database if there is none.
/// @return run_id
/// @throws IoError; nothing is stored then
std::int64_t add_pipeline(const std::filesystem::path& database, const PipelinePlanner& planner,
                          std::span<const PipelineResult> plans, const PipelineRecord& record);

}  // namespace rubato
