#pragma once
// Kernels of a step as they are launched, with the work that follows from their shapes.

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace rubato {

/// What tensor-parallel ranks share of a linear layer.
enum class LinearSplit {
  outputs,  ///< rows of the weight and of the bias
  inputs,   ///< columns of the weight; each has the whole bias
  rows      ///< rows of the input; each has the whole weight
};

/// A linear layer as one rank runs it: outputs = weight [outputs x inputs] times inputs, of `rows`
/// rows.
struct LinearLayer {
  std::string name;
  std::uint64_t outputs = 0, inputs = 0;
  std::uint64_t rows = 0;
  bool bias = false;
  LinearSplit split = LinearSplit::outputs;
};

/// Distinct tokens among uniformly random ones; real text has fewer.
/// @param tokens, vocabulary  at least 1
[[nodiscard]] double distinct_tokens(double tokens, double vocabulary);

/// A kernel whose work follows from shapes. @param flops, bytes  of one launch
[[nodiscard]] Kernel derived_kernel(std::string name, std::string label, KernelClass kind,
                                    Pass pass, Dtype dtype, double flops, double bytes);

/// A matrix product, each operand moved once.
/// @param bias  one is added on the way out
/// @param accumulates  onto its output, which is then read too
[[nodiscard]] Kernel gemm_kernel(std::string name, KernelClass kind, Pass pass, Dtype dtype,
                                 const GemmShape& shape, bool bias = false,
                                 bool accumulates = false);

/// `factor` times what is known of a kernel's work.
void scale_work(Kernel& kernel, double factor);

/// A kernel that each rank of a group runs: it reads and writes the whole buffer at least once.
[[nodiscard]] Kernel collective_kernel(std::string name, const Collective& collective, Pass pass,
                                       Dtype dtype);

/// Builds the trace of one rank, segment by segment. Lengths are doubles because byte counts are.
class KernelList {
 public:
  /// @param collectives  false: kernels alone
  KernelList(Dtype dtype, std::uint64_t tensor_parallel, bool collectives)
      : e_(element_bytes(dtype)),
        t_(static_cast<double>(tensor_parallel)),
        dtype_(dtype),
        collectives_(collectives) {}

  [[nodiscard]] double element() const noexcept { return e_; }  ///< bytes

  void pass(Pass pass) noexcept { pass_ = pass; }
  void segment(std::string name, std::uint64_t repeat);

  /// @param flops, bytes  of one launch on this rank
  Kernel& add(std::string name, std::string label, KernelClass kind, double flops, double bytes);

  /// The same, of all ranks of a tensor-parallel group together.
  Kernel& split(std::string name, std::string label, KernelClass kind, double flops, double bytes) {
    return add(std::move(name), std::move(label), kind, flops / t_, bytes / t_);
  }

  /// As gemm_kernel, on this rank.
  Kernel& gemm(std::string name, KernelClass kind, const GemmShape& shape, bool bias = false,
               bool accumulates = false);

  /// "PREFIX_gemm_NAME", and in the backward pass "bwd_gemm_NAME_input" and "bwd_gemm_NAME_weight".
  /// The gradient of a bias comes out of the product that makes the weight's. Of what every rank
  /// has whole, a rank's share is finished.
  void linear(const std::string& prefix, const LinearLayer& layer);
  void linear_input(const LinearLayer& layer, bool accumulates = false);
  void linear_weight(const LinearLayer& layer);

  /// Nothing for a group of one, or where kernels stand alone.
  /// @param stride  GPUs from one rank of the group to the next
  void collective(std::string name, CollectiveKind kind, double elements, std::uint64_t group,
                  std::uint64_t stride = 1);

  /// The last kernel finishes these gradients of the rank.
  void finishes(double elements) { gradients_.back() += elements; }

  /// Elements of gradients each kernel finishes in a launch, shape [kernels].
  [[nodiscard]] const std::vector<double>& gradients() const noexcept { return gradients_; }

  /// The kernels so far; the list is then empty. @throws DataError
  [[nodiscard]] Trace take(std::string name, Provenance provenance);

 private:
  Kernel& append(Kernel kernel);

  double e_, t_;
  Dtype dtype_;
  bool collectives_;
  Pass pass_ = Pass::embedding;
  Trace trace_;
  std::vector<double> gradients_;
};

}  // namespace rubato
