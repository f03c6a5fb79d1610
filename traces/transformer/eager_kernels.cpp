// A layer as eager PyTorch runs it: an operator, a kernel. Read from Hugging Face's GPT-2, Llama
// and ViT, attention written out, and from ATen. docs/model-shapes.md has the table.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "traces/transformer/layer_kernels.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

void LayerKernels::eager_operator(const std::string& name, double elements, double bytes,
                                  KernelClass kind) {
  const double flops = kind == KernelClass::permute ? 0.0 : elements;
  list_.split(name, name, kind, flops, bytes);
}

void LayerKernels::eager_between(const std::string& name, double elements, double bytes,
                                 KernelClass kind) {
  list_.between(name, name, kind, elements, bytes);
}

void LayerKernels::eager_chain(const std::string& prefix, double elements, double element,
                               std::initializer_list<Operator> operators) {
  for (const Operator& one : operators)
    eager_operator(fmt::format("{}_{}", prefix, one.name), elements,
                   one.passes * element * elements);
}

void LayerKernels::eager_norm_chain(const std::string& name, double element,
                                    std::initializer_list<Operator> operators) {
  for (const Operator& one : operators)
    eager_between(fmt::format("{}_{}", name, one.name), z_.activation,
                  one.passes * element * z_.activation);
}

// RMS norms compute in fp32. Autocast gives the product behind a norm a copy in 16 bits.
void LayerKernels::eager_norm(const std::string& name) {
  constexpr double fp32 = 4.0;
  const double s = stream(), x = z_.activation;
  if (model_.norm == Norm::layernorm) {
    eager_between(name, 8.0 * x, 2.0 * s * x, KernelClass::layernorm);
  } else {
    if (s < fp32) eager_between(name + "_cast_input", 0.0, (s + fp32) * x);
    eager_norm_chain(name, fp32, {{"square", 2}, {"mean", 1}, {"scale", 2}});
    if (s < fp32) eager_between(name + "_cast_result", 0.0, (s + fp32) * x);
    eager_norm_chain(name, s, {{"weight", 2}});
  }
  if (s > z_.e) eager_between(name + "_cast", 0.0, (s + z_.e) * x);
}

// The gradient of the input, and of weight and bias: both read the gradient and the input.
void LayerKernels::eager_norm_backward(const std::string& name) {
  const double s = stream(), x = z_.activation;
  const bool centred = model_.norm == Norm::layernorm;
  if (s > z_.e) eager_between(name + "_cast", 0.0, (s + z_.e) * x);
  if (centred) {
    eager_between(name, 11.0 * x, 3.0 * s * x, KernelClass::layernorm);
    eager_between(name + "_weight", 3.0 * x, 2.0 * s * x, KernelClass::layernorm);
  } else {
    eager_norm_chain(name, s,
                     {{"weight_input", 2},
                      {"weight_product", 3},
                      {"weight_sum", 1},
                      {"scale_input", 2},
                      {"scale_product", 3},
                      {"scale_sum", 1},
                      {"mean", 1},
                      {"square", 3},
                      {"add", 3}});
  }
  list_.finishes((centred ? 2.0 : 1.0) * z_.h / static_cast<double>(z_.t));
}

// Reads, writes, and writes a mask of a byte; backward reads the mask.
void LayerKernels::eager_dropout(const std::string& name) {
  const double x = z_.activation;
  if (drops()) eager_between(name, 2.0 * x, (2.0 * z_.e + 1.0) * x);
}

// q cos + rotate_half(q) sin, and the same of keys.
void LayerKernels::eager_rope(const std::string& prefix) {
  eager_chain(prefix + "_rope", z_.rows * (z_.h + z_.kv), z_.e,
              {{"cosine", 2}, {"negate", 1}, {"rotate", 2}, {"sine", 2}, {"add", 3}});
}

