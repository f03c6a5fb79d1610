#include <cmath>

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

double positions_of(const StepContext& c) { return static_cast<double>(c.step.seq) * c.sizes.h; }

// Distinct tokens of a batch of uniformly random ones; real text has fewer.
double distinct_tokens(const StepContext& c) {
  const double v = static_cast<double>(c.step.model.vocab);
  return v > 1.0 ? std::round(v * -std::expm1(c.sizes.rows * std::log1p(-1.0 / v))) : 1.0;
}

bool learned_positions(const StepContext& c) {
  return c.step.model.positions == PositionEncoding::learned;
}

}  // namespace

void embed(const StepContext& c) {
  if (c.step.model.kind != ModelKind::decoder) return embed_images(c);
  const StepSizes& z = c.sizes;
  c.list.split(
      "fwd_embedding", "embedding", KernelClass::embedding,
      learned_positions(c) ? z.activation : 0.0,
      z.e * (2.0 * z.activation + (learned_positions(c) ? positions_of(c) : 0.0)) + 4.0 * z.rows);
  c.list.collective("fwd_reduce_scatter_embedding", CollectiveKind::reduce_scatter, z.activation,
                    z.t);
  c.layer.norm("fwd_norm_1");
}

void head_and_loss(const StepContext& c) {
  if (c.step.model.kind != ModelKind::decoder) return image_head_and_loss(c);
  const StepSizes& z = c.sizes;
  constexpr double statistics = 3.0, fp32 = 4.0;  // of a row: maximum, sum and the token's own
  c.list.collective("loss_all_gather_logits", CollectiveKind::all_gather, z.activation, z.t);
  c.list.linear("loss", head_of(c));
  // Reads the logits and leaves their gradient in their place; a row stays in cache.
  const double logits = z.rows * static_cast<double>(padded_vocabulary(c.step));
  c.list.split("loss_cross_entropy", "cross entropy", KernelClass::softmax, 8.0 * logits,
               z.e * 2.0 * logits + 8.0 * z.rows);
  c.list.collective("loss_all_reduce_statistics", CollectiveKind::all_reduce,
                    statistics * z.rows * fp32 / z.e, z.t);
}

void head_backward(const StepContext& c) {
  if (c.step.model.kind != ModelKind::decoder) return image_head_backward(c);
  const StepSizes& z = c.sizes;
  const LinearLayer head = head_of(c);
  c.list.linear_input(head);
  c.list.collective("bwd_reduce_scatter_logits", CollectiveKind::reduce_scatter, z.activation, z.t);
  c.list.collective("bwd_all_gather_logits_input", CollectiveKind::all_gather, z.activation, z.t);
  c.list.gemm("bwd_gemm_logits_weight", KernelClass::gemm,
              {head.inputs, head.outputs, head.rows, 1});
  // Of a tied table the embedding's backward pass finishes it.
  if (!c.step.model.tied_embeddings) c.list.finishes(table_of_rank(c));
  c.layer.norm_backward("bwd_norm_final");
}

void embed_backward(const StepContext& c) {
  if (c.step.model.kind != ModelKind::decoder) return embed_images_backward(c);
  const StepSizes& z = c.sizes;
  if (learned_positions(c)) {
    c.list.split("bwd_positions", "positions bwd", KernelClass::embedding, z.activation,
                 z.e * (z.activation + positions_of(c)));
    c.list.finishes(static_cast<double>(c.step.model.context) * z.h / static_cast<double>(z.t));
  }
  c.list.collective("bwd_all_gather_embedding", CollectiveKind::all_gather, z.activation, z.t);
  if (!c.step.model.tied_embeddings)
    c.list.add("bwd_memset_table", "memset", KernelClass::memset, 0.0, z.e * table_of_rank(c));
  c.list.split("bwd_embedding", "embedding bwd", KernelClass::embedding, z.activation,
               z.e * (z.activation + 2.0 * distinct_tokens(c) * z.h) + 4.0 * z.rows);
  c.list.finishes(table_of_rank(c));
}

}  // namespace rubato
