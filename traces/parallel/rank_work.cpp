#include "traces/parallel/rank_work.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/layer_kernels.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

class WorkBuilder {
 public:
  explicit WorkBuilder(const TrainingStep& step) : step_(step) { step_.reduce_gradients = false; }

  RankWork make(bool own_head) {
    const bool copy =
        own_head && step_.model.kind == ModelKind::decoder && step_.model.tied_embeddings;
    // A copy does what a table of its own does; only its parameters are counted elsewhere.
    if (copy && step_.kernels != KernelStyle::llm_c) step_.model.tied_embeddings = false;
    GeneratedStep made = generate_training_step(step_);
    work_.kernels = std::move(made.trace.kernels);
    work_.gradients = std::move(made.gradients);
    work_.parts = std::move(made.parts);
    work_.layers = step_.model.layers;
    work_.dtype = stored_dtype(step_);
    for (Segment& segment : made.trace.segments) list_of(segment.name) = segment.launches;
    if (copy) set_copy();
    set_boundary();
    scale_updates(work_.parameters() / parameters_per_rank(step_));
    if (step_.context_parallel > 1) add_ring();
    return std::move(work_);
  }

 private:
  RankWork::Launches& list_of(std::string_view segment) {
    if (segment == "gradient clearing") return work_.clearing;
    if (segment == "embedding") return work_.embedding;
    if (segment == "layer forward") return work_.forward;
    if (segment == "loss") return work_.loss;
    if (segment == "head backward") return work_.head_backward;
    if (segment == "layer backward") return work_.backward;
    if (segment == "embedding backward") return work_.embedding_backward;
    return work_.optimizer;
  }

  [[nodiscard]] double ranks() const { return static_cast<double>(step_.tensor_parallel); }

  // The head's product finishes the gradients of the copy.
  void set_copy() {
    if (step_.kernels != KernelStyle::llm_c) {
      work_.copied = gradient("bwd_gemm_logits_weight");
    } else {
      work_.copied = gradient("17_gemm_dwte") = gradient("45_wte_bwd");
    }
  }

  double& gradient(std::string_view name) {
    const auto at = std::ranges::find(work_.kernels, name, &Kernel::name);
    if (at == work_.kernels.end()) throw DataError(fmt::format("a step has no kernel '{}'", name));
    return work_.gradients[static_cast<std::size_t>(at - work_.kernels.begin())];
  }

  void set_boundary() {
    const double hidden = static_cast<double>(step_.model.hidden);
    // A DiT's layers get the condition of each image besides.
    const double condition =
        step_.model.kind == ModelKind::dit ? static_cast<double>(step_.batch) * hidden : 0.0;
    work_.boundary_elements =
        tokens(step_) * hidden / (step_.sequence_parallel ? ranks() : 1.0) + condition;
  }

  // Scales what is done once for all parameters.
  void scale_updates(double factor) {
    for (const RankWork::Launches* list : {&work_.clearing, &work_.optimizer})
      for (const KernelId id : *list) scale_work(work_.kernels[index(id)], factor);
  }

  KernelId add(Kernel kernel) {
    work_.kernels.push_back(std::move(kernel));
    work_.gradients.push_back(0.0);
    work_.parts.push_back(KernelPart::other);
    return id_at<KernelId>(work_.kernels.size() - 1);
  }

  KernelId merge(const std::string& name, Pass pass, double flops, double elements) {
    return add(derived_kernel(name, name, KernelClass::elementwise, pass, work_.dtype, flops,
                              element_bytes(work_.dtype) * elements));
  }

  // Each rank of a ring passes on the block that it holds. Where the ring leaves a node, its
  // slowest hop, one between nodes, sets its pace.
  void add_ring() {
    const StepSizes z(step_);
    const double queries = z.activation / ranks(), keys = z.rows * z.kv / ranks();
    AttentionRing& ring = work_.ring;
    ring.ranks = static_cast<std::uint32_t>(step_.context_parallel);
    set_other_blocks();
    const Collective hop{CollectiveKind::send_recv, 2.0 * keys * z.e, 2,
                         static_cast<std::uint32_t>(step_.tensor_parallel)};
    ring.send_kv = add(collective_kernel("r0_send_kv", hop, Pass::forward, work_.dtype));
    ring.send_dkv = add(collective_kernel("r1_send_dkv", hop, Pass::backward, work_.dtype));
    // Reads the sum and a block's part, writes the sum.
    ring.merge = merge("r2_merge_blocks", Pass::forward, 4.0 * queries, 3.0 * queries);
    ring.merge_grads = merge("r3_merge_gradients", Pass::backward, queries + 2.0 * keys,
                             3.0 * (queries + 2.0 * keys));
  }

  // Each rank has an early and a late piece of the sequence. Of its b tokens, b (b + 1) / 2 pairs
  // of query and key are its own, and b^2 / 2 are with another rank. The latter are of all queries
  // and the early half of the keys, or of the late half of the queries and all keys: on average
  // three quarters of all operands are moved.
  void set_other_blocks() {
    constexpr double moved = 0.75;
    const double tokens = static_cast<double>(own_seq(step_));
    const std::size_t kernels = work_.kernels.size();
    for (std::size_t k = 0; k < kernels; ++k) {
      const bool attends = work_.parts[k] == KernelPart::attention ||
                           work_.parts[k] == KernelPart::attention_backward;
      if (!attends || step_.kernels == KernelStyle::llm_c) {
        work_.ring.of_other_block.push_back(id_at<KernelId>(k));
        continue;
      }
      Kernel other = work_.kernels[k];
      other.name += "_other_block";
      other.dram_bytes = moved * *other.dram_bytes;
      other.flops =
          *other.flops * (other.kind == KernelClass::attention ? tokens / (tokens + 1.0) : moved);
      // As many pairs as all queries have with half of the keys.
      if (auto& shape = other.attention) {
        shape->kv_tokens = (shape->kv_tokens + 1) / 2;
        shape->causal = false;
      }
      work_.ring.of_other_block.push_back(add(std::move(other)));
    }
  }

  TrainingStep step_;
  RankWork work_;
};

}  // namespace

RankWork::Elements RankWork::gradients_of(const Launches& launches) const {
  Elements sum;
  for (const KernelId kernel : launches)
    (part(kernel) == KernelPart::expert ? sum.of_experts : sum.dense) += gradients[index(kernel)];
  return sum;
}

double RankWork::parameters() const {
  return static_cast<double>(layers) * gradients_of(backward).all() +
         gradients_of(head_backward).all() + gradients_of(embedding_backward).all() - copied;
}

RankWork rank_work(const TrainingStep& step, bool own_head) {
  check(step);
  return WorkBuilder(step).make(own_head);
}

}  // namespace rubato
