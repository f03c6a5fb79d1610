#pragma once
// Options that describe a pipeline, shared by the subcommands of `rubato pipeline`.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "tools/options/switching.hpp"

namespace rubato {

class CommandLine;

/// As given on the command line; see add_pipeline_options for units and meaning.
struct PipelineInput {
  std::string profile, model, ops, edges;
  std::string gpu, clocks, clock_per = "pass";  ///< gpu: empty where none is given
  std::uint64_t batch = 1, seq = 1024;
  std::string schedule = "1f1b";
  std::optional<std::uint32_t> stages;
  std::uint32_t microbatches = 8, chunks = 1;
  std::uint32_t tensor_parallel = 1, data_parallel = 1;
  double transfer_ms = 0.0, hold_ms = 0.0, profile_scale = 1.0;
  std::optional<double> embedding_reduction_ms;
  std::string switching;  ///< see switch_model(); empty: as the spec knows, if there is one
  std::vector<std::uint32_t> stage_map;
  std::string power_limits;  ///< to choose from, see with_power_limits()
  bool optimizer = false;
  std::optional<double> blocked_power_w, host_power_w;
  std::optional<double> power_limit_w;  ///< of the board, with --model
  std::vector<double> slacks_pct;       ///< that will be asked for, where they are known
};

/// The referenced input must outlive parsing.
void add_pipeline_options(CommandLine& app, PipelineInput& input);

/// What a file describes, where explore takes it: stages as `pipeline describe` or Zeus write them.
enum class StagesFile { none, profile, description };
[[nodiscard]] StagesFile stages_file(const std::string& path);

/// Options of a description. Files that it names lie beside it.
/// @throws IoError, DataError
[[nodiscard]] PipelineInput read_description(const std::string& path);

/// The options of a line as a description, JSON. @param path  where it will lie
[[nodiscard]] std::string description_json(const CommandLine& line, const std::string& path);

/// A pipeline as planned.
struct LoadedPipeline {
  PipelineWork work;
  /// With --model, else empty. Entry 2 v is the forward pass of virtual stage v, entry 2 v + 1 its
  /// backward pass.
  std::vector<KernelClocks> kernel_clocks;
  /// With --model: what the stages were modelled from.
  std::optional<StageModelInput> modelled;
  std::vector<Mark> marks;  ///< what to know beside each of its savings
};

/// Reads or models the profile and lays it over the schedule.
/// @throws UsageError if options are missing or contradict each other, and what readers throw
[[nodiscard]] LoadedPipeline load_pipeline(const PipelineInput& input);

/// "1f1b, 8 stages, 12 microbatches, profile.csv"
[[nodiscard]] std::string describe(const PipelineInput& input, const PipelineWork& work);

/// "highest clocks" of a profile, "default clocks" of a model.
[[nodiscard]] std::string baseline_name(const PipelineInput& input);

/// File, or model and GPU.
[[nodiscard]] std::string profile_name(const PipelineInput& input);

/// The GPU of the stages; nothing where a profile names none.
[[nodiscard]] std::optional<GpuSpec> spec_of(const PipelineInput& input,
                                             const LoadedPipeline& loaded);

/// What changes of clock take: as asked for, else as the spec knows it, with stretches that are
/// long enough to be applied. A profile without --gpu names none: they are free unless options say
/// more.
/// @throws UsageError if --switching spec is asked for with neither --model nor --gpu
[[nodiscard]] SwitchModel switch_model(const PipelineInput& input);

}  // namespace rubato
