#include "sim/capture/stage_step.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/capture/data_parallel.hpp"
#include "sim/capture/layer_writer.hpp"
#include "traces/transformer/kernel_list.hpp"

namespace rubato {

namespace {

// The part of a backward pass that zero-bubble schedules put off: the matrix products of the
// weights' gradients, the sums beside them (biases), and the all-gathers they need.
RankWork::Launches of_weights(const RankWork& work, const RankWork::Launches& list) {
  const auto belongs = [&](KernelId id) {
    const Kernel& kernel = work.kernel(id);
    const bool adds = kernel.kind == KernelClass::bias || kernel.kind == KernelClass::bias_reduce ||
                      work.part(id) == KernelPart::gradient_sum;
    return adds || (kernel.gemm && work.gradients[index(id)] > 0.0);
  };
  RankWork::Launches found;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool gathers = i + 1 < list.size() && belongs(list[i + 1]) &&
                         work.kernel(list[i]).collective &&
                         work.kernel(list[i]).collective->kind == CollectiveKind::all_gather;
    if (belongs(list[i]) || gathers) found.push_back(list[i]);
  }
  return found;
}

RankWork::Launches without(const RankWork::Launches& list, const RankWork::Launches& others) {
  RankWork::Launches left;
  std::ranges::copy_if(list, std::back_inserter(left),
                       [&](KernelId id) { return std::ranges::find(others, id) == others.end(); });
  return left;
}

// The launches of a backward pass that one kind of pass runs: of a layer, and of the model's ends.
struct BackwardLists {
  RankWork::Launches head, layer, embedding;
};

BackwardLists backward_lists(const RankWork& work, PassKind kind) {
  BackwardLists all{work.head_backward, work.backward, work.embedding_backward};
  if (kind == PassKind::backward) return all;
  BackwardLists weights{of_weights(work, all.head), of_weights(work, all.layer), all.embedding};
  if (kind == PassKind::weight_gradient) return weights;
  return {without(all.head, weights.head), without(all.layer, weights.layer), {}};
}

// Writes all of a step on one stage; times are set later (set_times).
class StageStep {
 public:
  StageStep(const ParallelStepInput& input, const RankWork& work, const PipelineSchedule& schedule,
            StepWriter& step)
      : input_(input),
        shape_(schedule.shape),
        // With interleaved chunks a stage has to take more than one message at a time.
        overlaps_(input.overlap_messages || schedule.shape.chunks > 1),
        work_(work),
        split_(split_lists(work)),
        step_(step),
        writer_(work_, input.tensor_overlap, step) {
    for (std::uint32_t i = 0; i < schedule.passes.size(); ++i) {
      if (schedule.passes[i].stage != step.stage()) continue;
      if (passes_.empty()) first_pass_ = i;  // passes of a stage follow one another
      passes_.push_back(schedule.passes[i]);
    }
    set_last_microbatches();
    collect_gradients();
  }

  void write() {
    for (const KernelId kernel : work_.clearing)
      step_.launch(own_part(kernel, of_dense_ + of_experts_));
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      receive(i);
      step_.begin_pass(first_pass_ + static_cast<std::uint32_t>(i));
      run(passes_[i]);
      step_.begin_pass({});
      send(passes_[i]);
    }
    wait_until_sent();
    sum_tables();
    if (!work_.optimizer.empty()) step_.follow(StepStream::compute, StepStream::data);
    for (const KernelId kernel : work_.optimizer) step_.launch(own_part(kernel, updated()));
    if (input_.sharding != Sharding::optimizer) return;
    dense_->gather_parameters();
    experts_->gather_parameters();
  }

 private:
  struct Lists {
    BackwardLists whole, input, weights;
  };
  static Lists split_lists(const RankWork& work) {
    return {backward_lists(work, PassKind::backward),
            backward_lists(work, PassKind::input_gradient),
            backward_lists(work, PassKind::weight_gradient)};
  }
  [[nodiscard]] const BackwardLists& lists_of(PassKind kind) const {
    if (kind == PassKind::input_gradient) return split_.input;
    return kind == PassKind::weight_gradient ? split_.weights : split_.whole;
  }

  [[nodiscard]] std::uint32_t virtual_stages() const { return shape_.stages * shape_.chunks; }
  [[nodiscard]] std::uint32_t place(const PipelinePass& pass) const {
    return pass.chunk * shape_.stages + pass.stage;
  }
  // The first virtual stages have one layer more where layers do not divide evenly.
  [[nodiscard]] std::uint64_t layers_of(const PipelinePass& pass) const {
    return work_.layers / virtual_stages() + (place(pass) < work_.layers % virtual_stages());
  }
  [[nodiscard]] bool is_first(const PipelinePass& pass) const { return place(pass) == 0; }
  [[nodiscard]] bool is_end(const PipelinePass& pass) const {
    return place(pass) + 1 == virtual_stages();
  }

