#include "traces/gpt.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/suggest.hpp"
#include "common/version.hpp"
#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/limits.hpp"

namespace rubato {

namespace {

constexpr std::uint64_t vocab_multiple = 128;
constexpr double sm_blocks = 2.0 * 80.0;  // layer-norm backward: 2 blocks on each of 80 SMs

std::uint64_t padded_vocab(const GptShape& s) {
  return (s.vocab + vocab_multiple - 1) / vocab_multiple * vocab_multiple;
}

double token_table(const GptShape& s) {
  return static_cast<double>(padded_vocab(s)) * static_cast<double>(s.hidden);
}

double position_table(const GptShape& s) {
  return static_cast<double>(s.seq * s.context_parallel) * static_cast<double>(s.hidden);
}

// Builds the kernel list. Lengths are doubles because byte counts are.
class Builder : private KernelList {
 public:
  explicit Builder(const GptShape& shape)
      : KernelList({.dtype = shape.dtype,
                    .tensor_parallel = shape.tensor_parallel,
                    .sequence_parallel = shape.sequence_parallel,
                    .collectives = shape.collectives,
                    .accumulates = true}),
        s_(shape),
        e_(element_bytes(shape.dtype)),
        t_(shape.tensor_parallel),
        rows_(shape.batch * shape.seq) {}

  GeneratedStep build() {
    if (s_.optimizer) add_gradient_clearing();
    add_embedding();
    add_forward();
    add_loss();
    add_backward();
    add_embedding_backward();
    if (s_.optimizer) add_optimizer();
    return take(
        fmt::format("{}-b{}-s{}-tp{}-dp{}", s_.model, s_.batch, s_.seq, t_, s_.data_parallel),
        {fmt::format("rubato {}", program_version()),
         "kernel sequence of karpathy/llm.c f1e2ace; formulas in docs/traces.md",
         fmt::format("model={} layers={} hidden={} heads={} vocab={} batch={} seq={} dtype={} "
                     "tp={} dp={} optimizer={}{}",
                     s_.model, s_.layers, s_.hidden, s_.heads, s_.vocab, s_.batch, s_.seq,
                     name_of(s_.dtype), t_, s_.data_parallel, s_.optimizer,
                     s_.collectives ? "" : " collectives=none")});
  }

 private:
  [[nodiscard]] double C() const { return static_cast<double>(s_.hidden); }
  [[nodiscard]] double T() const { return static_cast<double>(s_.seq); }
  [[nodiscard]] double BT() const { return static_cast<double>(rows_); }
  [[nodiscard]] double t() const { return static_cast<double>(t_); }
  [[nodiscard]] double NH() const { return static_cast<double>(s_.heads); }
  [[nodiscard]] double L() const { return static_cast<double>(s_.layers); }
  [[nodiscard]] double activation() const {
    return BT() * C();
  }  // elements of one B x T x C tensor

  // The last kernel finishes the gradients of so many weights and biases of a layer.
  void finishes(double squares, double rows) {
    KernelList::finishes((squares * C() * C() + rows * C()) / t());
  }

  // A weight gradient accumulates, so its output is read too.
  void gemm(std::string name, std::uint64_t m, std::uint64_t n, std::uint64_t k, bool bias,
            bool accumulates) {
    KernelList::gemm(std::move(name), KernelClass::gemm, {m, n, k, 1}, bias, accumulates);
  }

  // One product per sequence and head.
  void head_gemm(std::string name, std::uint64_t m, std::uint64_t n, std::uint64_t k) {
    KernelList::gemm(std::move(name), KernelClass::gemm_batched,
                     {m, n, k, s_.batch * s_.heads / t_});
  }

  // Bias of a product whose results ranks sum: its gradient is taken behind the sum, and a second
  // kernel adds it up.
  void bias_of_sum(const std::string& id, std::string reduce) {
    between(id, "bwd Bias", KernelClass::bias, BT() * C(), e_ * BT() * C() + 4.0 * C() * t());
    add(std::move(reduce), "bwd Bias reduce", KernelClass::bias_reduce, 5.0 * C(),
        (4.0 * 5.0 + 2.0 * e_) * C());
    finishes(0, 1);
  }
  void bias(const std::string& id, double rows) {
    const double columns = rows * C();
    split(id, "bwd Bias", KernelClass::bias, BT() * columns,
          e_ * BT() * columns + 4.0 * columns * t());
    finishes(0, rows);
  }
  void layernorm_backward(std::string name) {
    // dout and inp are read twice, and the second read misses in a small L2.
    between(std::move(name), "bwd Layernorm", KernelClass::layernorm, 20.0 * activation(),
            e_ * (6.0 * activation() + 3.0 * C()) + 8.0 * BT() + 16.0 * sm_blocks * C());
    finishes(0, 2);
  }

