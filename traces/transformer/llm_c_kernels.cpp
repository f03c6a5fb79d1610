#include "traces/transformer/llm_c_kernels.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/suggest.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

constexpr double sm_blocks = 2.0 * 80.0;  // layer-norm backward: 2 blocks on each of 80 SMs

class LlmC {
 public:
  LlmC(KernelList& list, const TrainingStep& step)
      : list_(list),
        s_(step),
        e_(list.element()),
        t_(step.tensor_parallel),
        seq_(own_seq(step)),
        rows_(step.batch * seq_) {}

  void launch() {
    if (s_.optimizer) add_gradient_clearing();
    add_embedding();
    add_forward();
    add_loss();
    add_backward();
    add_embedding_backward();
    if (s_.optimizer) add_optimizer();
  }

 private:
  [[nodiscard]] double C() const { return static_cast<double>(s_.model.hidden); }
  [[nodiscard]] double T() const { return static_cast<double>(seq_); }
  [[nodiscard]] double BT() const { return static_cast<double>(rows_); }
  [[nodiscard]] double t() const { return static_cast<double>(t_); }
  [[nodiscard]] double NH() const { return static_cast<double>(s_.model.heads); }
  [[nodiscard]] double activation() const {
    return BT() * C();
  }  // elements of one B x T x C tensor

  // The last kernel finishes the gradients of so many weights and biases of a layer.
  void finishes(double squares, double rows) {
    list_.finishes((squares * C() * C() + rows * C()) / t());
  }

  // A weight gradient accumulates, so its output is read too.
  void gemm(std::string name, std::uint64_t m, std::uint64_t n, std::uint64_t k, bool bias,
            bool accumulates) {
    list_.gemm(std::move(name), KernelClass::gemm, {m, n, k, 1}, bias, accumulates);
  }

  // One product per sequence and head.
  void head_gemm(std::string name, std::uint64_t m, std::uint64_t n, std::uint64_t k) {
    list_.gemm(std::move(name), KernelClass::gemm_batched,
               {m, n, k, s_.batch * s_.model.heads / t_});
  }

  // Bias of a product whose results ranks sum: its gradient is taken behind the sum, and a second
  // kernel adds it up.
  void bias_of_sum(const std::string& id, std::string reduce) {
    list_.between(id, "bwd Bias", KernelClass::bias, BT() * C(), e_ * BT() * C() + 4.0 * C() * t());
    list_.add(std::move(reduce), "bwd Bias reduce", KernelClass::bias_reduce, 5.0 * C(),
              (4.0 * 5.0 + 2.0 * e_) * C());
    finishes(0, 1);
  }
  void bias(const std::string& id, double rows) {
    const double columns = rows * C();
    list_.split(id, "bwd Bias", KernelClass::bias, BT() * columns,
                e_ * BT() * columns + 4.0 * columns * t());
    finishes(0, rows);
  }
  void layernorm_backward(std::string name) {
    // dout and inp are read twice, and the second read misses in a small L2.
    list_.between(std::move(name), "bwd Layernorm", KernelClass::layernorm, 20.0 * activation(),
                  e_ * (6.0 * activation() + 3.0 * C()) + 8.0 * BT() + 16.0 * sm_blocks * C());
    finishes(0, 2);
  }

  void add_embedding() {
    list_.pass(Pass::embedding);
    list_.segment("embedding", 1);
    // The position table is read again for each sequence: streams push it out of a small L2.
    list_.between("00_embedding", "WTE & WPE", KernelClass::embedding, activation(),
                  e_ * 3.0 * activation() + 4.0 * BT());
    list_.between("01_layernorm", "Layernorm", KernelClass::layernorm, 8.0 * activation(),
                  e_ * (2.0 * activation() + 2.0 * C()) + 8.0 * BT());
  }

  void add_forward() {
    list_.pass(Pass::forward);
    list_.segment("layer forward", s_.model.layers);
    const std::uint64_t c = s_.model.hidden, head = c / s_.model.heads;
    const double pairs = BT() * NH() * (T() + 1.0);  // causal half of the score matrices, twice
    list_.gather("c0", "qkv", activation());
    gemm("02_gemm_qkv", 3 * c / t_, rows_, c, true, false);
    list_.split("03_permute_qkv", "Permute", KernelClass::permute, 0.0, e_ * 6.0 * activation());
    list_.part(KernelPart::attention);
    head_gemm("04_gemm_scores", seq_, seq_, head);
    list_.split("05_softmax", "Softmax", KernelClass::softmax, 4.0 * pairs, e_ * pairs);
    head_gemm("06_gemm_context", head, seq_, seq_);
    list_.part(KernelPart::other);
    list_.split("07_unpermute", "Permute", KernelClass::permute, 0.0, e_ * 2.0 * activation());
    gemm("08_gemm_attproj", c, rows_, c / t_, true, false);
    list_.sum("c1", "attproj", activation());
    residual("09_residual_ln2");
    list_.gather("c2", "fc", activation());
    gemm("10_gemm_fc", 4 * c / t_, rows_, c, true, false);
    gelu("11_gelu");
    gemm("12_gemm_fcproj", c, rows_, 4 * c / t_, true, false);
    list_.sum("c3", "fcproj", activation());
    residual("13_residual_ln1");
  }

