#include "traces/transformer/layer_kernels.hpp"

#include "traces/transformer/parameters.hpp"

namespace rubato {

StepSizes::StepSizes(const TrainingStep& step)
    : e(element_bytes(stored_dtype(step))),
      h(static_cast<double>(step.model.hidden)),
      batch(static_cast<double>(step.batch)),
      rows(rubato::tokens(step)),
      activation(rows * h),
      kv(static_cast<double>(kv_copies(step) * step.model.kv_width())),
      pairs(attention_pairs(step) * static_cast<double>(step.model.heads)),
      heads(static_cast<double>(step.model.heads)),
      tokens(step.batch * own_seq(step)),
      t(step.tensor_parallel) {}

// ---- products

LinearLayer LayerKernels::qkv() const {
  return {"qkv",         (model_.hidden + 2 * kv_copies(step_) * model_.kv_width()) / z_.t,
          model_.hidden, z_.tokens,
          model_.biases, LinearSplit::outputs,
          true};
}

LinearLayer LayerKernels::projection() const {
  return {"projection",        model_.hidden, model_.hidden / z_.t, z_.tokens, model_.biases,
          LinearSplit::inputs, true};
}

LinearLayer LayerKernels::up() const {
  return {model_.activation == Activation::swiglu ? "gate_up" : "up",
          model_.ffn_outputs() / z_.t,
          model_.hidden,
          z_.tokens,
          model_.biases,
          LinearSplit::outputs,
          true};
}

LinearLayer LayerKernels::down() const {
  return {"down", model_.hidden, model_.ffn / z_.t, z_.tokens, model_.biases, LinearSplit::inputs,
          true};
}

LinearLayer LayerKernels::router() const {
  return {"router",      model_.experts,
          model_.hidden, step_.sequence_parallel ? z_.tokens / z_.t : z_.tokens,
          false,         LinearSplit::rows};
}

LinearLayer LayerKernels::shift_and_scale() const {
  return {"modulation", 6 * model_.hidden, model_.hidden, step_.batch, true};
}

void LayerKernels::head_product(const std::string& name, std::uint64_t m, std::uint64_t n,
                                std::uint64_t k) {
  list_.gemm(name, KernelClass::gemm_batched, {m, n, k, step_.batch * model_.heads / z_.t});
}

// ---- norms, activation, collectives

void LayerKernels::norm(const std::string& name) {
  if (eager()) return eager_norm(name);
  const bool centred = model_.norm == Norm::layernorm;
  const double tables = centred ? 2.0 : 1.0, flops = centred ? 8.0 : 5.0;
  list_.between(name, "norm", KernelClass::layernorm, flops * z_.activation,
                z_.e * (2.0 * z_.activation + tables * z_.h) + tables * 4.0 * z_.rows);
}

void LayerKernels::residual_norm(const std::string& name) {
  const bool centred = model_.norm == Norm::layernorm;
  const double tables = centred ? 2.0 : 1.0, flops = centred ? 9.0 : 6.0;
  list_.between(name, "residual + norm", KernelClass::residual_layernorm, flops * z_.activation,
                z_.e * (4.0 * z_.activation + tables * z_.h) + tables * 4.0 * z_.rows);
}

// Reads the gradient of its output and its input, and where there is one the gradient of the
// residual; writes their sum.
void LayerKernels::norm_backward(const std::string& name, bool residual) {
  if (eager()) return eager_norm_backward(name);
  const bool centred = model_.norm == Norm::layernorm;
  const double tables = centred ? 2.0 : 1.0, beside = residual ? 1.0 : 0.0;
  const double flops = (centred ? 13.0 : 10.0) + beside;
  list_.between(
      name, "norm bwd", KernelClass::layernorm, flops * z_.activation,
      z_.e * ((3.0 + beside) * z_.activation + 2.0 * tables * z_.h) + tables * 4.0 * z_.rows);
  if (model_.kind != ModelKind::dit) list_.finishes(tables * z_.h / static_cast<double>(z_.t));
}

void LayerKernels::activation(const std::string& name, double rows, bool backward) {
  const bool gated = model_.activation == Activation::swiglu;
  const double elements = rows * static_cast<double>(model_.ffn);
  const double read_and_written = (gated ? 3.0 : 2.0) + (backward ? (gated ? 2.0 : 1.0) : 0.0);
  const double flops = (gated ? 5.0 : 10.0) * (backward ? 2.0 : 1.0);
  list_.split(name, gated ? "SwiGLU" : "GELU", gated ? KernelClass::elementwise : KernelClass::gelu,
              flops * elements, z_.e * read_and_written * elements);
}

// All-to-all of this rank's tokens to the ranks that hold their experts, or back.
void LayerKernels::exchange(const std::string& name) {
  list_.collective(name, CollectiveKind::all_to_all,
                   chosen() * z_.activation / static_cast<double>(z_.t), step_.expert_parallel,
                   z_.t);
}

// ---- attention

void LayerKernels::rope(const std::string& name) {
  const double rotated = z_.rows * (z_.h + z_.kv);
  const double table = 4.0 * static_cast<double>(own_seq(step_) * model_.head_width());
  list_.split(name, "RoPE", KernelClass::elementwise, 3.0 * rotated, z_.e * 2.0 * rotated + table);
}

void LayerKernels::attention(const std::string& prefix) {
  list_.gather(prefix, "qkv", z_.activation);
  list_.linear(prefix, qkv());
  if (model_.positions == PositionEncoding::rope) rope(prefix + "_rope");
  list_.part(KernelPart::attention);
  core_attention(prefix);
  list_.part(KernelPart::other);
  list_.linear(prefix, projection());
  list_.sum(prefix, "projection", z_.activation);
}

// Scores that softmax reads: causal softmax reads the lower half of them, and writes all.
double LayerKernels::scores_read() const { return needed_pairs(step_) * z_.heads; }

// Of a rank: its own queries with its own keys.
AttentionShape LayerKernels::attention_shape() const {
  return {.batch = step_.batch,
          .q_tokens = own_seq(step_),
          .kv_tokens = step_.phase == StepPhase::decode ? step_.seq : own_seq(step_),
          .heads = model_.heads / z_.t,
          .kv_heads = kv_copies(step_) * model_.kv_heads / z_.t,
          .head_dim = model_.head_width(),
          .causal = model_.causal()};
}

void LayerKernels::core_attention(const std::string& prefix) {
  const std::uint64_t width = model_.head_width();
  if (step_.flash_attention) {
    const bool decode = step_.phase == StepPhase::decode;
    const double keys = decode ? z_.batch * static_cast<double>(step_.seq) : z_.rows;
    if (step_.phase != StepPhase::training && !eager())
      list_.split(prefix + "_cache_write", "keys and values to the cache", KernelClass::permute,
                  0.0, z_.e * 4.0 * z_.rows * z_.kv);
    list_
        .split(prefix + "_flash_attention", "flash attention", KernelClass::attention,
               4.0 * z_.pairs * static_cast<double>(width),
               z_.e * (2.0 * z_.activation + 2.0 * keys * z_.kv) + 4.0 * z_.rows * z_.heads)
        .attention = attention_shape();
    return;
  }
  if (shared_keys()) {
    repeat_heads(prefix + "_repeat_keys");
    repeat_heads(prefix + "_repeat_values");
  }
  head_product(prefix + "_gemm_scores", step_.seq, step_.seq, width);
  list_.split(prefix + "_softmax", "softmax", KernelClass::softmax, 5.0 * scores_read(),
              z_.e * (scores_read() + z_.pairs));
  head_product(prefix + "_gemm_context", width, step_.seq, step_.seq);
}

void LayerKernels::core_attention_backward() {
  if (step_.flash_attention) return flash_attention_backward();
  const std::uint64_t width = model_.head_width();
  head_product("bwd_gemm_scores_gradient", step_.seq, step_.seq, width);
  head_product("bwd_gemm_values", width, step_.seq, step_.seq);
  list_.split("bwd_softmax", "softmax bwd", KernelClass::softmax, 5.0 * scores_read(),
              z_.e * (2.0 * scores_read() + z_.pairs));
  head_product("bwd_gemm_queries", width, step_.seq, step_.seq);
  head_product("bwd_gemm_keys", width, step_.seq, step_.seq);
  if (shared_keys()) sum_heads();
}

// Copies keys or values for every head: batched products want them so.
void LayerKernels::repeat_heads(const std::string& name) {
  list_.split(name, "repeat heads", KernelClass::permute, 0.0,
              z_.e * (z_.rows * z_.kv + z_.activation));
}

// Gradients of keys and values come for every head. They are added up where heads share them.
void LayerKernels::sum_heads() {
  for (const char* name : {"bwd_sum_keys", "bwd_sum_values"})
    list_.split(name, "sum of heads", KernelClass::reduce, z_.activation,
                z_.e * (z_.activation + z_.rows * z_.kv));
}

// The gradient of the queries is summed in fp32 by blocks of keys, then rounded. Those of keys and
// values are written for every head.
void LayerKernels::flash_attention_backward() {
  const double statistics = 4.0 * z_.rows * z_.heads;
  list_.split("bwd_flash_dot", "flash attention bwd, dot", KernelClass::elementwise,
              2.0 * z_.activation, z_.e * 2.0 * z_.activation + 4.0 * z_.activation + statistics);
  list_
      .split("bwd_flash_attention", "flash attention bwd", KernelClass::attention,
             10.0 * z_.pairs * static_cast<double>(model_.head_width()),
             z_.e * (4.0 * z_.activation + 2.0 * z_.rows * z_.kv) + 8.0 * z_.activation +
                 2.0 * statistics)
      .attention = attention_shape();
  list_.split("bwd_flash_convert", "flash attention bwd, convert", KernelClass::elementwise, 0.0,
              (4.0 + z_.e) * z_.activation);
  if (shared_keys()) sum_heads();
}

void LayerKernels::attention_backward() {
  list_.gather("bwd", "projection", z_.activation);
  list_.linear_input(projection());
  list_.linear_weight(projection());
  list_.part(KernelPart::attention);
  if (step_.recomputation == Recomputation::selective) core_attention("rec");
  list_.part(KernelPart::attention_backward);
  core_attention_backward();
  list_.part(KernelPart::other);
  if (model_.positions == PositionEncoding::rope) rope("bwd_rope");
  list_.linear_input(qkv());
  list_.sum("bwd", "qkv", z_.activation);
  list_.gather("bwd", "qkv_input", z_.activation);
  list_.linear_weight(qkv());
  // Ranks with copies of one head of keys and values stand side by side.
  list_.part(KernelPart::gradient_sum);
  list_.reduce_gradients("bwd_all_reduce_kv_copies",
                         kv_weights(model_) / static_cast<double>(model_.kv_heads),
                         kv_copies(step_));
  list_.part(KernelPart::other);
}

// ---- feed-forward network

void LayerKernels::ffn(const std::string& prefix) {
  list_.gather(prefix, up().name, z_.activation);
  list_.linear(prefix, up());
  activation(prefix + "_activation", z_.rows, false);
  list_.linear(prefix, down());
  list_.sum(prefix, "down", z_.activation);
}

void LayerKernels::ffn_backward() {
  list_.gather("bwd", "down", z_.activation);
  list_.linear_input(down());
  list_.linear_weight(down());
  activation("bwd_activation", z_.rows, true);
  list_.linear_input(up());
  list_.sum("bwd", up().name, z_.activation);
  list_.gather("bwd", up().name + "_input", z_.activation);
  list_.linear_weight(up());
}

// ---- adaLN-Zero: shift, scale and gate of both branches from the condition of an image

void LayerKernels::modulation(const std::string& prefix) {
  const double values = z_.batch * z_.h;
  list_.add(prefix + "_silu", "SiLU", KernelClass::elementwise, 4.0 * values, z_.e * 2.0 * values);
  list_.linear(prefix, shift_and_scale());
}

// Reads the gradient and what the branch gave: the gate's gradient is the sum of their product over
// the tokens of an image. Writes the gradient of what the branch gave.
void LayerKernels::gate_backward(const std::string& branch) {
  if (model_.kind == ModelKind::dit)
    list_.split("bwd_gate_" + branch, "gate bwd", KernelClass::reduce, 3.0 * z_.activation,
                z_.e * 3.0 * z_.activation);
}

// Sums over the tokens of an image: of the gradient (shift), and of its product with what the norm
// gave (scale).
void LayerKernels::shift_and_scale_backward(const std::string& branch) {
  if (model_.kind == ModelKind::dit)
    list_.split("bwd_shift_scale_" + branch, "shift and scale bwd", KernelClass::reduce,
                3.0 * z_.activation, z_.e * 2.0 * z_.activation);
}

void LayerKernels::modulation_backward() {
  const double values = z_.batch * z_.h;
  list_.linear_input(shift_and_scale());
  list_.linear_weight(shift_and_scale());
  list_.add("bwd_silu", "SiLU bwd", KernelClass::elementwise, 8.0 * values, z_.e * 3.0 * values);
}

// ---- a whole layer

void LayerKernels::feed_forward(const std::string& prefix) {
  if (model_.experts > 0) return experts(prefix);
  ffn(prefix);
}

void LayerKernels::forward() {
  if (eager()) return eager_forward("fwd");
  if (model_.kind == ModelKind::dit) modulation("fwd");
  attention("fwd");
  residual_norm("fwd_residual_norm_2");
  feed_forward("fwd");
  residual_norm("fwd_residual_norm_1");
}

void LayerKernels::backward() {
  if (eager()) return eager_backward();
  if (step_.recomputation == Recomputation::full) {
    if (model_.kind == ModelKind::dit) modulation("rec");
    norm("rec_norm_1");
    attention("rec");
    residual_norm("rec_residual_norm_2");
    feed_forward("rec");
  }
  gate_backward("ffn");
  if (model_.experts > 0) {
    experts_backward();
  } else {
    ffn_backward();
  }
  shift_and_scale_backward("ffn");
  norm_backward("bwd_norm_2");
  gate_backward("attention");
  attention_backward();
  shift_and_scale_backward("attention");
  norm_backward("bwd_norm_1");
  if (model_.kind == ModelKind::dit) modulation_backward();
}

}  // namespace rubato
