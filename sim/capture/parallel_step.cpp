#include "sim/capture/parallel_step.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/version.hpp"
#include "sim/capture/data_parallel.hpp"
#include "sim/capture/stage_step.hpp"
#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/limits.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

// Share of its stage's parameters that each rank updates where parameters are sharded.
double own_share(const ParallelStepInput& input, const RankWork& work) {
  const RankWork::Elements of_layer = work.gradients_of(work.backward);
  const double experts = of_layer.of_experts * static_cast<double>(work.layers);
  const double all = work.parameters();
  const auto ranks = [&](bool of_experts) {
    return static_cast<double>(data_group(input, of_experts).size);
  };
  return ((all - experts) / ranks(false) + experts / ranks(true)) / all;
}

// Kernels of one rank. Where parameters are sharded, clearing and the optimizer do its part only.
RankWork own_work(const ParallelStepInput& input) {
  TrainingStep step = input.shape;
  step.accumulate_gradients =
      input.pipeline.microbatches > 1 && input.sharding != Sharding::parameters;
  RankWork work = rank_work(step, input.pipeline.stages > 1);
  const auto gpus_per_node = cluster_of(input.spec).gpus_per_node;
  const auto ranks_apart = static_cast<std::uint32_t>(step.tensor_parallel);
  if (step.context_parallel > 1 && ranks_apart * step.context_parallel > gpus_per_node) {
    // The ring leaves the node, and its slowest hop sets its pace.
    for (const KernelId send : {work.ring.send_kv, work.ring.send_dkv})
      work.kernels[index(send)].collective->stride = std::max(ranks_apart, gpus_per_node);
  }
  if (input.sharding != Sharding::parameters) return work;
  const double share = own_share(input, work);
  for (const RankWork::Launches* list : {&work.clearing, &work.optimizer}) {
    for (const KernelId id : *list) scale_work(work.kernels[index(id)], share);
  }
  return work;
}

// A guard against mistyped sizes: a million launches take about half a GB with their graph.
void check_size(const ParallelStepInput& input, const RankWork& work) {
  constexpr double most = 5'000'000.0;
  double of_layer = 0.0;
  for (const RankWork::Launches* list : {&work.forward, &work.backward}) {
    for (const KernelId id : *list) {
      const Kernel& kernel = work.kernel(id);
      const bool in_chunks = kernel.collective && input.shape.tensor_parallel > 1;
      const bool attends =
          work.part(id) == KernelPart::attention || work.part(id) == KernelPart::attention_backward;
      of_layer += attends ? work.ring.ranks : (in_chunks ? 2.0 * input.tensor_overlap.chunks : 1.0);
    }
  }
  // Times are whole nanoseconds in 64 bits, which larger steps would overflow.
  constexpr double most_flops = 1e24;
  const double flops = model_flops(input.shape) * input.pipeline.microbatches;
  if (flops > most_flops)
    throw UsageError(fmt::format("FLOP count of {} microbatches is {:.3g}; expected at most {:.3g}",
                                 input.pipeline.microbatches, flops, most_flops));
  const double launches = of_layer * static_cast<double>(work.layers) * input.pipeline.microbatches;
  if (launches <= most) return;
  throw UsageError(
      fmt::format("{} layers of {} microbatches are about {:.3g} launches; expected "
                  "at most {:.0f}",
                  work.layers, input.pipeline.microbatches, launches, most));
}

void check_degrees(const ParallelStepInput& input) {
  const TrainingStep& shape = input.shape;
  const PipelineShape& pipeline = input.pipeline;
  constexpr std::uint64_t most = 1'000'000;
  expect_range("tp", shape.tensor_parallel, {}, most);
  expect_range("dp", shape.data_parallel, {}, most);
  expect_range("cp", shape.context_parallel, {}, most);
  expect_range("ep", shape.expert_parallel, {}, most);
  expect_range("pp", pipeline.stages, {}, most);
  if (shape.model.layers < std::uint64_t{pipeline.stages} * pipeline.chunks) {
    throw UsageError(fmt::format("{} layers cannot be dealt out to {} stages of {} chunk{}",
                                 shape.model.layers, pipeline.stages, pipeline.chunks,
                                 pipeline.chunks == 1 ? "" : "s"));
  }
  if (input.sharding == Sharding::parameters && pipeline.stages > 1) {
    throw UsageError("sharded parameters are for one stage",
                     {.in = {}, .hint = "--zero 1 shards the optimizer of several"});
  }
  if (pipeline.kind == ScheduleKind::early_recompute &&
      shape.recomputation != Recomputation::none) {
    throw UsageError(
        fmt::format("schedule {} runs layers again in passes of their own; recomputation {} would "
                    "once more",
                    name_of(pipeline.kind), name_of(shape.recomputation)));
  }
}

void check_cluster(const ParallelStepInput& input) {
  const ClusterSpec cluster = cluster_of(input.spec);
  const double gpus = input.gpus_asked();
  if (gpus <= static_cast<double>(cluster.gpus())) return;
  throw UsageError(
      fmt::format("tp {} x cp {} x dp {} x pp {} needs {:.0f} GPUs; {} has {} ({} x {})",
                  input.shape.tensor_parallel, input.shape.context_parallel,
                  input.shape.data_parallel, input.pipeline.stages, gpus, cluster.name,
                  cluster.gpus(), cluster.nodes, cluster.gpus_per_node),
      {.in = {}, .hint = "lower the parallel degrees, or give a larger cluster with --cluster"});
}