  void residual(std::string name) {
    list_.between(std::move(name), "Residual", KernelClass::residual_layernorm, 9.0 * activation(),
                  e_ * (4.0 * activation() + 2.0 * C()) + 8.0 * BT());
  }
  void gelu(std::string name) {
    list_.split(std::move(name), "GELU", KernelClass::gelu, 40.0 * activation(),
                e_ * 8.0 * activation());
  }

  void add_loss() {
    list_.pass(Pass::loss);
    list_.segment("loss", 1);
    const std::uint64_t vp = padded_vocabulary(s_), rows = rows_ / t_;
    const double v = static_cast<double>(s_.model.vocab);
    gemm("14_gemm_logits", vp, rows, s_.model.hidden, false, false);
    list_.split("15_classifier", "Softmax", KernelClass::softmax, 8.0 * BT() * v,
                e_ * 2.0 * BT() * v + 8.0 * BT());
    // Everything after the loss works on gradients: the backward pass begins here.
    list_.pass(Pass::backward);
    list_.segment("head backward", 1);
    if (s_.optimizer)
      list_.between("x1_memset_residual_grad", "memset", KernelClass::memset, 0.0,
                    e_ * activation());
    gemm("16_gemm_dlnf", s_.model.hidden, rows, vp, false, false);
    gemm("17_gemm_dwte", s_.model.hidden, vp, rows, false, true);
    layernorm_backward("18_layernorm_bwd_final");
  }

  void add_backward() {
    list_.pass(Pass::backward);
    list_.segment("layer backward", s_.model.layers);
    add_mlp_backward();
    add_attention_backward();
    if (s_.reduce_gradients)
      list_.collective("d0_all_reduce_layer", CollectiveKind::all_reduce,
                       (12.0 * C() * C() + 13.0 * C()) / t(), s_.data_parallel, t_);
  }

  void add_mlp_backward() {
    const std::uint64_t c = s_.model.hidden;
    gelu("19_gelu_recompute");
    bias_of_sum("20_bias_fcproj", "21_bias_reduce_fcproj");
    list_.gather("c4", "dfcproj", activation());
    gemm("22_gemm_dgelu", 4 * c / t_, rows_, c, false, false);
    list_.split("23_gelu_bwd", "bwd GELU", KernelClass::gelu, 96.0 * activation(),
                e_ * 12.0 * activation());
    gemm("24_gemm_dw_fcproj", 4 * c / t_, c, rows_, false, true);
    finishes(4, 0);
    bias("25_bias_fc", 4);
    gemm("26_gemm_dln2", c, rows_, 4 * c / t_, false, false);
    list_.sum("c5", "dln2", activation());
    list_.gather("c6", "fc_input", activation());
    gemm("27_gemm_dw_fc", c, 4 * c / t_, rows_, false, true);
    finishes(4, 0);
    layernorm_backward("28_layernorm_bwd_2");
    bias_of_sum("29_bias_attproj", "30_bias_reduce_attproj");
  }

  void add_attention_backward() {
    const std::uint64_t c = s_.model.hidden, head = c / s_.model.heads;
    const double pairs = BT() * NH() * (T() + 1.0);
    list_.gather("c7", "dattproj", activation());
    gemm("31_gemm_datt", c / t_, rows_, c, false, false);
    gemm("32_gemm_dw_attproj", c / t_, c, rows_, false, true);
    finishes(1, 0);
    list_.split("33_unpermute_bwd", "Permute", KernelClass::permute, 0.0, e_ * 2.0 * activation());
    list_.part(KernelPart::attention_backward);
    head_gemm("34_gemm_dp", seq_, seq_, head);
    head_gemm("35_gemm_dv", head, seq_, seq_);
    // Reads two lower triangles, writes the full square.
    list_.split("36_softmax_bwd", "bwd Softmax", KernelClass::softmax, 2.5 * pairs,
                e_ * BT() * NH() * (2.0 * T() + 1.0));
    head_gemm("37_gemm_dq", head, seq_, seq_);
    head_gemm("38_gemm_dk", head, seq_, seq_);
    list_.part(KernelPart::other);
    list_.split("39_permute_bwd", "Permute", KernelClass::permute, 0.0, e_ * 6.0 * activation());
    bias("40_bias_qkv", 3);
    gemm("41_gemm_dln1", c, rows_, 3 * c / t_, false, false);
    list_.sum("c8", "dln1", activation());
    list_.gather("c9", "qkv_input", activation());
    gemm("42_gemm_dw_qkv", c, 3 * c / t_, rows_, false, true);
    finishes(3, 0);
    layernorm_backward("43_layernorm_bwd_1");
  }