  // Gradients add up over microbatches; they are complete in the last of each chunk.
  void set_last_microbatches() {
    last_.assign(shape_.chunks, 0);
    for (const PipelinePass& pass : passes_) {
      if (finishes_gradients(pass.kind)) last_[pass.chunk] = pass.microbatch;
    }
  }
  [[nodiscard]] bool of_expert(KernelId kernel) const {
    return work_.part(kernel) == KernelPart::expert;
  }
  static bool finishes_gradients(PassKind kind) {
    return kind == PassKind::backward || kind == PassKind::weight_gradient;
  }
  [[nodiscard]] bool is_last(const PipelinePass& pass) const {
    const bool gradients = finishes_gradients(pass.kind) || pass.kind == PassKind::input_gradient;
    return gradients && last_[pass.chunk] == pass.microbatch;
  }

  // Gradients of experts, and of all else, each in the order they are ready.
  void collect_gradients() {
    std::vector<ChunkGradients> dense, of_experts;
    std::optional<std::uint32_t> chunk;
    for (const PipelinePass& pass : passes_) {
      if (!is_last(pass)) continue;
      if (chunk != pass.chunk) {
        dense.push_back({.elements = {}, .of_first = is_first(pass)});
        of_experts.push_back({.elements = {}, .of_first = is_first(pass)});
        chunk = pass.chunk;
      }
      add_gradients(pass, dense.back().elements, of_experts.back().elements);
    }
    const auto sum = [](const std::vector<ChunkGradients>& chunks) {
      double elements = 0.0;
      for (const ChunkGradients& one : chunks)
        elements = std::accumulate(one.elements.begin(), one.elements.end(), elements);
      return elements;
    };
    of_dense_ = sum(dense);
    of_experts_ = sum(of_experts);
    dense_.emplace(input_, step_, dense, false);
    experts_.emplace(input_, step_, of_experts, true);
  }

  void add_gradients(const PipelinePass& pass, std::vector<double>& dense,
                     std::vector<double>& of_experts) const {
    const auto add = [&](const RankWork::Launches& list) {
      for (const KernelId kernel : list) {
        const double elements = work_.gradients[index(kernel)];
        if (elements > 0.0) (of_expert(kernel) ? of_experts : dense).push_back(elements);
      }
    };
    const BackwardLists& lists = lists_of(pass.kind);
    if (is_end(pass)) add(lists.head);
    for (std::uint64_t l = 0; l < layers_of(pass); ++l) add(lists.layer);
    if (is_first(pass)) add(lists.embedding);
  }

  void run(const PipelinePass& pass) {
    if (pass.kind == PassKind::forward || pass.kind == PassKind::recompute) {
      const bool again = pass.kind == PassKind::recompute;
      if (is_first(pass) && !again) writer_.run(work_.embedding);
      for (std::uint64_t l = 0; l < layers_of(pass); ++l) writer_.run(work_.forward);
      if (is_end(pass) && !again) writer_.run(work_.loss);
      return;
    }
    const bool last = is_last(pass);
    const auto launched = [&](KernelId kernel) {
      if (!last || work_.gradients[index(kernel)] <= 0.0) return;
      (of_expert(kernel) ? *experts_ : *dense_).ready();
    };
    const BackwardLists& lists = lists_of(pass.kind);
    if (is_end(pass)) writer_.run(lists.head, last, launched);
    for (std::uint64_t l = 0; l < layers_of(pass); ++l) writer_.run(lists.layer, last, launched);
    if (is_first(pass)) writer_.run(lists.embedding, last, launched);
  }

  // The stage a pass gets its input from, or hands its output to.
  [[nodiscard]] std::optional<std::uint32_t> neighbour(const PipelinePass& pass, bool sends) const {
    const bool forward = pass.kind == PassKind::forward;
    if (!forward && pass.kind != PassKind::backward && pass.kind != PassKind::input_gradient)
      return std::nullopt;
    const bool up = forward == sends;  // to the next virtual stage
    if (shape_.stages < 2 || (up ? is_end(pass) : is_first(pass))) return std::nullopt;
    return (pass.stage + (up ? 1 : shape_.stages - 1)) % shape_.stages;
  }

  // Whether any pair of ranks of the two stages lies on two nodes. All pairs send at the same time,
  // and one that crosses between nodes sets their pace.
  [[nodiscard]] bool crosses_nodes(std::uint32_t peer) const {
    const TrainingStep& shape = input_.shape;
    const std::uint64_t ranks =
        shape.tensor_parallel * shape.context_parallel * shape.data_parallel;
    const std::uint64_t per_node = cluster_of(input_.spec).gpus_per_node;
    const std::uint64_t first = std::min(peer, step_.stage()) * ranks;
    const std::uint64_t last = (std::max(peer, step_.stage()) + 1) * ranks - 1;
    return first / per_node != last / per_node;
  }

  // GPUs apart, as the network model takes them.
  [[nodiscard]] std::uint32_t stride_to(std::uint32_t peer) const {
    return crosses_nodes(peer) ? cluster_of(input_.spec).gpus_per_node : 1;
  }