std::string title_of(const ParallelStepInput& input) {
  const TrainingStep& shape = input.shape;
  std::string title = fmt::format("{}-b{}-s{}-tp{}-dp{}", shape.model.name, shape.batch, shape.seq,
                                  shape.tensor_parallel, shape.data_parallel);
  if (shape.context_parallel > 1) title += fmt::format("-cp{}", shape.context_parallel);
  if (shape.expert_parallel > 1) title += fmt::format("-ep{}", shape.expert_parallel);
  if (!shape.flash_attention) title += "-unfused";
  if (shape.recomputation != Recomputation::none)
    title += fmt::format("-recompute-{}", name_of(shape.recomputation));
  if (input.pipeline.stages > 1)
    title += fmt::format("-pp{}-{}", input.pipeline.stages, name_of(input.pipeline.kind));
  if (input.pipeline.microbatches > 1) title += fmt::format("-m{}", input.pipeline.microbatches);
  return fmt::format("{}-{}", title, name_of(input.sharding));
}

std::string buckets_of(const ParallelStepInput& input) {
  if (input.sharding == Sharding::parameters) return "";
  if (input.bucketing == Bucketing::megatron) return " buckets=megatron";
  return fmt::format(" first_bucket={} bucket={} bytes", input.buckets.first_bytes,
                     input.buckets.other_bytes);
}

// The model's shape, which options may have changed from that of its name, and unusual settings.
std::string shape_options(const TrainingStep& step) {
  const ModelShape& model = step.model;
  std::string text = fmt::format(" dtype={} optimizer={} layers={} hidden={} heads={} vocab={}",
                                 name_of(step.dtype), step.optimizer, model.layers, model.hidden,
                                 model.heads, model.vocab);
  if (model.experts > 0)
    text += fmt::format(" experts={} top_k={}", model.experts, model.experts_per_token);
  if (step.fp32_gradients) text += " fp32_gradients=true";
  return text;
}

std::string options_of(const ParallelStepInput& input) {
  return fmt::format(
      "gpu={} cluster={} kernels={} dp={} {}{} pp={} microbatches={} chunks={} "
      "sequence_parallel={} tensor_chunks={}{}",
      input.spec.name, cluster_of(input.spec).name, name_of(input.shape.kernels),
      input.shape.data_parallel, name_of(input.sharding), buckets_of(input), input.pipeline.stages,
      input.pipeline.microbatches, input.pipeline.chunks, input.shape.sequence_parallel,
      input.tensor_overlap.chunks, shape_options(input.shape));
}

double mean(const std::vector<RankTimes>& stages, double RankTimes::*field) {
  double sum = 0.0;
  for (const RankTimes& stage : stages) sum += stage.*field;
  return sum / static_cast<double>(stages.size());
}

}  // namespace

std::string_view name_of(Sharding value) noexcept {
  switch (value) {
    case Sharding::optimizer: return "zero-1";
    case Sharding::parameters: return "zero-3";
    case Sharding::none: break;
  }
  return "ddp";
}

double ParallelStepInput::gpus_asked() const noexcept {
  return static_cast<double>(shape.tensor_parallel) * static_cast<double>(shape.data_parallel) *
         static_cast<double>(shape.context_parallel) * pipeline.stages;
}

std::uint64_t ParallelStepInput::gpus() const noexcept {
  return shape.tensor_parallel * shape.data_parallel * shape.context_parallel * pipeline.stages;
}

double ParallelStepTimes::compute_s() const { return mean(stages, &RankTimes::compute_s); }
double ParallelStepTimes::comm_s() const { return mean(stages, &RankTimes::comm_s); }
double ParallelStepTimes::hidden_s() const { return mean(stages, &RankTimes::hidden_s); }
double ParallelStepTimes::exposed_s() const { return mean(stages, &RankTimes::exposed_s); }
double ParallelStepTimes::bubble_s() const { return step_s - compute_s() - exposed_s(); }
double ParallelStepTimes::comm_bytes() const { return mean(stages, &RankTimes::comm_bytes); }

ParallelStep parallel_step(const ParallelStepInput& input) {
  check_degrees(input);
  const RankWork work = own_work(input);
  check_cluster(input);
  check_size(input, work);
  ParallelStep step;
  step.schedule = make_schedule(input.pipeline);
  StepKernels kernels(input.spec, work.kernels);
  std::vector<StepWriter> ranks;
  for (std::uint32_t s = 0; s < input.pipeline.stages; ++s) {
    StepWriter& rank = ranks.emplace_back(
        kernels, s, static_cast<std::uint32_t>(input.gpus() / input.pipeline.stages));
    if (input.sharding == Sharding::parameters) {
      write_sharded_step(input, work, rank);
    } else {
      write_stage(input, work, step.schedule, rank);
    }
  }
  const std::int64_t end_ns = set_times(ranks);
  step.times.step_s = static_cast<double>(end_ns) * s_per_ns;
  for (StepWriter& rank : ranks) {
    step.times.stages.push_back(times_of(rank));
    auto [capture, pass_of_launch] = finished(std::move(rank), end_ns);
    step.pass_of_launch.push_back(std::move(pass_of_launch));
    capture.name = title_of(input);
    capture.provenance = {fmt::format("rubato {}", program_version()),
                          "generated at modelled times; nothing of it ran", options_of(input)};
    capture.devices = {{0, input.spec.title}};
    step.stages.push_back(std::move(capture));
  }
  return step;
}

}  // namespace rubato
