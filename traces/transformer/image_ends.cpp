#include "traces/transformer/model_ends.hpp"

namespace rubato {

namespace {

std::uint64_t pixels_of(const StepContext& c) { return c.step.model.image.values_in_patch(); }

bool is_dit(const StepContext& c) { return c.step.model.kind == ModelKind::dit; }

std::uint64_t patches_of(const StepContext& c) {
  return c.step.batch * (c.step.seq - (is_dit(c) ? 0 : 1));
}

LinearLayer patch_embedding(const StepContext& c) {
  return {"patches", c.step.model.hidden, pixels_of(c), patches_of(c), true};
}

// Time step of the diffusion: sines and cosines, then two layers.
LinearLayer time_in(const StepContext& c) {
  return {"time_1", c.step.model.hidden, dit_frequencies, c.step.batch, true};
}
LinearLayer time_out(const StepContext& c) {
  return {"time_2", c.step.model.hidden, c.step.model.hidden, c.step.batch, true};
}
LinearLayer last_modulation(const StepContext& c) {
  return {"modulation_final", 2 * c.step.model.hidden, c.step.model.hidden, c.step.batch, true};
}

// The head: noise and variance of every channel (DiT), or classes (ViT).
LinearLayer head_of_images(const StepContext& c) {
  if (is_dit(c)) return {"noise", 2 * pixels_of(c), c.step.model.hidden, c.sizes.tokens, true};
  return {"classes", c.step.model.image.classes, c.step.model.hidden, c.step.batch, true};
}

double pixels_of_batch(const StepContext& c) {
  return static_cast<double>(patches_of(c)) * static_cast<double>(pixels_of(c));
}

void elementwise(const StepContext& c, std::string name, double flops, double elements) {
  c.list.add(name, name, KernelClass::elementwise, flops, c.sizes.e * elements);
}

}  // namespace

void embed_images(const StepContext& c) {
  const StepSizes& z = c.sizes;
  const double pixels = pixels_of_batch(c), condition = z.batch * z.h;
  if (is_dit(c)) {
    elementwise(c, "fwd_add_noise", 3.0 * pixels, 3.0 * pixels);
    c.list.linear("fwd", time_in(c));
    elementwise(c, "fwd_time_silu", 4.0 * condition, 2.0 * condition);
    c.list.linear("fwd", time_out(c));
    elementwise(c, "fwd_add_label", condition, 3.0 * condition);
  }
  c.list.add("fwd_patches", "patches", KernelClass::permute, 0.0, z.e * 2.0 * pixels);
  c.list.linear("fwd", patch_embedding(c));
  elementwise(c, "fwd_add_positions", z.activation,
              2.0 * z.activation + static_cast<double>(c.step.seq) * z.h);
  if (!c.layer.eager()) c.layer.norm("fwd_norm_1");
}

void image_head_and_loss(const StepContext& c) {
  const StepSizes& z = c.sizes;
  if (c.layer.eager()) c.layer.norm("loss_norm_final");
  if (is_dit(c)) {
    const double predicted = 2.0 * pixels_of_batch(c);
    c.list.linear("loss", last_modulation(c));
    c.list.linear("loss", head_of_images(c));
    c.list.add("loss_pixels", "pixels of patches", KernelClass::permute, 0.0,
               z.e * 2.0 * predicted);
    // Squared error against the noise that was added; leaves the gradient.
    elementwise(c, "loss_squares", 4.0 * predicted, 2.5 * predicted);
    return;
  }
  const double logits = z.batch * static_cast<double>(c.step.model.image.classes);
  c.list.linear("loss", head_of_images(c));
  c.list.add("loss_cross_entropy", "cross entropy", KernelClass::softmax, 8.0 * logits,
             z.e * 2.0 * logits + 8.0 * z.batch);
}

void image_head_backward(const StepContext& c) {
  const StepSizes& z = c.sizes;
  if (is_dit(c))
    c.list.add("bwd_patches", "patches of pixels", KernelClass::permute, 0.0,
               z.e * 4.0 * pixels_of_batch(c));
  c.list.linear_input(head_of_images(c));
  c.list.linear_weight(head_of_images(c));
  if (is_dit(c)) {
    c.list.add("bwd_modulation_final_reduce", "modulation bwd", KernelClass::reduce,
               4.0 * z.activation, z.e * 2.0 * z.activation);
    c.list.linear_input(last_modulation(c));
    c.list.linear_weight(last_modulation(c));
  }
  c.layer.norm_backward("bwd_norm_final", false);
}

void embed_images_backward(const StepContext& c) {
  const StepSizes& z = c.sizes;
  const double table = static_cast<double>(c.step.seq) * z.h, condition = z.batch * z.h;
  if (!is_dit(c)) {
    c.list.add("bwd_positions", "positions bwd", KernelClass::embedding, z.activation,
               z.e * (z.activation + table));
    c.list.finishes(table + z.h);  // and the class token
  }
  c.list.linear_weight(patch_embedding(c));
  if (!is_dit(c)) return;
  c.list.add("bwd_label", "label bwd", KernelClass::embedding, condition, z.e * 3.0 * condition);
  c.list.finishes(static_cast<double>(c.step.model.image.classes + 1) * z.h);
  c.list.linear_input(time_out(c));
  c.list.linear_weight(time_out(c));
  elementwise(c, "bwd_time_silu", 8.0 * condition, 3.0 * condition);
  c.list.linear_weight(time_in(c));
}

}  // namespace rubato
