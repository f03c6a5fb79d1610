#include "traces/transformer/training_step.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/version.hpp"
#include "traces/transformer/layer_kernels.hpp"
#include "traces/transformer/llm_c_kernels.hpp"
#include "traces/transformer/memory.hpp"
#include "traces/transformer/model_ends.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

constexpr std::array<std::string_view, 3> recomputation_names{"none", "selective", "full"};

class StepBuilder {
 public:
  explicit StepBuilder(const TrainingStep& step)
      : step_(step),
        list_({.dtype = stored_dtype(step),
               .product = product_dtype(step),
               .layer_product = layer_product_dtype(step),
               .eager = step.kernels == KernelStyle::eager,
               .autocast = step.kernels == KernelStyle::eager && step.phase == StepPhase::training,
               .tensor_parallel = step.tensor_parallel,
               .sequence_parallel = step.sequence_parallel,
               .collectives = step.collectives,
               .accumulates = step.accumulate_gradients || step.kernels == KernelStyle::llm_c,
               .fp32_gradients = step.fp32_gradients}),
        layer_(list_, step_),
        context_{list_, layer_, step_, StepSizes(step)} {}

  GeneratedStep build() {
    if (step_.kernels == KernelStyle::llm_c) {
      launch_llm_c(list_, step_);
      return list_.take(name(), provenance());
    }
    const std::uint64_t layers = step_.model.layers;
    if (step_.optimizer && step_.accumulate_gradients) clear();
    open(Pass::embedding, "embedding", 1);
    embed(context_);
    open(Pass::forward, "layer forward", layers);
    layer_.forward();
    if (step_.phase != StepPhase::training) {
      open(Pass::forward, "head", 1);
      next_tokens(context_);
      return list_.take(name(), provenance());
    }
    open(Pass::loss, "loss", 1);
    head_and_loss(context_);
    open(Pass::backward, "head backward", 1);
    head_backward(context_);
    open(Pass::backward, "layer backward", layers);
    layer_.backward();
    if (step_.reduce_gradients) reduce_layer();
    open(Pass::embedding_backward, "embedding backward", 1);
    embed_backward(context_);
    if (step_.reduce_gradients) reduce_rest();
    if (step_.optimizer) update();
    return list_.take(name(), provenance());
  }

 private:
  void open(Pass pass, std::string name, std::uint64_t repeat) {
    list_.pass(pass);
    list_.segment(std::move(name), repeat);
  }

  // Replicas lie a tensor-parallel group apart. Replicas of an expert lie as many of these groups
  // apart as ranks share the experts.
  void reduce_layer() {
    const ParameterCount count = count_parameters(step_.model);
    const double t = static_cast<double>(step_.tensor_parallel);
    const std::uint64_t ep = step_.expert_parallel;
    const double copies = static_cast<double>(kv_copies(step_) - 1) * kv_weights(step_.model);
    list_.reduce_gradients("bwd_all_reduce_layer", (count.layer + copies - count.layer_experts) / t,
                           step_.data_parallel, step_.tensor_parallel);
    if (step_.model.experts == 0) return;
    list_.reduce_gradients("bwd_all_reduce_experts",
                           count.layer_experts / static_cast<double>(ep) / t,
                           step_.data_parallel / ep, step_.tensor_parallel * ep);
  }

  void reduce_rest() {
    const ParameterCount count = count_parameters(step_.model);
    const double rest = count.total - static_cast<double>(step_.model.layers) * count.layer;
    list_.reduce_gradients("bwd_all_reduce_rest", rest / static_cast<double>(step_.tensor_parallel),
                           step_.data_parallel, step_.tensor_parallel);
  }

  void clear() {
    open(Pass::optimizer, "gradient clearing", 1);
    list_.add("opt_memset_gradients", "memset", KernelClass::memset, 0.0,
              list_.gradient_element() * parameters_per_rank(step_));
  }

  // PyTorch's AdamW runs over lists of tensors, an operator after the other.
  void update_eagerly() {
    const double n = parameters_per_rank(step_), fp32 = element_bytes(Dtype::fp32);
    for (const auto& [name, passes] : {std::pair{"decay", 2.0},
                                       {"lerp_first", 3.0},
                                       {"scale_second", 2.0},
                                       {"addcmul_second", 3.0},
                                       {"sqrt", 2.0},
                                       {"correct", 2.0},
                                       {"add_epsilon", 2.0},
                                       {"addcdiv", 4.0}})
      list_.add(fmt::format("opt_foreach_{}", name), "AdamW, foreach", KernelClass::optimizer, n,
                fp32 * passes * n);
  }

