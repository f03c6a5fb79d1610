#pragma once
// Steps of shipped models and sums over their kernels.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>

#include <gtest/gtest.h>

#include "traces/transformer/training_step.hpp"

namespace rubato {

/// @param seq  of decoders, at most; images have their own
inline TrainingStep step_of(std::string_view model, std::uint64_t batch = 4,
                            std::uint64_t seq = 2048) {
  TrainingStep step{.model = load_model_shape(model), .batch = batch};
  const bool text = step.model.kind == ModelKind::decoder;
  step.seq = text ? std::min(seq, step.model.context) : step.model.tokens_per_image();
  return step;
}

/// FLOPs of a step in the kernels that count.
inline double flops_of(const Trace& trace, const std::function<bool(const Kernel&)>& counts) {
  const auto launched = launch_counts(trace);
  double flops = 0.0;
  for (std::size_t k = 0; k < launched.size(); ++k)
    if (counts(trace.kernels[k]))
      flops += static_cast<double>(launched[k]) * trace.kernels[k].flops.value();
  return flops;
}

inline bool is_forward(const Kernel& kernel) {
  return kernel.pass == Pass::embedding || kernel.pass == Pass::forward ||
         kernel.pass == Pass::loss;
}
inline bool is_backward(const Kernel& kernel) {
  return kernel.pass == Pass::backward || kernel.pass == Pass::embedding_backward;
}
/// Products with parameters, and those of attention.
inline bool is_product(const Kernel& kernel) { return kernel.kind == KernelClass::gemm; }
inline bool multiplies_in_attention(const Kernel& kernel) {
  return kernel.kind == KernelClass::attention || kernel.kind == KernelClass::gemm_batched;
}

/// Gradients that a step finishes, of all its launches.
inline double gradients_of(const TrainingStep& step) {
  const GeneratedStep generated = generate_training_step(step);
  const auto launched = launch_counts(generated.trace);
  EXPECT_EQ(generated.gradients.size(), launched.size());
  double sum = 0.0;
  for (std::size_t k = 0; k < launched.size(); ++k)
    sum += static_cast<double>(launched[k]) * generated.gradients[k];
  return sum;
}

}  // namespace rubato
