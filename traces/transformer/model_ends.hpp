#pragma once
// What stands before and behind the layers: embedding, head, loss, and their backward passes.

#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/layer_kernels.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

/// What the kernels of the ends are made with.
struct StepContext {
  KernelList& list;
  LayerKernels& layer;
  const TrainingStep& step;
  StepSizes sizes;
};

// Each launches into the segment that is open.
void embed(const StepContext& c);
void head_and_loss(const StepContext& c);
void next_tokens(const StepContext& c);  ///< of prefill and decode: one of each sequence
void head_backward(const StepContext& c);
void embed_backward(const StepContext& c);

// The same for images, with patches in place of tokens.
void embed_images(const StepContext& c);
void image_head_and_loss(const StepContext& c);
void image_head_backward(const StepContext& c);
void embed_images_backward(const StepContext& c);

}  // namespace rubato
