#include "traces/transformer/model_ends.hpp"

namespace rubato {

namespace {

LinearLayer head_of(const StepContext& c) {
  return {"logits", padded_vocabulary(c.step) / c.sizes.t, c.step.model.hidden, c.sizes.tokens,
          false};
}

double table_of_rank(const StepContext& c) {
  return static_cast<double>(c.step.model.vocab) * c.sizes.h / static_cast<double>(c.sizes.t);
}

double positions_of(const StepContext& c) {
  return static_cast<double>(own_seq(c.step)) * c.sizes.h;
}

bool learned_positions(const StepContext& c) {
  return c.step.model.positions == PositionEncoding::learned;
}

// All but the last logits of a sequence are copied. Their log-softmax is in fp32.
void eager_cross_entropy(const StepContext& c) {
  const StepSizes& z = c.sizes;
  constexpr double fp32 = 4.0;
  const double logits = z.rows * static_cast<double>(padded_vocabulary(c.step));
  c.layer.eager_operator("loss_shift", logits, 2.0 * z.e * logits, KernelClass::permute);
  if (z.e < fp32) c.layer.eager_operator("loss_cast", 0.0, (z.e + fp32) * logits);
  c.layer.eager_operator("loss_log_softmax", 5.0 * logits, 2.0 * fp32 * logits,
                         KernelClass::softmax);
  c.layer.eager_operator("loss_nll", z.rows, 3.0 * fp32 * z.rows, KernelClass::reduce);
}

// The gradient of the loss is zero but for a logit of each token.
void eager_loss_backward(const StepContext& c) {
  const StepSizes& z = c.sizes;
  constexpr double fp32 = 4.0;
  const double logits = z.rows * static_cast<double>(padded_vocabulary(c.step));
  c.layer.eager_operator("bwd_nll", 0.0, fp32 * logits, KernelClass::memset);
  c.layer.eager_operator("bwd_log_softmax", 4.0 * logits, 3.0 * fp32 * logits,
                         KernelClass::softmax);
  if (z.e < fp32) c.layer.eager_operator("bwd_cast_logits", 0.0, (z.e + fp32) * logits);
  c.layer.eager_operator("bwd_memset_logits", 0.0, z.e * logits, KernelClass::memset);
  c.layer.eager_operator("bwd_shift", logits, 2.0 * z.e * logits, KernelClass::permute);
}

// Logits are read, and their gradient is left in their place. On one rank a row stays in cache.
// Ranks that share the vocabulary first need what all of them found of a row: its maximum, then its
// sum and the token's own logit.
void cross_entropy(const StepContext& c) {
  const StepSizes& z = c.sizes;
  if (c.layer.eager()) return eager_cross_entropy(c);
  constexpr double fp32 = 4.0;
  const double logits = z.rows * static_cast<double>(padded_vocabulary(c.step));
  const double t = static_cast<double>(z.t);
  if (z.t == 1) {
    c.list.add("loss_cross_entropy", "cross entropy", KernelClass::softmax, 8.0 * logits,
               z.e * 2.0 * logits + 2.0 * fp32 * z.rows);
    return;
  }
  // Reads the targets, writes the three; then reads all four and writes the loss.
  c.list.add("loss_statistics", "cross entropy, statistics", KernelClass::softmax, 4.0 * logits / t,
             z.e * logits / t + 4.0 * fp32 * z.rows);
  c.list.collective("loss_all_reduce_maxima", CollectiveKind::all_reduce, z.rows * fp32 / z.e, z.t);
  c.list.collective("loss_all_reduce_sums", CollectiveKind::all_reduce, 2.0 * z.rows * fp32 / z.e,
                    z.t);
  c.list.add("loss_cross_entropy", "cross entropy", KernelClass::softmax, 4.0 * logits / t,
             z.e * 2.0 * logits / t + 5.0 * fp32 * z.rows);
}

}  // namespace

void embed(const StepContext& c) {
  if (c.step.model.kind != ModelKind::decoder) return embed_images(c);
  const StepSizes& z = c.sizes;
  const double positions = learned_positions(c) ? positions_of(c) : 0.0;
  const double added = learned_positions(c) ? z.activation : 0.0;
  const double t = static_cast<double>(z.t);
  // A rank reads the tokens of its part of the table, and writes zeros for the others.
  c.list.add("fwd_embedding", "embedding", KernelClass::embedding, z.t == 1 ? added : 0.0,
             z.e * (z.activation / t + z.activation + (z.t == 1 ? positions : 0.0)) + 4.0 * z.rows);
  c.list.sum("fwd", "embedding", z.activation);
  if (z.t > 1 && learned_positions(c))
    c.list.between("fwd_add_positions", "positions", KernelClass::elementwise, added,
                   z.e * (2.0 * z.activation + positions));
  if (!c.layer.eager()) return c.layer.norm("fwd_norm_1");
  if (c.layer.drops())
    c.layer.eager_between("fwd_dropout_0", z.activation,
                          (2.0 * c.list.stream_element() + 1.0) * z.activation);
}

void head_and_loss(const StepContext& c) {
  if (c.step.model.kind != ModelKind::decoder) return image_head_and_loss(c);
  const StepSizes& z = c.sizes;
  if (c.layer.eager()) c.layer.norm("loss_norm_final");
  c.list.gather("loss", "logits", z.activation);
  c.list.linear("loss", head_of(c));
  cross_entropy(c);
}

// The last token of each sequence goes through the head; the softmax over its logits is in fp32.
// Ranks that share the vocabulary gather the logits first.
void next_tokens(const StepContext& c) {
  const StepSizes& z = c.sizes;
  constexpr double fp32 = 4.0;
  const double logits = z.batch * static_cast<double>(padded_vocabulary(c.step));
  LinearLayer head = head_of(c);
  head.rows = c.step.batch;
  if (c.layer.eager()) c.layer.norm("head_norm_final");
  c.list.linear("head", head);
  c.list.collective("head_all_gather_logits", CollectiveKind::all_gather, logits, z.t);
  c.list.add("head_sample", "sampling", KernelClass::softmax, 5.0 * logits, (z.e + fp32) * logits);
}

void head_backward(const StepContext& c) {
  if (c.step.model.kind != ModelKind::decoder) return image_head_backward(c);
  const StepSizes& z = c.sizes;
  if (c.layer.eager()) eager_loss_backward(c);
  const LinearLayer head = head_of(c);
  c.list.linear_input(head);
  c.list.sum("bwd", "logits", z.activation);
  c.list.gather("bwd", "logits_input", z.activation);
  c.list.weight_gradient("bwd_gemm_logits_weight", {head.inputs, head.outputs, head.rows, 1});
  // The gradient of a tied table is finished by the embedding's backward pass.
  if (!c.step.model.tied_embeddings) c.list.finishes(table_of_rank(c));
  c.layer.norm_backward("bwd_norm_final", false);
}

void embed_backward(const StepContext& c) {
  if (c.step.model.kind != ModelKind::decoder) return embed_images_backward(c);
  const StepSizes& z = c.sizes;
  if (c.layer.eager() && c.layer.drops())
    c.layer.eager_between("bwd_dropout_0", z.activation,
                          (2.0 * c.list.stream_element() + 1.0) * z.activation);
  if (learned_positions(c)) {
    c.list.between("bwd_positions", "positions bwd", KernelClass::embedding, z.activation,
                   z.e * (z.activation + positions_of(c)));
    c.list.finishes(static_cast<double>(c.step.model.context) * z.h / static_cast<double>(z.t));
  }
  c.list.gather("bwd", "embedding", z.activation);
  const bool dense = c.layer.eager();  // a gradient of its own, which is then added to the head's
  if (dense || (!c.step.model.tied_embeddings && !c.step.accumulate_gradients))
    c.list.add("bwd_memset_table", "memset", KernelClass::memset, 0.0,
               c.list.gradient_element() * table_of_rank(c));
  // A rank reads the gradients of all tokens, and adds those of its part of the table.
  const double t = static_cast<double>(z.t);
  const double distinct = distinct_tokens(z.rows, static_cast<double>(c.step.model.vocab)) / t;
  c.list.add("bwd_embedding", "embedding bwd", KernelClass::embedding, z.activation / t,
             z.e * z.activation + c.list.gradient_element() * 2.0 * distinct * z.h + 4.0 * z.rows);
  c.list.finishes(table_of_rank(c));
  if (dense && c.step.model.tied_embeddings)
    c.layer.eager_operator(
        "bwd_add_tables", c.sizes.h * static_cast<double>(c.step.model.vocab),
        3.0 * element_bytes(Dtype::fp32) * c.sizes.h * static_cast<double>(c.step.model.vocab));
}

}  // namespace rubato
