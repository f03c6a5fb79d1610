#include "traces/parallel/rank_work.hpp"

#include <utility>

namespace rubato {

double RankWork::gradients_of(const Launches& launches) const {
  double elements = 0.0;
  for (const KernelId kernel : launches) elements += gradients[index(kernel)];
  return elements;
}

double RankWork::parameters() const {
  return static_cast<double>(layers) * gradients_of(backward) + gradients_of(head_backward) +
         gradients_of(embedding_backward);
}

bool is_attention(const Kernel& kernel) {
  return kernel.kind == KernelClass::attention || kernel.kind == KernelClass::gemm_batched ||
         kernel.kind == KernelClass::softmax;
}

Kernel collective_kernel(std::string name, const Collective& collective, Pass pass, Dtype dtype) {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.label = "NCCL";
  kernel.kind = KernelClass::communication;
  kernel.pass = pass;
  kernel.dtype = dtype;
  kernel.flops = 0.0;
  // Each rank reads and writes the whole buffer at least once.
  kernel.dram_bytes = 2.0 * collective.message_bytes;
  kernel.collective = collective;
  kernel.work_source = WorkSource::derived;
  return kernel;
}

}  // namespace rubato