  void add_embedding_backward() {
    list_.pass(Pass::embedding_backward);
    list_.segment("embedding backward", 1);
    const double u = distinct_tokens(BT(), static_cast<double>(s_.model.vocab));
    list_.between("44_wpe_bwd", "bwd WPE", KernelClass::embedding, activation(),
                  e_ * (activation() + 2.0 * T() * C()));
    list_.finishes(position_table() / t());
    list_.between("45_wte_bwd", "bwd WTE", KernelClass::embedding, activation(),
                  e_ * (activation() + 2.0 * u * C()) + 32.0 * BT() + 128.0 * u);
    list_.finishes(token_table() / t());
    if (s_.reduce_gradients)
      list_.collective("d1_all_reduce_rest", CollectiveKind::all_reduce,
                       (token_table() + position_table() + 2.0 * C()) / t(), s_.data_parallel, t_);
  }

  void add_gradient_clearing() {
    list_.pass(Pass::optimizer);
    list_.segment("gradient clearing", 1);
    list_.add("x0_memset_grads", "memset", KernelClass::memset, 0.0, e_ * parameters_per_rank(s_));
  }

  void add_optimizer() {
    list_.pass(Pass::optimizer);
    list_.segment("optimizer", 1);
    const double n = parameters_per_rank(s_);
    list_.add("x4_grad_norm", "grad norm", KernelClass::reduce, 2.0 * n, e_ * n);
    // Reads gradient, both moments and master weight; writes all but the gradient, and the weight.
    list_.add("x6_adamw", "AdamW", KernelClass::optimizer, 15.0 * n, (24.0 + 2.0 * e_) * n);
  }

  [[nodiscard]] double token_table() const {
    return static_cast<double>(padded_vocabulary(s_)) * C();
  }
  [[nodiscard]] double position_table() const { return static_cast<double>(s_.seq) * C(); }

  KernelList& list_;
  const TrainingStep& s_;
  double e_;
  std::uint64_t t_;
  std::uint64_t seq_;  ///< of a rank
  std::uint64_t rows_;
};

}  // namespace

std::vector<std::string> gpt_preset_names() {
  std::vector<std::string> names = model_shape_names();
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("gpt"); });
  return names;
}

TrainingStep gpt_preset(std::string_view name) {
  const std::vector<std::string> names = gpt_preset_names();
  if (std::ranges::find(names, name) == names.end())
    throw UsageError(fmt::format("there is no model '{}'{}", name, did_you_mean(name, names)));
  TrainingStep step{.model = load_model_shape(name), .batch = 40, .seq = 1024};
  step.kernels = KernelStyle::llm_c;
  step.optimizer = false;
  return step;
}

bool is_gpt(const ModelShape& model) {
  return model.kind == ModelKind::decoder && model.norm == Norm::layernorm &&
         model.activation == Activation::gelu && model.positions == PositionEncoding::learned &&
         model.biases && model.tied_embeddings && model.experts == 0 &&
         model.kv_heads == model.heads && model.ffn == 4 * model.hidden;
}

void check_llm_c(const TrainingStep& step) {
  const ErrorDetail fused{.in = {}, .hint = "--kernels fused"};
  if (!is_gpt(step.model))
    throw UsageError(
        fmt::format("model '{}' is not a GPT; llm.c has kernels for LayerNorm, GELU, learned "
                    "positions, biases, a head that is the token table, an FFN of four times the "
                    "hidden size and as many KV heads as heads",
                    step.model.name),
        fused);
  if (step.recomputation != Recomputation::none)
    throw UsageError(fmt::format("recomputation {}: llm.c's kernels make GELU again, no more",
                                 name_of(step.recomputation)),
                     fused);
  if (step.fp32_gradients)
    throw UsageError("gradients in fp32: llm.c's kernels keep them in the model's type", fused);
}

void launch_llm_c(KernelList& list, const TrainingStep& step) { LlmC(list, step).launch(); }

}  // namespace rubato