  [[nodiscard]] KernelId message_kernel(bool forward, std::uint32_t peer) {
    const Collective collective{CollectiveKind::send_recv,
                                work_.boundary_elements * element_bytes(work_.dtype), 2,
                                stride_to(peer)};
    std::string name = forward ? "p0_send_activations" : "p1_send_gradients";
    if (crosses_nodes(peer)) name += "_between_nodes";
    return step_.kernels().add(collective_kernel(
        std::move(name), collective, forward ? Pass::forward : Pass::backward, work_.dtype));
  }

  // Receives the input of a pass: posted when the pass before is over, or one pass ahead.
  void receive(std::size_t at) {
    if (overlaps_) {
      if (at == 0) post_receive(0);
      if (at + 1 < passes_.size()) post_receive(at + 1);
    } else {
      post_receive(at);
      wait_until_sent();
    }
    const PipelinePass& pass = passes_[at];
    if (!neighbour(pass, false)) return;
    step_.wait(StepStream::compute, received_.front());
    received_.erase(received_.begin());
  }

  void post_receive(std::size_t at) {
    const PipelinePass& pass = passes_[at];
    const auto from = neighbour(pass, false);
    if (!from) return;
    const bool forward = pass.kind == PassKind::forward;
    const StepStream stream = forward ? StepStream::forward_in : StepStream::backward_in;
    step_.follow(stream, StepStream::compute);
    step_.message(stream, message_kernel(forward, *from), {*from, false});
    received_.push_back(step_.mark(stream));
  }

  void wait_until_sent() {
    if (sent_) step_.wait(StepStream::compute, *std::exchange(sent_, std::nullopt));
  }

  void send(const PipelinePass& pass) {
    const auto to = neighbour(pass, true);
    if (!to) return;
    const bool forward = pass.kind == PassKind::forward;
    const StepStream stream = forward ? StepStream::forward_out : StepStream::backward_out;
    step_.follow(stream, StepStream::compute);
    step_.message(stream, message_kernel(forward, *to), {*to, true});
    if (!overlaps_) sent_ = step_.mark(stream);
  }

  // Where embedding and head share one token table (tied weights), first and last stage each have a
  // gradient of it. These are summed up after the sums over replicas, as in finalize_model_grads of
  // Megatron-LM.
  void sum_tables() {
    const std::uint32_t last = shape_.stages - 1;
    const bool at_an_end = step_.stage() == 0 || step_.stage() == last;
    if (shape_.stages < 2 || work_.copied <= 0.0 || !at_an_end) return;
    const std::uint32_t peer = step_.stage() == 0 ? last : 0;
    const Collective sum{CollectiveKind::all_reduce, work_.copied * gradient_bytes(input_.shape), 2,
                         stride_to(peer)};
    const KernelId kernel = step_.kernels().add(
        collective_kernel("p2_all_reduce_tables", sum, Pass::backward, work_.dtype));
    step_.follow(StepStream::tables, StepStream::compute);
    step_.follow(StepStream::tables, StepStream::data);
    step_.message(StepStream::tables, kernel, {peer, step_.stage() == 0});
    step_.follow(StepStream::compute, StepStream::tables);
  }

  // Parameters that this rank updates: its part where the optimizer is sharded.
  [[nodiscard]] double updated() const {
    if (input_.sharding != Sharding::optimizer) return of_dense_ + of_experts_;
    return of_dense_ / static_cast<double>(data_group(input_, false).size) +
           of_experts_ / static_cast<double>(data_group(input_, true).size);
  }

  // A kernel that goes over all parameters, cut down to `elements` of them.
  [[nodiscard]] KernelId own_part(KernelId id, double elements) {
    if (shape_.stages < 2 && input_.sharding == Sharding::none) return id;
    Kernel kernel = work_.kernel(id);
    kernel.name += fmt::format("_stage{}", step_.stage());
    scale_work(kernel, elements / work_.parameters());
    return step_.kernels().add(kernel);
  }

  const ParallelStepInput& input_;
  PipelineShape shape_;
  bool overlaps_;
  const RankWork& work_;
  Lists split_;
  StepWriter& step_;
  LayerWriter writer_;
  std::vector<PipelinePass> passes_;
  std::uint32_t first_pass_ = 0;              // position of passes_[0] in the schedule
  std::vector<std::uint32_t> last_;           // last microbatch of each chunk
  double of_dense_ = 0.0, of_experts_ = 0.0;  // parameters of this stage
  std::optional<GradientQueue> dense_, experts_;
  std::vector<std::uint32_t> received_;  // marks of messages that were posted
  std::optional<std::uint32_t> sent_;
};

}  // namespace

void write_stage(const ParallelStepInput& input, const RankWork& work,
                 const PipelineSchedule& schedule, StepWriter& step) {
  StageStep(input, work, schedule, step).write();
}

}  // namespace rubato
