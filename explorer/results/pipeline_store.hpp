#pragma once
// Pipeline plans in a result database. Tables: pipeline.sql beside this file.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "explorer/pipeline/planner.hpp"
#include "sim/simulator.hpp"

namespace rubato {

/// What the caller knows beyond planner and plans.
struct PipelineRecord {
  std::string command;  ///< the command line
  std::string profile;  ///< where the options came from: a file, or model and GPU
  SwitchCost switch_cost;
  std::uint32_t tensor_parallel = 1;  ///< GPUs per stage
  std::uint32_t data_parallel = 1;    ///< copies of the pipeline
};

/// Stores the pipeline, its options, its frontier, its baseline and the plans in one transaction;
/// makes the database if there is none. @return pipeline_run_id
/// @throws IoError; nothing is stored then
std::int64_t add_pipeline(const std::filesystem::path& database, const PipelinePlanner& planner,
                          std::span<const PipelineResult> plans, const PipelineRecord& record);

}  // namespace rubato
