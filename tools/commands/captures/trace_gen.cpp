// rubato trace gen: the kernels of a training step from a model's shapes.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "sim/capture/parallel_step.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/captures/trace.hpp"
#include "tools/options/parallel.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/files/capture_json.hpp"
#include "traces/transformer/memory.hpp"
#include "traces/transformer/parameters.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

struct Options {
  ModelShapeOptions model;
  ParallelOptions parallel;
  std::uint64_t tp = 1, dp = 1;
  std::uint32_t pp = 1;
  std::string collectives = "model", out;
  bool graph = false;
};

TrainingStep step_of(const Options& o, const ModelShape& model) {
  TrainingStep step = shape_of(o.model, model);
  step.tensor_parallel = o.tp;
  step.sequence_parallel = !o.parallel.without_sequence && step.phase == StepPhase::training;
  step.data_parallel = o.dp;
  step.expert_parallel = o.parallel.expert;
  step.collectives = o.collectives == "model";
  return step;
}

// "step.json.gz" as "step-stage3.json.gz".
std::string file_of_stage(const std::string& file, std::size_t stage) {
  const std::size_t name = file.find_last_of('/') + 1;  // 0 without a folder
  const std::size_t dot = std::min(file.find('.', name), file.size());
  return fmt::format("{}-stage{}{}", file.substr(0, dot), stage, file.substr(dot));
}

void save(const ParallelStep& step, const std::string& file) {
  const std::size_t stages = step.stages.size();
  for (std::size_t s = 0; s < stages; ++s)
    save_capture(step.stages[s], stages == 1 ? file : file_of_stage(file, s));
}

std::string summary(const ParallelStep& step) {
  const ParallelStepTimes& t = step.times;
  std::string text = fmt::format(
      "{}: {:.3f} ms at default clocks: {:.3f} ms of kernels, {:.3f} ms of communication "
      "beside them ({:.3f} GB), {:.3f} ms of the step exposed",
      step.stages.front().name, t.step_s * ms_per_s, t.compute_s() * ms_per_s,
      t.comm_s() * ms_per_s, t.comm_bytes() * 1e-9, t.exposed_s() * ms_per_s);
  if (step.stages.size() > 1)
    text += fmt::format(", {:.3f} ms waiting for other stages (means over {} stages)",
                        t.bubble_s() * ms_per_s, step.stages.size());
  return text + '\n';
}

void write_graph(const Options& o, const TrainingStep& shape) {
  if (o.pp > 1 && o.out == "-")
    throw UsageError("stages are written to a file each; name them with -o");
  const ParallelStep step = parallel_step(parallel_input(o.parallel, shape, o.pp));
  if (o.out.empty()) return print_notes(summary(step));
  if (o.out == "-") {
    print(capture_json(step.stages.front()));
  } else {
    save(step, o.out);
  }
  tell("{}", summary(step));
}

// `value` in the first unit that it reaches. Each unit is a thousandth of the one before it.
// @param first  the size of units[0]
std::string scaled(double value, double first, int digits,
                   const std::array<const char*, 3>& units) {
  std::size_t unit = 0;
  while (value > 0.0 && value < first && unit + 1 < units.size()) {
    first /= 1e3;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value / first, digits, units.at(unit));
}

std::string bytes(double value) { return scaled(value, 1e9, 1, {"GB", "MB", "kB"}); }

void say_memory(double parameters, const MemoryPerRank& memory) {
  if (memory.gradients == 0.0)
    return tell(
        "{} parameters; each GPU holds {}: {} of weights, {} of keys, values and the rest\n",
        scaled(parameters, 1e9, 2, {"B", "M", "K"}), bytes(memory.total()),
        bytes(memory.parameters), bytes(memory.activations));
  tell(
      "{} parameters; each GPU holds {}: {} of weights, {} of gradients, {} of optimizer "
      "state, {} of activations\n",
      scaled(parameters, 1e9, 2, {"B", "M", "K"}), bytes(memory.total()), bytes(memory.parameters),
      bytes(memory.gradients), bytes(memory.optimizer), bytes(memory.activations));
}

Trace generated(const TrainingStep& step) {
  GeneratedStep made = generate_training_step(step);
  const bool llm_c = step.kernels == KernelStyle::llm_c;
  if (!llm_c && step.phase == StepPhase::training)
    tell("{}: {} of each GPU that the model needs\n", made.trace.name,
         scaled(model_flops(step), 1e12, 1, {"TFLOP", "GFLOP", "MFLOP"}));
  // llm.c pads its tables.
  say_memory(llm_c ? static_cast<double>(step.tensor_parallel) * parameters_per_rank(step)
                   : count_parameters(step.model).total,
             memory_per_rank(step));
  return std::move(made.trace);
}

void check(const Options& o, const CommandLine& line, KernelStyle kernels) {
  if (o.graph && o.collectives == "none")
    throw UsageError("--graph puts collectives beside kernels; --collectives none has none");
  if (o.graph) return;
  if (kernels == KernelStyle::llm_c) refuse(line, {"--ep"}, "is for --kernels fused or --graph");
  refuse(line, {"--pp"}, "is for --graph");
  if (const std::optional<std::string> given = given_parallel_option(line))
    throw UsageError(fmt::format("{} is for --graph", *given));
}

void generate(const Options& o, const CommandLine& line) {
  const TrainingStep step = step_of(o, load_model_shape(o.model.model));
  constexpr std::uint64_t most_batch = 1'000'000;  // sequences of one GPU and step
  if (step.batch > most_batch)
    throw UsageError(
        fmt::format("--batch is {}; expected a whole number from 1 to {}", step.batch, most_batch));
  check(o, line, step.kernels);
  if (o.graph && step.phase != StepPhase::training)
    throw UsageError("--graph is for --phase training");
  if (o.graph) return write_graph(o, step);
  if (!o.out.empty()) check_extension("--output", o.out, {".json", ".csv"});
  const Trace trace = generated(step);
  if (!o.out.empty()) return write_output(o.out, as_file(trace, o.out));
  print_notes(trace_summary(trace) + "\nTo keep it: -o step.json; then rubato explore step.json\n");
}

void add_options(CommandLine& gen, Options& o) {
  add_model_shape_options(gen, o.model);
  gen.add_option("--tp", o.tp, "Tensor-parallel degree (Megatron)")->capture_default_str();
  gen.add_option("--dp", o.dp, "Data-parallel replicas")->capture_default_str();
  gen.add_option("--collectives", o.collectives,
                 "model: with the collectives of --tp and --dp; none: kernels alone")
      ->one_of({"none", "model"})
      ->capture_default_str();
  gen.add_flag("--graph", o.graph,
               "Write captured runs for explore and replay, one rank for each pipeline stage: "
               "communication has its own streams, times are the model's at the default clocks");
  gen.add_option("--pp", o.pp, "With --graph: number of pipeline stages, a file for each")
      ->capture_default_str();
  add_parallel_options(gen, o.parallel);
  gen.add_option("-o,--output", o.out,
                 "Write the trace: .json or .csv (--graph: .json or .json.gz); - is standard "
                 "output [none: a summary]");
}

}  // namespace

Action setup_trace_gen(CommandLine& app) {
  auto o = std::make_shared<Options>();
  add_options(app, *o);
  return [o, gen = &app](const RunContext&) {
    generate(*o, *gen);
    return ExitStatus::done;
  };
}

}  // namespace rubato