// torch.matmul copies heads that lie between the tokens, which repeated ones do not. Softmax knows
// no mask. It is in fp32, but of GPT-2 under autocast alone; of fp16, but not of bf16, its kernel
// reads and writes other types. GPT-2 masks what comes later, and then adds the mask of padding;
// others have one sum of both.
void LayerKernels::eager_attention(const std::string& prefix) {
  constexpr double fp32 = 4.0;
  const std::uint64_t width = model_.head_width();
  const double e = z_.e, x = z_.activation, scores = z_.pairs;
  const double square = static_cast<double>(step_.seq) * static_cast<double>(step_.seq);
  if (step_.flash_attention) return core_attention(prefix);
  if (shared_keys()) {
    repeat_heads(prefix + "_repeat_keys");
    repeat_heads(prefix + "_repeat_values");
  }
  for (const char* what : {"queries", "keys", "values"})
    if (what == std::string_view("queries") || !shared_keys())
      eager_operator(fmt::format("{}_copy_{}", prefix, what), x, 2.0 * e * x, KernelClass::permute);
  head_product(prefix + "_gemm_scores", step_.seq, step_.seq, width);
  eager_operator(prefix + "_scale", scores, 2.0 * e * scores);
  if (model_.causal()) eager_operator(prefix + "_mask", scores, 2.0 * e * scores + square);
  if (is_gpt(model_)) eager_operator(prefix + "_mask_padding", scores, 2.0 * e * scores);
  const double result = is_gpt(model_) && step_.phase != StepPhase::training ? e : fp32;
  const bool widened = step_.dtype == Dtype::bf16 && e < result;
  if (widened) eager_operator(prefix + "_widen_scores", 0.0, (e + fp32) * scores);
  eager_operator(prefix + "_softmax", 5.0 * scores, ((widened ? fp32 : e) + result) * scores,
                 KernelClass::softmax);
  if (drops())
    eager_operator(prefix + "_dropout_scores", 2.0 * scores, (2.0 * fp32 + 1.0) * scores);
  if (e < result) eager_operator(prefix + "_cast_scores", 0.0, (e + fp32) * scores);
  head_product(prefix + "_gemm_context", width, step_.seq, step_.seq);
  eager_operator(prefix + "_merge_heads", x, 2.0 * e * x, KernelClass::permute);
}

void LayerKernels::eager_attention_backward() {
  constexpr double fp32 = 4.0;
  const std::uint64_t width = model_.head_width();
  const double e = z_.e, x = z_.activation, scores = z_.pairs;
  if (step_.flash_attention) {
    core_attention_backward();
  } else {
    eager_operator("bwd_split_heads", x, 2.0 * e * x, KernelClass::permute);
    head_product("bwd_gemm_scores_gradient", step_.seq, step_.seq, width);
    head_product("bwd_gemm_values", width, step_.seq, step_.seq);
    if (e < fp32) eager_operator("bwd_cast_scores", 0.0, (e + fp32) * scores);
    if (drops()) eager_operator("bwd_dropout_scores", 2.0 * scores, (2.0 * fp32 + 1.0) * scores);
    const bool widened = step_.dtype == Dtype::bf16;
    eager_operator("bwd_softmax", 4.0 * scores, (2.0 * fp32 + (widened ? fp32 : e)) * scores,
                   KernelClass::softmax);
    if (widened) eager_operator("bwd_narrow_scores", 0.0, (e + fp32) * scores);
    if (model_.causal()) eager_operator("bwd_mask", scores, 2.0 * e * scores);
    eager_operator("bwd_scale", scores, 2.0 * e * scores);
    head_product("bwd_gemm_queries", width, step_.seq, step_.seq);
    head_product("bwd_gemm_keys", width, step_.seq, step_.seq);
    if (shared_keys()) sum_heads();
    eager_operator("bwd_copy_keys", x, 2.0 * e * x, KernelClass::permute);
  }
  if (is_gpt(model_)) eager_operator("bwd_join_heads", x, 6.0 * e * x, KernelClass::permute);
}

// GPT's GELU is written out in Python, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
void LayerKernels::eager_activation(const std::string& prefix) {
  const double ffn = z_.rows * static_cast<double>(model_.ffn);
  if (model_.activation == Activation::swiglu) {
    eager_chain(prefix, ffn, z_.e, {{"silu", 2}, {"product", 3}});
  } else if (is_gpt(model_)) {
    eager_chain(prefix + "_gelu", ffn, z_.e,
                {{"half", 2},
                 {"cube", 2},
                 {"scale_cube", 2},
                 {"add", 3},
                 {"scale", 2},
                 {"tanh", 2},
                 {"add_one", 2},
                 {"product", 3}});
  } else {
    eager_operator(prefix + "_gelu", 10.0 * ffn, 2.0 * z_.e * ffn, KernelClass::gelu);
  }
}

void LayerKernels::eager_activation_backward() {
  const double ffn = z_.rows * static_cast<double>(model_.ffn);
  if (model_.activation == Activation::swiglu) {
    eager_chain("bwd", ffn, z_.e, {{"product_left", 3}, {"product_right", 3}, {"silu", 3}});
  } else if (is_gpt(model_)) {
    eager_chain("bwd_gelu", ffn, z_.e,
                {{"product_left", 3},
                 {"product_right", 3},
                 {"tanh", 3},
                 {"scale", 2},
                 {"scale_cube", 2},
                 {"square", 2},
                 {"three", 2},
                 {"cube", 3},
                 {"half", 2},
                 {"add_1", 3},
                 {"add_2", 3}});
  } else {
    eager_operator("bwd_gelu", 20.0 * ffn, 3.0 * z_.e * ffn, KernelClass::gelu);
  }
}