  void add_embedding() {
    pass(Pass::embedding);
    segment("embedding", 1);
    // The position table is read again for each sequence: streams push it out of a small L2.
    between("00_embedding", "WTE & WPE", KernelClass::embedding, activation(),
            e_ * 3.0 * activation() + 4.0 * BT());
    between("01_layernorm", "Layernorm", KernelClass::layernorm, 8.0 * activation(),
            e_ * (2.0 * activation() + 2.0 * C()) + 8.0 * BT());
  }

  void add_forward() {
    pass(Pass::forward);
    segment("layer forward", s_.layers);
    const std::uint64_t c = s_.hidden, head = c / s_.heads;
    const double pairs = BT() * NH() * (T() + 1.0);  // causal half of the score matrices, twice
    gather("c0", "qkv", activation());
    gemm("02_gemm_qkv", 3 * c / t_, rows_, c, true, false);
    split("03_permute_qkv", "Permute", KernelClass::permute, 0.0, e_ * 6.0 * activation());
    part(KernelPart::attention);
    head_gemm("04_gemm_scores", s_.seq, s_.seq, head);
    split("05_softmax", "Softmax", KernelClass::softmax, 4.0 * pairs, e_ * pairs);
    head_gemm("06_gemm_context", head, s_.seq, s_.seq);
    part(KernelPart::other);
    split("07_unpermute", "Permute", KernelClass::permute, 0.0, e_ * 2.0 * activation());
    gemm("08_gemm_attproj", c, rows_, c / t_, true, false);
    sum("c1", "attproj", activation());
    residual("09_residual_ln2");
    gather("c2", "fc", activation());
    gemm("10_gemm_fc", 4 * c / t_, rows_, c, true, false);
    gelu("11_gelu");
    gemm("12_gemm_fcproj", c, rows_, 4 * c / t_, true, false);
    sum("c3", "fcproj", activation());
    residual("13_residual_ln1");
  }

  void residual(std::string name) {
    between(std::move(name), "Residual", KernelClass::residual_layernorm, 9.0 * activation(),
            e_ * (4.0 * activation() + 2.0 * C()) + 8.0 * BT());
  }
  void gelu(std::string name) {
    split(std::move(name), "GELU", KernelClass::gelu, 40.0 * activation(), e_ * 8.0 * activation());
  }

  void add_loss() {
    pass(Pass::loss);
    segment("loss", 1);
    const std::uint64_t vp = padded_vocab(s_), rows = rows_ / t_;
    const double v = static_cast<double>(s_.vocab);
    gemm("14_gemm_logits", vp, rows, s_.hidden, false, false);
    split("15_classifier", "Softmax", KernelClass::softmax, 8.0 * BT() * v,
          e_ * 2.0 * BT() * v + 8.0 * BT());
    // Everything after the loss works on gradients: the backward pass begins here.
    pass(Pass::backward);
    segment("head backward", 1);
    if (s_.optimizer)
      between("x1_memset_residual_grad", "memset", KernelClass::memset, 0.0, e_ * activation());
    gemm("16_gemm_dlnf", s_.hidden, rows, vp, false, false);
    gemm("17_gemm_dwte", s_.hidden, vp, rows, false, true);
    layernorm_backward("18_layernorm_bwd_final");
  }

  void add_backward() {
    pass(Pass::backward);
    segment("layer backward", s_.layers);
    add_mlp_backward();
    add_attention_backward();
    collective("d0_all_reduce_layer", CollectiveKind::all_reduce,
               (12.0 * C() * C() + 13.0 * C()) / t(), s_.data_parallel, t_);
  }

