// Layers with experts: each token goes to a few of many FFNs. Order of launches and collectives as
// in Megatron's all-to-all token dispatcher; of a server as in vLLM, whose products find the rows
// of their tokens themselves, and whose ranks of tensor parallelism all have all tokens.

#include <cmath>

#include "traces/transformer/layer_kernels.hpp"

namespace rubato {

// Experts that have work: of a few tokens as many as random choices are expected to hit.
std::uint64_t LayerKernels::active_experts() const {
  const std::uint64_t local = local_experts();
  if (step_.phase == StepPhase::training) return local;
  const double all = static_cast<double>(local);
  const double hit = all * (1.0 - std::pow(1.0 - chosen() / all, static_cast<double>(z_.tokens)));
  return static_cast<std::uint64_t>(std::lround(hit));
}

// Rows of each expert, the loads being equal; tokens of all ranks that share the experts come here.
std::uint64_t LayerKernels::expert_rows() const {
  const std::uint64_t local = active_experts();
  return (z_.tokens * model_.experts_per_token + local - 1) / local;
}

// All experts of a rank in one launch.
void LayerKernels::expert_product(const std::string& name, std::uint64_t m, std::uint64_t n,
                                  std::uint64_t k) {
  list_.gemm(name, KernelClass::gemm, {m, n, k, active_experts()}).label =
      step_.phase == StepPhase::training ? "grouped GEMM" : "fused experts";
}

void LayerKernels::expert_weight(const std::string& name, std::uint64_t outputs,
                                 std::uint64_t inputs) {
  list_.weight_gradient(name, {inputs, outputs, expert_rows(), local_experts()}).label =
      "grouped GEMM";
  list_.finishes(static_cast<double>(local_experts()) * static_cast<double>(outputs) *
                 static_cast<double>(inputs));
}

// A rank with several experts puts together what came for each, and takes it apart again. The
// tokens are those gathered from the whole tensor-parallel group.
void LayerKernels::sort_chunks(const std::string& name) {
  if (local_experts() > 1)
    list_.add(name, "sort chunks", KernelClass::permute, 0.0,
              z_.e * 2.0 * chosen() * z_.activation);
}

void LayerKernels::experts(const std::string& prefix) {
  const double routed = chosen() * z_.activation;
  const double scores = z_.rows * static_cast<double>(model_.experts);
  list_.linear(prefix, router());
  list_.split(prefix + "_router_top_k", "router", KernelClass::softmax, 8.0 * scores,
              (z_.e + 4.0) * scores);
  const bool training = step_.phase == StepPhase::training;
  if (training)
    list_.split(prefix + "_permute", "permute", KernelClass::permute, 0.0,
                z_.e * (z_.activation + routed));
  list_.part(KernelPart::expert);
  exchange(prefix + "_all_to_all_dispatch");
  list_.gather(prefix, up().name, routed);
  if (training) sort_chunks(prefix + "_sort_dispatched");
  expert_product(prefix + "_gemm_" + up().name, up().outputs, expert_rows(), model_.hidden);
  activation(prefix + "_activation", chosen() * z_.rows, false);
  expert_product(prefix + "_gemm_down", model_.hidden, expert_rows(), down().inputs);
  if (training) {
    sort_chunks(prefix + "_sort_combined");
    list_.sum(prefix, "down", routed);
  }
  exchange(prefix + "_all_to_all_combine");
  list_.part(KernelPart::other);
  list_.split(prefix + "_unpermute", "unpermute", KernelClass::permute, 2.0 * routed,
              z_.e * (z_.activation + routed));
  if (!training) list_.sum(prefix, "down", z_.activation);
}

// The gathered tokens were kept: for gradients of weights nothing is sent again.
void LayerKernels::experts_backward() {
  const double routed = chosen() * z_.activation;
  const double scores = z_.rows * static_cast<double>(model_.experts);
  // Reads what the experts gave as well: the gradient of a token's weight is its product with it.
  list_.split("bwd_unpermute", "unpermute bwd", KernelClass::permute, 3.0 * routed,
              z_.e * (z_.activation + 2.0 * routed));
  list_.part(KernelPart::expert);
  exchange("bwd_all_to_all_combine");
  list_.gather("bwd", "down", routed);
  sort_chunks("bwd_sort_combined");
  expert_product("bwd_gemm_down_input", down().inputs, expert_rows(), model_.hidden);
  expert_weight("bwd_gemm_down_weight", model_.hidden, down().inputs);
  activation("bwd_activation", chosen() * z_.rows, true);
  expert_product("bwd_gemm_" + up().name + "_input", model_.hidden, expert_rows(), up().outputs);
  expert_weight("bwd_gemm_" + up().name + "_weight", up().outputs, model_.hidden);
  sort_chunks("bwd_sort_dispatched");
  list_.sum("bwd", up().name, routed);
  exchange("bwd_all_to_all_dispatch");
  list_.part(KernelPart::other);
  list_.split("bwd_permute", "permute bwd", KernelClass::permute, routed,
              z_.e * (z_.activation + routed));
  list_.split("bwd_router_top_k", "router bwd", KernelClass::softmax, 8.0 * scores,
              (z_.e + 8.0) * scores);
  list_.linear_input(router(), true);
  list_.linear_weight(router());
}

}  // namespace rubato
