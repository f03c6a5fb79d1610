#include "traces/parallel/rank_work.hpp"

namespace rubato {

double RankWork::gradients_of(const Launches& launches) const {
  double elements = 0.0;
  for (const KernelId kernel : launches) elements += gradients[index(kernel)];
  return elements;
}

double RankWork::parameters() const {
  return static_cast<double>(layers) * gradients_of(backward) + gradients_of(head_backward) +
         gradients_of(embedding_backward) - copied;
}

bool is_attention(const Kernel& kernel) {
  return kernel.kind == KernelClass::attention || kernel.kind == KernelClass::gemm_batched ||
         kernel.kind == KernelClass::softmax;
}

}  // namespace rubato