  void add_mlp_backward() {
    const std::uint64_t c = s_.hidden;
    gelu("19_gelu_recompute");
    bias_of_sum("20_bias_fcproj", "21_bias_reduce_fcproj");
    gather("c4", "dfcproj", activation());
    gemm("22_gemm_dgelu", 4 * c / t_, rows_, c, false, false);
    split("23_gelu_bwd", "bwd GELU", KernelClass::gelu, 96.0 * activation(),
          e_ * 12.0 * activation());
    gemm("24_gemm_dw_fcproj", 4 * c / t_, c, rows_, false, true);
    finishes(4, 0);
    bias("25_bias_fc", 4);
    gemm("26_gemm_dln2", c, rows_, 4 * c / t_, false, false);
    sum("c5", "dln2", activation());
    gather("c6", "fc_input", activation());
    gemm("27_gemm_dw_fc", c, 4 * c / t_, rows_, false, true);
    finishes(4, 0);
    layernorm_backward("28_layernorm_bwd_2");
    bias_of_sum("29_bias_attproj", "30_bias_reduce_attproj");
  }

  void add_attention_backward() {
    const std::uint64_t c = s_.hidden, head = c / s_.heads;
    const double pairs = BT() * NH() * (T() + 1.0);
    gather("c7", "dattproj", activation());
    gemm("31_gemm_datt", c / t_, rows_, c, false, false);
    gemm("32_gemm_dw_attproj", c / t_, c, rows_, false, true);
    finishes(1, 0);
    split("33_unpermute_bwd", "Permute", KernelClass::permute, 0.0, e_ * 2.0 * activation());
    part(KernelPart::attention_backward);
    head_gemm("34_gemm_dp", s_.seq, s_.seq, head);
    head_gemm("35_gemm_dv", head, s_.seq, s_.seq);
    // Reads two lower triangles, writes the full square.
    split("36_softmax_bwd", "bwd Softmax", KernelClass::softmax, 2.5 * pairs,
          e_ * BT() * NH() * (2.0 * T() + 1.0));
    head_gemm("37_gemm_dq", head, s_.seq, s_.seq);
    head_gemm("38_gemm_dk", head, s_.seq, s_.seq);
    part(KernelPart::other);
    split("39_permute_bwd", "Permute", KernelClass::permute, 0.0, e_ * 6.0 * activation());
    bias("40_bias_qkv", 3);
    gemm("41_gemm_dln1", c, rows_, 3 * c / t_, false, false);
    sum("c8", "dln1", activation());
    gather("c9", "qkv_input", activation());
    gemm("42_gemm_dw_qkv", c, 3 * c / t_, rows_, false, true);
    finishes(3, 0);
    layernorm_backward("43_layernorm_bwd_1");
  }

  void add_embedding_backward() {
    pass(Pass::embedding_backward);
    segment("embedding backward", 1);
    const double u = distinct_tokens(BT(), static_cast<double>(s_.vocab));
    between("44_wpe_bwd", "bwd WPE", KernelClass::embedding, activation(),
            e_ * (activation() + 2.0 * T() * C()));
    KernelList::finishes(position_table(s_) / t());
    between("45_wte_bwd", "bwd WTE", KernelClass::embedding, activation(),
            e_ * (activation() + 2.0 * u * C()) + 32.0 * BT() + 128.0 * u);
    KernelList::finishes(token_table(s_) / t());
    collective("d1_all_reduce_rest", CollectiveKind::all_reduce,
               (token_table(s_) + position_table(s_) + 2.0 * C()) / t(), s_.data_parallel, t_);
  }

  void add_gradient_clearing() {
    pass(Pass::optimizer);
    segment("gradient clearing", 1);
    split("x0_memset_grads", "memset", KernelClass::memset, 0.0, e_ * parameter_count(s_));
  }

  void add_optimizer() {
    pass(Pass::optimizer);
    segment("optimizer", 1);
    const double n = parameter_count(s_);
    split("x4_grad_norm", "grad norm", KernelClass::reduce, 2.0 * n, e_ * n);
    // Reads gradient, both moments and master weight; writes all but the gradient, and the weight.
    split("x6_adamw", "AdamW", KernelClass::optimizer, 15.0 * n, (24.0 + 2.0 * e_) * n);
  }

  GptShape s_;
  double e_;
  std::uint64_t t_;
  std::uint64_t rows_;
};

void check(const GptShape& s) {
  expect_range("layers", s.layers);
  expect_range("hidden", s.hidden);
  expect_range("heads", s.heads);
  expect_range("vocab", s.vocab);
  expect_range("batch", s.batch);
  expect_range("seq", s.seq);
  expect_range("tp", s.tensor_parallel);
  expect_range("dp", s.data_parallel);
  expect_training_dtype(s.dtype);
  expect_divides("heads", s.heads, "hidden", s.hidden);
  expect_divides("tp", s.tensor_parallel, "heads", s.heads);
  expect_divides("tp", s.tensor_parallel, "batch x seq", s.batch * s.seq);
}

}  // namespace

std::vector<std::string> gpt_preset_names() {
  std::vector<std::string> names = model_shape_names();
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("gpt"); });
  return names;
}

