#include "sim/capture/data_parallel.hpp"

#include <fmt/format.h>

#include "traces/transformer/kernel_list.hpp"

namespace rubato {

DataGroup data_group(const ParallelStepInput& input, bool of_experts) {
  const ModelSplit& split = input.split;
  const std::uint64_t ranks = input.shape.data_parallel * split.context;
  if (!of_experts) return {ranks, input.shape.tensor_parallel};
  return {ranks / split.expert, input.shape.tensor_parallel * split.expert};
}

void communicate(const ParallelStepInput& input, StepWriter& step, const std::string& name,
                 CollectiveKind kind, double elements, bool of_experts) {
  const DataGroup group = data_group(input, of_experts);
  if (group.size < 2) return;
  const Collective collective{kind, elements * element_bytes(input.shape.dtype),
                              static_cast<std::uint32_t>(group.size),
                              static_cast<std::uint32_t>(group.stride)};
  const Pass pass = kind == CollectiveKind::all_gather ? Pass::forward : Pass::backward;
  const KernelId kernel =
      step.kernels().add(collective_kernel(name, collective, pass, input.shape.dtype));
  step.follow(StepStream::data, StepStream::compute);
  step.communicate(StepStream::data, kernel);
}

GradientQueue::GradientQueue(const ParallelStepInput& input, StepWriter& step,
                             const std::vector<double>& elements, bool of_experts)
    : input_(input),
      step_(step),
      buckets_(ddp_buckets(elements, element_bytes(input.shape.dtype), input.buckets)),
      of_experts_(of_experts) {}

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
        root_(work.gradients_of(work.head_backward) + work.gradients_of(work.embedding_backward)) {}

  void write() {
    gather("f0_all_gather_root", root_);
    step_.follow(StepStream::compute, StepStream::data);
    gather_layer();
    writer_.run(work_.clearing, ListOf::other);
    writer_.run(work_.embedding, ListOf::other);
    run_layers(work_.forward, ListOf::layer_forward);
    writer_.run(work_.loss, ListOf::other);
    gather_layer();
    writer_.run(work_.head_backward, ListOf::other);
    run_layers(work_.backward, ListOf::layer_backward);
    writer_.run(work_.embedding_backward, ListOf::other);
    scatter("f3_reduce_scatter_root", root_);
    if (work_.optimizer.empty()) return;
    step_.follow(StepStream::compute, StepStream::data);
    writer_.run(work_.optimizer, ListOf::other);
  }

 private:
  void run_layers(const RankWork::Launches& list, ListOf of) {
    for (std::uint64_t l = 0; l < work_.layers; ++l) {
      const std::uint32_t own = gathered_;
      if (l + 1 < work_.layers) gather_layer();  // the next one, while this one runs
      step_.wait(StepStream::compute, own);
      writer_.run(list, of);
      if (of == ListOf::layer_backward) scatter("f2_reduce_scatter_layer", layer_);
    }
  }
  void gather(const char* name, double elements) {
    communicate(input_, step_, name, CollectiveKind::all_gather, elements, false);
  }
  void gather_layer() {
    gather("f1_all_gather_layer", layer_);
    gathered_ = step_.mark(StepStream::data);
  }
  void scatter(const char* name, double elements) {
    communicate(input_, step_, name, CollectiveKind::reduce_scatter, elements, false);
  }

  const ParallelStepInput& input_;
  const RankWork& work_;
  StepWriter& step_;
  LayerWriter writer_;
  double layer_, root_;         // elements
  std::uint32_t gathered_ = 0;  // mark of the layer gathered last
};

}  // namespace

void write_sharded_step(const ParallelStepInput& input, const RankWork& work, StepWriter& step) {
  ShardedStep(input, work, step).write();
}

}  // namespace rubato