  // AdamW reads gradient, both moments and master weight; writes all but the gradient, and the
  // weight. In fp32 the weight is its own master.
  void update() {
    open(Pass::optimizer, "optimizer", 1);
    if (step_.kernels == KernelStyle::eager) return update_eagerly();
    const double n = parameters_per_rank(step_), e = list_.element(), g = list_.gradient_element();
    const double moments = 16.0, weights = step_.dtype == Dtype::fp32 ? 2.0 * e : 8.0 + e;
    list_.add("opt_gradient_norm", "gradient norm", KernelClass::reduce, 2.0 * n, g * n);
    list_.add("opt_adamw", "AdamW", KernelClass::optimizer, 15.0 * n, (moments + weights + g) * n);
  }

  [[nodiscard]] std::string name() const {
    const std::string experts =
        step_.expert_parallel > 1 ? fmt::format("-ep{}", step_.expert_parallel) : "";
    const std::string again = step_.recomputation == Recomputation::none
                                  ? ""
                                  : fmt::format("-recompute-{}", name_of(step_.recomputation));
    const bool eager = step_.kernels == KernelStyle::eager;
    const char* style = eager ? (step_.flash_attention ? "-eager-flash" : "-eager")
                              : (step_.flash_attention ? "" : "-unfused");
    if (step_.phase != StepPhase::training)
      return fmt::format("{}-{}-b{}-s{}-tp{}{}", step_.model.name, name_of(step_.phase),
                         step_.batch, step_.seq, step_.tensor_parallel, style);
    return fmt::format("{}-b{}-s{}-tp{}-dp{}{}{}{}", step_.model.name, step_.batch, own_or_whole(),
                       step_.tensor_parallel, step_.data_parallel, experts, style, again);
  }

  // llm.c knows of no ring: its sequence is the rank's part.
  [[nodiscard]] std::uint64_t own_or_whole() const {
    return step_.kernels == KernelStyle::llm_c ? own_seq(step_) : step_.seq;
  }

  [[nodiscard]] Provenance llm_c_provenance() const {
    const ModelShape& model = step_.model;
    return {fmt::format("rubato {}", program_version()),
            "kernel sequence of karpathy/llm.c f1e2ace; formulas in docs/traces.md",
            fmt::format("model={} layers={} hidden={} heads={} vocab={} batch={} seq={} dtype={} "
                        "tp={} dp={} optimizer={}{}{}",
                        model.name, model.layers, model.hidden, model.heads, model.vocab,
                        step_.batch, own_seq(step_), name_of(step_.dtype), step_.tensor_parallel,
                        step_.data_parallel, step_.optimizer,
                        step_.collectives ? "" : " collectives=none", precision())};
  }

  // Of products, where the element type leaves it open.
  [[nodiscard]] std::string precision() const {
    return step_.dtype == Dtype::fp32 && product_dtype(step_) != Dtype::fp32
               ? fmt::format(" products={}", name_of(product_dtype(step_)))
               : "";
  }

  [[nodiscard]] Provenance provenance() const {
    if (step_.kernels == KernelStyle::llm_c) return llm_c_provenance();
    const bool eager = step_.kernels == KernelStyle::eager;
    const MemoryPerRank memory = memory_per_rank(step_);
    return {fmt::format("rubato {}", program_version()),
            fmt::format("{}; kernels of {}, formulas in docs/model-shapes.md", step_.model.source,
                        eager ? "eager PyTorch" : "fused frameworks"),
            fmt::format("model={} batch={} seq={} dtype={} tp={} dp={} ep={} optimizer={} "
                        "attention={} recompute={} held_bytes={:.0f} activation_bytes={:.0f}{}{}",
                        step_.model.name, step_.batch, step_.seq, name_of(step_.dtype),
                        step_.tensor_parallel, step_.data_parallel, step_.expert_parallel,
                        step_.optimizer, step_.flash_attention ? "flash" : "unfused",
                        name_of(step_.recomputation), memory.total(), memory.activations,
                        step_.collectives ? "" : " collectives=none", shape_options())};
  }

