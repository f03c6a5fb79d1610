#pragma once
// Kernels of one layer, forward and backward, and the sizes they follow from.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

/// Sizes of a step that kernels share. Elements are of all ranks of a tensor-parallel group.
struct StepSizes {
  explicit StepSizes(const TrainingStep& step);

  double e;           ///< bytes of an element
  double h;           ///< hidden
  double batch;       ///< sequences or images
  double rows;        ///< tokens
  double activation;  ///< rows x hidden
  double kv;          ///< width of keys, and of values, with the copies of their heads
  double pairs;       ///< pairs of query and key that are multiplied, of all heads
  double heads;
  std::uint64_t tokens;
  std::uint64_t t;  ///< tensor-parallel degree
};

/// Launches a layer. One matrix makes queries, keys and values, and one makes gate and up. A norm
/// adds the residual before it, so the first norm of a layer ends the layer before.
class LayerKernels {
 public:
  LayerKernels(KernelList& list, const TrainingStep& step)
      : list_(list), step_(step), model_(step.model), z_(step) {}

  void forward();
  void backward();  ///< with what is recomputed

  /// A norm alone, and one that adds the residual first. `name` is the kernel's whole name.
  void norm(const std::string& name);
  [[nodiscard]] bool eager() const { return step_.kernels == KernelStyle::eager; }
  /// Whether eager kernels drop activations out: in training alone.
  [[nodiscard]] bool drops() const {
    return step_.dropout && model_.has_dropout() && step_.phase == StepPhase::training;
  }
  void residual_norm(const std::string& name);
  /// @param residual  the gradient of the residual beside it is added
  void norm_backward(const std::string& name, bool residual = true);

  /// An operator of eager PyTorch on tensors between products.
  /// @param bytes  of all ranks of a tensor-parallel group together
  void eager_operator(const std::string& name, double elements, double bytes,
                      KernelClass kind = KernelClass::elementwise);
  /// The same on what lies between products: without sequence parallelism each rank does all of it.
  void eager_between(const std::string& name, double elements, double bytes,
                     KernelClass kind = KernelClass::elementwise);

 private:
  struct Operator {
    const char* name;
    double passes;
  };
  void eager_chain(const std::string& prefix, double elements, double element,
                   std::initializer_list<Operator> operators);
  void eager_norm_chain(const std::string& name, double element,
                        std::initializer_list<Operator> operators);
  void eager_norm(const std::string& name);
  void eager_norm_backward(const std::string& name);
  void eager_dropout(const std::string& name);
  void eager_forward(const std::string& prefix);
  void eager_backward();
  void eager_attention(const std::string& prefix);
  void eager_attention_backward();
  [[nodiscard]] std::vector<LinearLayer> eager_inputs() const;
  [[nodiscard]] std::vector<LinearLayer> eager_ffn_inputs() const;
  void eager_linears(const std::string& prefix, const std::string& what,
                     const std::vector<LinearLayer>& layers);
  void eager_linears_backward(const std::string& what, const std::vector<LinearLayer>& layers);
  void eager_rope(const std::string& prefix);
  void eager_activation(const std::string& prefix);
  void eager_activation_backward();
  [[nodiscard]] double stream() const { return list_.stream_element(); }
  void modulation(const std::string& prefix);
  void modulation_backward();
  void gate_backward(const std::string& branch);
  void shift_and_scale_backward(const std::string& branch);
  void attention(const std::string& prefix);
  void core_attention(const std::string& prefix);
  void attention_backward();
  void core_attention_backward();
  void flash_attention_backward();
  [[nodiscard]] AttentionShape attention_shape() const;
  [[nodiscard]] double scores_read() const;
  [[nodiscard]] bool shared_keys() const { return z_.kv < z_.h; }  // by heads of a rank
  void repeat_heads(const std::string& name);
  void sum_heads();
  void rope(const std::string& name);
  void feed_forward(const std::string& prefix);
  void ffn(const std::string& prefix);
  void ffn_backward();
  void experts(const std::string& prefix);
  void experts_backward();
  void sort_chunks(const std::string& name);
  void activation(const std::string& name, double rows, bool backward);
  void head_product(const std::string& name, std::uint64_t m, std::uint64_t n, std::uint64_t k);
  void expert_product(const std::string& name, std::uint64_t m, std::uint64_t n, std::uint64_t k);
  void expert_weight(const std::string& name, std::uint64_t outputs, std::uint64_t inputs);
  [[nodiscard]] std::uint64_t local_experts() const {
    return model_.experts / step_.expert_parallel;
  }
  [[nodiscard]] std::uint64_t active_experts() const;
  [[nodiscard]] std::uint64_t expert_rows() const;
  void exchange(const std::string& name);

  [[nodiscard]] LinearLayer qkv() const;
  [[nodiscard]] LinearLayer projection() const;
  [[nodiscard]] LinearLayer up() const;
  [[nodiscard]] LinearLayer down() const;
  [[nodiscard]] LinearLayer router() const;
  [[nodiscard]] LinearLayer shift_and_scale() const;
  [[nodiscard]] double chosen() const { return static_cast<double>(model_.experts_per_token); }

  KernelList& list_;
  const TrainingStep& step_;
  const ModelShape& model_;
  StepSizes z_;
};

}  // namespace rubato