std::vector<LinearLayer> LayerKernels::eager_inputs() const {
  if (is_gpt(model_)) return {qkv()};
  LinearLayer queries = qkv(), keys = qkv();
  queries.name = "queries";
  queries.outputs = model_.hidden / z_.t;
  keys.name = "keys";
  keys.outputs = kv_copies(step_) * model_.kv_width() / z_.t;
  LinearLayer values = keys;
  values.name = "values";
  return {queries, keys, values};
}

std::vector<LinearLayer> LayerKernels::eager_ffn_inputs() const {
  if (model_.activation != Activation::swiglu) return {up()};
  LinearLayer gate = up(), rest = up();
  gate.name = "gate";
  rest.name = "up";
  gate.outputs = rest.outputs = model_.ffn / z_.t;
  return {gate, rest};
}

void LayerKernels::eager_linears(const std::string& prefix, const std::string& what,
                                 const std::vector<LinearLayer>& layers) {
  list_.gather(prefix, what, z_.activation);
  for (const LinearLayer& layer : layers) list_.linear(prefix, layer);
}

// Gradients of an input that several products share are added up, of each rank the whole input's.
void LayerKernels::eager_linears_backward(const std::string& what,
                                          const std::vector<LinearLayer>& layers) {
  for (const LinearLayer& layer : layers) {
    list_.linear_input(layer);
    if (&layer != &layers.front())
      list_.add("bwd_add_" + layer.name, "bwd_add_" + layer.name, KernelClass::elementwise,
                z_.activation, 3.0 * z_.e * z_.activation);
  }
  list_.sum("bwd", what, z_.activation);
  list_.gather("bwd", what + "_input", z_.activation);
  for (const LinearLayer& layer : layers) list_.linear_weight(layer);
}

void LayerKernels::eager_forward(const std::string& prefix) {
  const double x = z_.activation, added = (2.0 * stream() + z_.e) * x;
  eager_norm(prefix + "_norm_1");
  eager_linears(prefix, "qkv", eager_inputs());
  if (model_.positions == PositionEncoding::rope) eager_rope(prefix);
  list_.part(KernelPart::attention);
  eager_attention(prefix);
  list_.part(KernelPart::other);
  list_.linear(prefix, projection());
  list_.sum(prefix, "projection", x);
  eager_dropout(prefix + "_dropout_1");
  eager_between(prefix + "_residual_1", x, added);
  eager_norm(prefix + "_norm_2");
  eager_linears(prefix, "up", eager_ffn_inputs());
  eager_activation(prefix);
  list_.linear(prefix, down());
  list_.sum(prefix, "down", x);
  eager_dropout(prefix + "_dropout_2");
  eager_between(prefix + "_residual_2", x, added);
}

// The gradient of the stream is cast for each branch, and what comes back from it is added.
void LayerKernels::eager_backward() {
  const double x = z_.activation, s = stream(), e = z_.e;
  if (step_.recomputation == Recomputation::full) eager_forward("rec");
  const auto into_branch = [&](const char* number) {
    if (s > e) eager_between(fmt::format("bwd_cast_{}", number), 0.0, (s + e) * x);
    eager_dropout(fmt::format("bwd_dropout_{}", number));
  };
  into_branch("2");
  list_.gather("bwd", "down", x);
  list_.linear_input(down());
  list_.linear_weight(down());
  eager_activation_backward();
  eager_linears_backward("up", eager_ffn_inputs());
  eager_norm_backward("bwd_norm_2");
  eager_between("bwd_residual_2", x, 3.0 * s * x);
  into_branch("1");
  list_.gather("bwd", "projection", x);
  list_.linear_input(projection());
  list_.linear_weight(projection());
  list_.part(KernelPart::attention);
  if (step_.recomputation == Recomputation::selective) eager_attention("rec");
  list_.part(KernelPart::attention_backward);
  eager_attention_backward();
  list_.part(KernelPart::other);
  if (model_.positions == PositionEncoding::rope) eager_rope("bwd");
  eager_linears_backward("qkv", eager_inputs());
  list_.part(KernelPart::gradient_sum);
  list_.reduce_gradients("bwd_all_reduce_kv_copies",
                         kv_weights(model_) / static_cast<double>(model_.kv_heads),
                         kv_copies(step_));
  list_.part(KernelPart::other);
  eager_norm_backward("bwd_norm_1");
  eager_between("bwd_residual_1", x, 3.0 * s * x);
}

}  // namespace rubato
