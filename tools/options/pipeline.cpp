#include "tools/options/pipeline.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/plan/defaults.hpp"
#include "models/table/gpu_model.hpp"
#include "tools/command_line.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/prices.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/pipeline/profile_checks.hpp"
#include "traces/pipeline/step_end.hpp"

namespace rubato {

namespace {

std::string gpu_of(const PipelineInput& input) {
  return input.gpu.empty() ? usual_gpu() : input.gpu;
}

void check(const PipelineInput& input) {
  if (input.profile.empty() == input.model.empty()) {
    throw UsageError("a pipeline needs either --profile or --model",
                     {.in = {}, .hint = "--profile takes a CSV file as Zeus writes it"});
  }
  if (!input.model.empty() && !input.stage_map.empty()) {
    throw UsageError("--stage-map needs --profile; --model makes the stages itself");
  }
  if (input.model.empty() && (input.optimizer || !input.power_limits.empty())) {
    throw UsageError("--optimizer and --power-limits need --model; a profile has rows of them");
  }
  if (input.ops.empty() != input.edges.empty()) {
    throw UsageError("a graph of one's own needs both --ops and --edges");
  }
  if (!input.profile.empty() && !input.blocked_power_w) {
    throw UsageError("--profile needs --blocked-power, the power of a GPU that waits, W",
                     {.in = {}, .hint = "published: A100 83.64, A40 70.38"});
  }
  const auto positive = [](std::string_view option, double value) {
    if (!(value > 0.0)) {
      throw UsageError(fmt::format("{} is {}; expected a number > 0", option, value));
    }
  };
  if (input.embedding_reduction_ms) {
    positive("--embedding-reduction-ms", *input.embedding_reduction_ms);
    if (!input.ops.empty())
      throw UsageError(
          "--embedding-reduction-ms does nothing with --ops, which lists all passes",
          {.in = {}, .hint = "kind embedding_all_reduce in the file, and in the profile"});
  }
  positive("--profile-scale", input.profile_scale);
  positive("--tensor-parallel", input.tensor_parallel);
  positive("--data-parallel", input.data_parallel);
  check_host_power(input.host_power_w);
}

StageModelInput modelled_stages(const PipelineInput& input, std::uint32_t stages) {
  GpuSpec spec = load_gpu(gpu_of(input));
  spec.power_limit.limit_w = accepted_power_limit_w(spec, input.power_limit_w);
  const double blocked_power_w =
      input.blocked_power_w.value_or(model_idle_power_w(spec, input.clocks));
  StageModelInput model{gpt_preset(input.model),
                        spec,
                        with_power_limits(input.clocks, input.power_limits),
                        stages,
                        pass_clocks_from_name(input.clock_per),
                        blocked_power_w};
  model.shape.batch = input.batch;
  model.shape.seq = input.seq;
  model.shape.tensor_parallel = input.tensor_parallel;
  model.replicas = input.data_parallel;
  model.step_end = input.optimizer;
  model.microbatches = input.microbatches;
  for (const double slack_pct : input.slacks_pct) model.slacks_frac.push_back(slack_pct / percent);
  return model;
}

PipelineSchedule schedule_of(const PipelineInput& input,
                             const std::optional<PipelineProfile>& profile) {
  if (!input.ops.empty()) return read_schedule(input.ops, input.edges);
  PipelineShape shape{.kind = schedule_from_name(input.schedule),
                      .stages = input.stages.value_or(0),
                      .microbatches = input.microbatches,
                      .chunks = input.chunks,
                      .transfer_s = input.transfer_ms / ms_per_s,
                      .hold_s = input.hold_ms / ms_per_s};
  if (!input.stages) {
    if (!profile) throw UsageError("--model needs --stages");
    shape.stages = input.stage_map.empty() ? profile->stages()
                                           : static_cast<std::uint32_t>(input.stage_map.size());
  }
  PipelineSchedule schedule = make_schedule(shape);
  if (input.embedding_reduction_ms && shape.stages < 2)
    throw UsageError("--embedding-reduction-ms needs a first and a last stage; there is one stage");
  const bool tied = input.embedding_reduction_ms ||
                    (profile && profile->has(PassKind::embedding_all_reduce) && shape.stages > 1);
  if (!profile)
    return with_step_end(schedule, input.optimizer && input.data_parallel > 1, input.optimizer,
                         tied);
  return with_step_end(schedule, profile->has(PassKind::all_reduce),
                       profile->has(PassKind::optimizer), tied);
}

// The option replaces what the profile has, for the first and the last stage.
void add_embedding_reduction(const PipelineInput& input, const PipelineShape& shape,
                             PipelineProfile& profile) {
  if (!input.embedding_reduction_ms) return;
  const std::vector<std::uint32_t>& map = input.stage_map;
  const std::uint32_t first = map.empty() ? 0 : map.front();
  const std::uint32_t last = map.empty() ? shape.stages - 1 : map[shape.stages - 1];
  set_embedding_reduction(profile, first, last, *input.embedding_reduction_ms / ms_per_s);
}

}  // namespace

void add_pipeline_options(CommandLine& app, PipelineInput& input) {
  app.add_option("--profile", input.profile,
                 "Zeus CSV: stage,instruction,frequency,time,energy (MHz, s, J of one GPU)");
  app.add_option("--blocked-power", input.blocked_power_w,
                 "Power of a GPU that waits for another stage, W [with --model: idle power]");
  add_host_power_option(app, input.host_power_w);
  app.add_option("--profile-scale", input.profile_scale,
                 "Times and energies of the profile are this many times as large")
      ->capture_default_str();
  app.add_option("--stage-map", input.stage_map, "Profile stage of each stage, e.g. 0,1,6,7")
      ->delimiter(',');
  app.add_option("--model", input.model,
                 "Instead of a profile: stages of this GPT model (gpt3-xl, ...) by Rubato's "
                 "kernel model");
  app.add_option("--gpu", input.gpu,
                 "GPU spec, shipped name or file: of --model [rtx-3080-ti]; of a profile, whose "
                 "switches are then counted as the spec knows them");
  app.add_option("--clocks", input.clocks,
                 "With --model: clocks to choose from, see explore [full]");
  app.add_option("--clock-per", input.clock_per,
                 "With --model: one clock per pass, or one per kernel inside each pass")
      ->capture_default_str();
  add_power_limits_option(app, input.power_limits, "With --model: ");
  app.add_flag(
      "--optimizer", input.optimizer,
      "With --model: AdamW, and with --data-parallel the reduction of gradients, end a step");
  app.add_option("--batch", input.batch, "With --model: sequences per microbatch")
      ->capture_default_str();
  app.add_option("--seq", input.seq, "With --model: tokens per sequence")->capture_default_str();
  app.add_option("--schedule", input.schedule, "gpipe, 1f1b, interleaved, early-recompute, zb-h1")
      ->capture_default_str();
  app.add_option("--stages", input.stages, "Pipeline stages [those of the profile]");
  app.add_option("--microbatches", input.microbatches, "Microbatches per iteration and pipeline")
      ->capture_default_str();
  app.add_option("--chunks", input.chunks, "Interleaved: model chunks per stage")
      ->capture_default_str();
  app.add_option("--transfer-ms", input.transfer_ms, "Time of a transfer between stages, ms")
      ->capture_default_str();
  app.add_option("--hold-ms", input.hold_ms,
                 "Time after a pass in which its stage can begin no other, ms: sends that hold the "
                 "sender")
      ->capture_default_str();
  app.add_option(
      "--embedding-reduction-ms", input.embedding_reduction_ms,
      "Tied embeddings: time in which first and last stage add up their gradients at the "
      "end of a step, ms [rows embedding_all_reduce of the profile]");
  app.add_option("--ops", input.ops, "Instead of a schedule: CSV op,stage,kind,mb,pos");
  app.add_option("--edges", input.edges, "Instead of a schedule: CSV src,dst[,lag_s]");
  app.add_option("--tensor-parallel", input.tensor_parallel, "GPUs per stage")
      ->capture_default_str();
  app.add_option("--data-parallel", input.data_parallel, "Pipelines")->capture_default_str();
  add_switching_option(app, input.switching, "spec; of a profile without --gpu free");
  app.group("Pipeline", {"--profile", "--model", "--blocked-power", "--stages", "--microbatches",
                         "--schedule", "--tensor-parallel", "--data-parallel"});
  app.group("Stages of a model", {"--gpu", "--clocks", "--clock-per", "--power-limits",
                                  "--optimizer", "--batch", "--seq"});
  app.group("Details", {"--chunks", "--transfer-ms", "--switching"});
  app.rare({"--profile-scale", "--stage-map", "--hold-ms", "--embedding-reduction-ms", "--ops",
            "--edges", "--host-power"});
}

namespace {

constexpr const char* description_format = "rubato-pipeline";
constexpr std::array options_of_files{"profile", "ops", "edges", "gpu"};

}  // namespace

StagesFile stages_file(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return StagesFile::none;
  const std::string text = read_file(path);
  const std::string_view head = std::string_view(text).substr(0, text.find('\n'));
  if (head.find("stage") != head.npos && head.find("instruction") != head.npos)
    return StagesFile::profile;
  return text.starts_with('{') && text.find(description_format) < 100 ? StagesFile::description
                                                                      : StagesFile::none;
}

PipelineInput read_description(const std::string& path) {
  PipelineInput input;
  std::vector<std::string> words;
  const JsonDocument document = JsonDocument::read(path);
  document.root().expect_keys({"format", "schema", "options"});
  document.expect_schema(1);
  const JsonNode options = document.root().at("options");
  for (const std::string& name : options.keys())
    words.push_back(fmt::format("--{}={}", name, options.at(name).text()));
  parse_words(path, words, [&](CommandLine& line) { add_pipeline_options(line, input); });
  for (std::string* file : {&input.profile, &input.ops, &input.edges, &input.gpu}) {
    const std::filesystem::path beside = std::filesystem::path(path).parent_path() / *file;
    if (!file->empty() && std::filesystem::is_regular_file(beside))
      *file = beside.lexically_normal().string();
  }
  return input;
}

std::string description_json(const CommandLine& line, const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::absolute(path == "-" ? "." : path).parent_path();
  nlohmann::ordered_json options;
  for (const auto& [name, value] : line.given()) {
    if (name == "output" || name == "quiet" || name == "wide") continue;
    const bool is_file = std::ranges::find(options_of_files, name) != options_of_files.end() &&
                         std::filesystem::is_regular_file(value);
    options[name] = is_file ? std::filesystem::proximate(value, folder).string() : value;
  }
  return json_text({{"format", description_format}, {"schema", 1}, {"options", options}}) + '\n';
}

LoadedPipeline load_pipeline(const PipelineInput& input) {
  check(input);
  std::optional<PipelineProfile> profile;
  if (!input.profile.empty()) {
    profile = read_pipeline_profile(input.profile);
    for (const std::string& note : profile->notes) tell("note: {}\n", printable(note));
  }
  PipelineSchedule schedule = schedule_of(input, profile);
  double blocked_power_w = input.blocked_power_w.value_or(0.0);
  std::vector<KernelClocks> kernel_clocks;
  std::optional<StageModelInput> modelled;
  std::vector<Mark> marks;
  if (!profile) {
    modelled = modelled_stages(input, schedule.shape.stages * schedule.shape.chunks);
    blocked_power_w = modelled->blocked_power_w;
    ModelProfile model = model_profile(*modelled);
    marks = marks_of_stages(*modelled, schedule.shape.chunks);
    profile = std::move(model.profile);
    if (schedule.shape.kind == ScheduleKind::early_recompute) add_recompute(*profile);
    kernel_clocks = std::move(model.clocks);
  }
  for (PassType& pass : profile->passes) {
    for (ClockOption& option : pass.options) {
      option.time_s *= input.profile_scale;
      option.energy_j *= input.profile_scale;
    }
  }
  add_embedding_reduction(input, schedule.shape, *profile);
  const double host_power_w = input.host_power_w.value_or(0.0);
  if (host_power_w > 0.0) marks.push_back(mark_of_host_power(host_power_w));
  PipelineWork work =
      pipeline_work(std::move(schedule), *profile, blocked_power_w, input.stage_map);
  if (!input.edges.empty()) expect_plausible_lags(work, input.edges);
  return {with_host_power(std::move(work), host_power_w), std::move(kernel_clocks),
          std::move(modelled), std::move(marks)};
}

std::string baseline_name(const PipelineInput& input) {
  return input.profile.empty() ? "default clocks" : "highest clocks";
}

std::string profile_name(const PipelineInput& input) {
  if (!input.profile.empty()) return input.profile;
  return fmt::format("{}, batch {}, on {}", input.model, input.batch, gpu_of(input));
}

std::string describe(const PipelineInput& input, const PipelineWork& work) {
  const PipelineShape& shape = work.schedule.shape;
  const std::string schedule =
      input.ops.empty() ? std::string(name_of(shape.kind)) : "graph of " + input.ops;
  return fmt::format("{}, {} stages, {} microbatches, {}", schedule, shape.stages,
                     shape.microbatches, profile_name(input));
}

std::optional<GpuSpec> spec_of(const PipelineInput& input, const LoadedPipeline& loaded) {
  if (loaded.modelled) return loaded.modelled->spec;
  return input.gpu.empty() ? std::nullopt : std::optional(load_gpu_spec(input.gpu));
}

SwitchModel switch_model(const PipelineInput& input) {
  const bool names_gpu = !input.model.empty() || !input.gpu.empty();
  if (!names_gpu && asks_for_spec(input.switching)) {
    throw UsageError("--switching spec needs --gpu; a profile names no GPU",
                     {.in = {}, .hint = "--switching latency=22ms gives the latency by itself"});
  }
  const std::string switching = names_gpu && input.switching.empty() ? "spec" : input.switching;
  // A spec that is not needed is not read: reading takes longer than most of a plan.
  const SwitchModel model =
      switch_model(switching, asks_for_spec(switching) ? load_gpu_spec(gpu_of(input)) : GpuSpec{});
  return model.is_free() ? model : with_long_stretches(model);
}

}  // namespace rubato