GptShape gpt_preset(std::string_view name) {
  const std::vector<std::string> names = gpt_preset_names();
  if (std::ranges::find(names, name) == names.end())
    throw UsageError(fmt::format("there is no model '{}'{}", name, did_you_mean(name, names)));
  return gpt_shape(load_model_shape(name));
}

GptShape gpt_shape(const ModelShape& model) {
  if (!is_gpt(model))
    throw UsageError(
        fmt::format("model '{}' is not a GPT; llm.c has kernels for LayerNorm, GELU, learned "
                    "positions, biases, a head that is the token table, an FFN of four times the "
                    "hidden size and as many KV heads as heads",
                    model.name),
        {.in = {}, .hint = "--kernels fused"});
  GptShape shape;
  shape.model = model.name;
  shape.layers = model.layers;
  shape.hidden = model.hidden;
  shape.heads = model.heads;
  shape.vocab = model.vocab;
  shape.seq = std::min(shape.seq, model.context);
  return shape;
}

GptShape gpt_shape(const TrainingStep& step) {
  GptShape shape = gpt_shape(step.model);
  if (step.recomputation != Recomputation::none)
    throw UsageError(fmt::format("recomputation {}: llm.c's kernels make GELU again, no more",
                                 name_of(step.recomputation)),
                     {.in = {}, .hint = "--kernels fused"});
  if (step.fp32_gradients)
    throw UsageError("gradients in fp32: llm.c's kernels keep them in the model's type",
                     {.in = {}, .hint = "--kernels fused"});
  shape.batch = step.batch;
  shape.seq = own_seq(step);
  shape.context_parallel = step.context_parallel;
  shape.dtype = step.dtype;
  shape.tensor_parallel = step.tensor_parallel;
  shape.sequence_parallel = step.sequence_parallel;
  shape.data_parallel = step.data_parallel;
  shape.collectives = step.collectives;
  shape.optimizer = step.optimizer;
  return shape;
}

bool is_gpt(const ModelShape& model) {
  return model.kind == ModelKind::decoder && model.norm == Norm::layernorm &&
         model.activation == Activation::gelu && model.positions == PositionEncoding::learned &&
         model.biases && model.tied_embeddings && model.experts == 0 &&
         model.kv_heads == model.heads && model.ffn == 4 * model.hidden;
}

double parameter_count(const GptShape& s) {
  const double c = static_cast<double>(s.hidden);
  return static_cast<double>(s.layers) * (12.0 * c * c + 13.0 * c) + token_table(s) +
         position_table(s) + 2.0 * c;
}

// Per layer llm.c keeps the residual stream and the output of the norms twice each, queries, keys
// and values, what attention gives, the FFN before its GELU (12 times `width` so far), and the
// attention weights. Outside of the layers it keeps the embedding, the last norm, one GELU that is
// made again (6 times `width`), and the logits.
MemoryPerRank memory_per_rank(const GptShape& s) {
  const double e = element_bytes(s.dtype), t = static_cast<double>(s.tensor_parallel);
  const double rows = static_cast<double>(s.batch) * static_cast<double>(s.seq);
  const double width = rows * static_cast<double>(s.hidden);
  const double weights = rows * static_cast<double>(s.heads) * static_cast<double>(s.seq);
  const double outside = 6.0 * width + rows * static_cast<double>(padded_vocab(s));
  const double parameters = parameter_count(s) / t;
  constexpr double moments_and_master = 12.0;
  return {
      .parameters = e * parameters,
      .gradients = e * parameters,
      .optimizer = s.optimizer ? moments_and_master * parameters : 0.0,
      .activations = e * (static_cast<double>(s.layers) * (12.0 * width + weights) + outside) / t};
}

GeneratedStep generate_gpt_step(const GptShape& shape) {
  check(shape);
  return Builder(shape).build();
}

Trace generate_gpt_trace(const GptShape& shape) { return generate_gpt_step(shape).trace; }

}  // namespace rubato
