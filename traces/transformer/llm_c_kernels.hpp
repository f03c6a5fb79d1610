#pragma once
// The kernels of llm.c.

#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

/// Launches the step of karpathy/llm.c f1e2ace (separate attention kernels, GELU recomputed): 46
/// kernels for one GPU, in the order and with the names of Spaan et al., arXiv 2601.08539. Bytes
/// count what is read again because an L2 cache of 6 MiB cannot hold it. Gradients are added to
/// those there: the list accumulates. Tensor parallelism is Megatron-LM's (Korthikanti et al.,
/// arXiv 2205.05198), which llm.c does not have.
void launch_llm_c(KernelList& list, const TrainingStep& step);

/// @throws UsageError for a model that is not a GPT, for recomputation (llm.c has its own) and for
///         gradients in fp32
void check_llm_c(const TrainingStep& step);

}  // namespace rubato
