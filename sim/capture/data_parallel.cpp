#include "sim/capture/data_parallel.hpp"

#include <fmt/format.h>

#include "traces/transformer/kernel_list.hpp"

namespace rubato {

DataGroup data_group(const ParallelStepInput& input, bool of_experts) {
  const TrainingStep& shape = input.shape;
  const std::uint64_t ranks = shape.data_parallel * shape.context_parallel;
  if (!of_experts) return {ranks, shape.tensor_parallel};
  return {ranks / shape.expert_parallel, shape.tensor_parallel * shape.expert_parallel};
}

void communicate(const ParallelStepInput& input, StepWriter& step, const std::string& name,
                 CollectiveKind kind, double elements, bool of_experts) {
  const DataGroup group = data_group(input, of_experts);
  if (group.size < 2) return;
  const bool gathers = kind == CollectiveKind::all_gather;
  const double element =
      gathers ? element_bytes(stored_dtype(input.shape)) : gradient_bytes(input.shape);
  const Collective collective{kind, elements * element, static_cast<std::uint32_t>(group.size),
                              static_cast<std::uint32_t>(group.stride)};
  const Pass pass = gathers ? Pass::forward : Pass::backward;
  const KernelId kernel =
      step.kernels().add(collective_kernel(name, collective, pass, stored_dtype(input.shape)));
  step.follow(StepStream::data, StepStream::compute);
  step.communicate(StepStream::data, kernel);
}

double gradient_bytes(const TrainingStep& step) {
  return element_bytes(step.fp32_gradients ? Dtype::fp32 : stored_dtype(step));
}

GradientQueue::GradientQueue(const ParallelStepInput& input, StepWriter& step,
                             std::span<const ChunkGradients> chunks, bool of_experts)
    : input_(input), step_(step), of_experts_(of_experts) {
  if (input.bucketing == Bucketing::megatron) {
    // One bucket size for experts and all else: by the group of all else.
    buckets_ = megatron_buckets(chunks, static_cast<double>(data_group(input, false).size));
    return;
  }
  std::vector<double> all;
  for (const ChunkGradients& chunk : chunks)
    all.insert(all.end(), chunk.elements.begin(), chunk.elements.end());
  buckets_ = ddp_buckets(all, gradient_bytes(input.shape), input.buckets);
}

void GradientQueue::ready() {
  if (++tensors_ < buckets_[next_].first + buckets_[next_].count) return;
  const bool reduce = input_.sharding == Sharding::none;
  // Buckets of equal size are one kernel.
  const double elements = buckets_[next_++].elements;
  communicate(input_, step_,
              fmt::format("d0_{}{}_{:.0f}", of_experts_ ? "expert_" : "",
                          reduce ? "all_reduce" : "reduce_scatter", elements),
              reduce ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter, elements,
              of_experts_);
}

void GradientQueue::gather_parameters() {
  for (const GradientBucket& bucket : buckets_)
    communicate(
        input_, step_,
        fmt::format("d1_{}all_gather_{:.0f}", of_experts_ ? "expert_" : "", bucket.elements),
        CollectiveKind::all_gather, bucket.elements, of_experts_);
}

namespace {

class ShardedStep {
 public:
  ShardedStep(const ParallelStepInput& input, const RankWork& work, StepWriter& step)
      : input_(input),
        work_(work),
        step_(step),
        writer_(work, input.tensor_overlap, step),
        layer_(work.gradients_of(work.backward)),
        root_{.dense = work.gradients_of(work.head_backward).dense +
                       work.gradients_of(work.embedding_backward).dense} {}

  void write() {
    for (std::uint32_t m = 0; m < input_.pipeline.microbatches; ++m) run_microbatch(m == 0);
    if (work_.optimizer.empty()) return;
    step_.follow(StepStream::compute, StepStream::data);
    writer_.run(work_.optimizer);
  }

 private:
  // Gradients of each microbatch are reduce-scattered on their own; each rank adds up its part.
  void run_microbatch(bool first) {
    gather("f0_all_gather_root", root_);
    step_.follow(StepStream::compute, StepStream::data);
    gather_layer();
    if (first) writer_.run(work_.clearing);
    writer_.run(work_.embedding);
    run_layers(work_.forward, false);
    writer_.run(work_.loss);
    gather_layer();
    writer_.run(work_.head_backward);
    run_layers(work_.backward, true);
    writer_.run(work_.embedding_backward);
    scatter("f3_reduce_scatter_root", root_);
  }
  void run_layers(const RankWork::Launches& list, bool backward) {
    for (std::uint64_t l = 0; l < work_.layers; ++l) {
      const std::uint32_t own = gathered_;
      if (l + 1 < work_.layers) gather_layer();  // the next one, while this one runs
      step_.wait(StepStream::compute, own);
      writer_.run(list);
      if (backward) scatter("f2_reduce_scatter_layer", layer_);
    }
  }
  void send(const std::string& name, CollectiveKind kind, const RankWork::Elements& elements) {
    communicate(input_, step_, name, kind, elements.dense, false);
    if (elements.of_experts > 0.0)
      communicate(input_, step_, name + "_experts", kind, elements.of_experts, true);
  }
  void gather(const char* name, const RankWork::Elements& elements) {
    send(name, CollectiveKind::all_gather, elements);
  }
  void gather_layer() {
    gather("f1_all_gather_layer", layer_);
    gathered_ = step_.mark(StepStream::data);
  }
  void scatter(const char* name, const RankWork::Elements& elements) {
    send(name, CollectiveKind::reduce_scatter, elements);
  }

  const ParallelStepInput& input_;
  const RankWork& work_;
  StepWriter& step_;
  LayerWriter writer_;
  RankWork::Elements layer_, root_;
  std::uint32_t gathered_ = 0;  // mark of the layer gathered last
};

}  // namespace

void write_sharded_step(const ParallelStepInput& input, const RankWork& work, StepWriter& step) {
  ShardedStep(input, work, step).write();
}

}  // namespace rubato