  // The model's shape, which options may have changed under its name, and what is not as usual.
  [[nodiscard]] std::string shape_options() const {
    const ModelShape& model = step_.model;
    std::string text =
        fmt::format(" layers={} hidden={} vocab={}", model.layers, model.hidden, model.vocab);
    if (model.experts > 0)
      text += fmt::format(" experts={} top_k={}", model.experts, model.experts_per_token);
    if (step_.phase != StepPhase::training) text += fmt::format(" phase={}", name_of(step_.phase));
    if (!step_.sequence_parallel) text += " sequence_parallel=false";
    if (step_.fp32_gradients) text += " fp32_gradients=true";
    if (step_.kernels == KernelStyle::eager)
      text += fmt::format(" kernels=eager dropout={}", step_.dropout);
    return text + precision();
  }

  const TrainingStep& step_;
  KernelList list_;
  LayerKernels layer_;
  StepContext context_;
};

}  // namespace

std::string_view name_of(Recomputation value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < recomputation_names.size() ? recomputation_names[index] : std::string_view{};
}

std::string_view name_of(StepPhase value) noexcept {
  switch (value) {
    case StepPhase::training: return "training";
    case StepPhase::prefill: return "prefill";
    case StepPhase::decode: return "decode";
  }
  return {};
}

std::string_view name_of(KernelStyle value) noexcept {
  switch (value) {
    case KernelStyle::fused: return "fused";
    case KernelStyle::eager: return "eager";
    case KernelStyle::llm_c: return "llm.c";
  }
  return {};
}

Recomputation recomputation_from_name(std::string_view name) {
  const auto found = std::ranges::find(recomputation_names, name);
  if (found == recomputation_names.end())
    throw UsageError(fmt::format("recomputation '{}' is not known; expected one of {}", name,
                                 fmt::join(recomputation_names, ", ")));
  return static_cast<Recomputation>(found - recomputation_names.begin());
}

Dtype stored_dtype(const TrainingStep& step) {
  return step.dtype == Dtype::fp8 || step.dtype == Dtype::nvfp4 ? Dtype::bf16 : step.dtype;
}

Dtype product_dtype(const TrainingStep& step) {
  const bool tensor_cores = step.matmul_precision != MatmulPrecision::highest;
  return step.dtype == Dtype::fp32 && tensor_cores ? Dtype::tf32 : stored_dtype(step);
}

Dtype layer_product_dtype(const TrainingStep& step) {
  return stored_dtype(step) == step.dtype ? product_dtype(step) : step.dtype;
}

std::uint64_t own_seq(const TrainingStep& step) {
  return step.phase == StepPhase::decode ? 1 : step.seq / step.context_parallel;
}

double tokens(const TrainingStep& step) {
  return static_cast<double>(step.batch) * static_cast<double>(own_seq(step));
}

double needed_pairs(const TrainingStep& step) {
  const double length = static_cast<double>(step.seq);
  if (step.phase == StepPhase::decode) return tokens(step) * length;
  return tokens(step) * (step.model.causal() ? (length + 1.0) / 2.0 : length);
}

double attention_pairs(const TrainingStep& step) {
  if (step.phase == StepPhase::decode) return needed_pairs(step);
  TrainingStep own = step;
  own.seq = own_seq(step);
  own.context_parallel = 1;
  return step.flash_attention ? needed_pairs(own) : tokens(own) * static_cast<double>(own.seq);
}

std::uint64_t kv_copies(const TrainingStep& step) {
  return std::max<std::uint64_t>(1, step.tensor_parallel / step.model.kv_heads);
}

std::uint64_t padded_vocabulary(const TrainingStep& step) {
  const std::uint64_t t = step.tensor_parallel;
  const bool llm_c = step.kernels == KernelStyle::llm_c;
  const std::uint64_t multiple = llm_c ? 128 : (t > 1 ? 128 * t : 8);
  return (step.model.vocab + multiple - 1) / multiple * multiple;
}

GeneratedStep generate_training_step(const TrainingStep& step) {
  check(step);
  return StepBuilder(step).build();
}

}  // namespace rubato
