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
  bool in_layer = false;  ///< computed in the type of the layers' matrices
};

/// What a kernel is part of, where that decides what runs beside it.
enum class KernelPart : std::uint8_t {
  other,
  attention,           ///< from queries, keys and values to their result: a ring repeats it
  attention_backward,  ///< the gradients of these
  expert,              ///< done for the experts of this rank
  gradient_sum         ///< adds up complete gradients of weights inside a tensor-parallel group
};

/// Expected number of distinct tokens among uniformly random ones; real text has fewer.
/// @param tokens      how many are drawn, at least 1
/// @param vocabulary  from how many, at least 1
[[nodiscard]] double distinct_tokens(double tokens, double vocabulary);

/// A kernel whose work follows from shapes. @param flops, bytes  of one launch; bytes are of DRAM
[[nodiscard]] Kernel derived_kernel(std::string name, std::string label, KernelClass kind,
                                    Pass pass, Dtype dtype, double flops, double bytes);

/// What a product computes in, which is the type of its operands, and bytes of an element of its
/// result and its bias.
struct ProductType {
  Dtype dtype = Dtype::bf16;
  double result_element = 2.0;
};

/// A matrix product, each operand moved once.
/// @param bias         a bias is added on the way out
/// @param accumulates  the product is added to its output, which is then read too
[[nodiscard]] Kernel gemm_kernel(std::string name, KernelClass kind, Pass pass,
                                 const ProductType& type, const GemmShape& shape, bool bias = false,
                                 bool accumulates = false);

/// Multiplies what is known of a kernel's work by `factor`.
void scale_work(Kernel& kernel, double factor);

/// A kernel that each rank of a group runs: it reads and writes the whole buffer at least once.
[[nodiscard]] Kernel collective_kernel(std::string name, const Collective& collective, Pass pass,
                                       Dtype dtype);

/// Kernels of a rank and what they make ready.
struct GeneratedStep {
  Trace trace;
  std::vector<double> gradients;  ///< elements each kernel finishes per launch, shape [kernels]
  std::vector<KernelPart> parts;  ///< shape [kernels]
};

/// What a rank's kernels are made with.
struct ListedRank {
  Dtype dtype = Dtype::bf16;          ///< of what is stored
  Dtype product = Dtype::bf16;        ///< of products
  Dtype layer_product = Dtype::bf16;  ///< of the layers' matrices; other than product: with casts
  bool eager = false;                 ///< biases' gradients in kernels of their own
  bool autocast = false;  ///< in 16 bits: weights and the stream between layers are kept in fp32
  std::uint64_t tensor_parallel = 1;
  bool sequence_parallel = true;  ///< what lies between products is split over its ranks too
  bool collectives = true;        ///< false: kernels alone
  bool accumulates = false;       ///< gradients of weights are added to those already there
  bool fp32_gradients = false;    ///< of weights, whatever the dtype
};

/// Builds the trace of one rank, segment by segment. Lengths are doubles because byte counts are.
class KernelList {
 public:
  explicit KernelList(const ListedRank& rank)
      : rank_(rank), e_(element_bytes(rank.dtype)), t_(static_cast<double>(rank.tensor_parallel)) {}

  [[nodiscard]] double element() const noexcept { return e_; }  ///< bytes
  /// Bytes of an element of the stream between layers: autocast keeps it, and weights, in fp32.
  [[nodiscard]] double stream_element() const noexcept {
    return rank_.autocast ? element_bytes(Dtype::fp32) : e_;
  }
  /// Bytes of an element of a weight's gradient.
  [[nodiscard]] double gradient_element() const noexcept {
    return rank_.fp32_gradients ? element_bytes(Dtype::fp32) : e_;
  }

  void pass(Pass pass) noexcept { pass_ = pass; }
  /// Sets the part of what is launched from here on.
  void part(KernelPart part) noexcept { part_ = part; }
  void segment(std::string name, std::uint64_t repeat);

  /// @param flops, bytes  of one launch on this rank
  Kernel& add(std::string name, std::string label, KernelClass kind, double flops, double bytes);

  /// As add; the work is that of all ranks of a tensor-parallel group together, and a rank does its
  /// share.
  Kernel& split(std::string name, std::string label, KernelClass kind, double flops, double bytes) {
    return add(std::move(name), std::move(label), kind, flops / t_, bytes / t_);
  }

  /// As split, for what lies between products: without sequence parallelism each rank does all of
  /// it.
  Kernel& between(std::string name, std::string label, KernelClass kind, double flops,
                  double bytes) {
    const double ranks = rank_.sequence_parallel ? t_ : 1.0;
    return add(std::move(name), std::move(label), kind, flops / ranks, bytes / ranks);
  }

  /// As gemm_kernel, on this rank.
  Kernel& gemm(std::string name, KernelClass kind, const GemmShape& shape, bool bias = false,
               bool accumulates = false, bool in_layer = false);

  /// The product whose output is a weight's gradient. finishes() is for the caller to call.
  Kernel& weight_gradient(std::string name, const GemmShape& shape, bool bias = false,
                          bool in_layer = false);

  /// A linear layer: "PREFIX_gemm_NAME", and in the backward pass "bwd_gemm_NAME_input" and
  /// "bwd_gemm_NAME_weight". The gradient of a bias comes out of the product that makes the
  /// weight's, of eager kernels from "bwd_bias_NAME". Before a product in 8 or 4 bits, and before
  /// eager ones in 16, stand casts. linear_weight() finishes the gradients, of what every rank has
  /// whole a rank's share.
  void linear(const std::string& prefix, const LinearLayer& layer);
  void linear_input(const LinearLayer& layer, bool accumulates = false);
  void linear_weight(const LinearLayer& layer);

  /// A collective; nothing for a group of one, or where kernels stand alone.
  /// @param stride  GPUs from one rank of the group to the next
  void collective(std::string name, CollectiveKind kind, double elements, std::uint64_t group,
                  std::uint64_t stride = 1);

  /// An all-reduce of gradients of weights, in their type.
  void reduce_gradients(std::string name, double elements, std::uint64_t group,
                        std::uint64_t stride = 1) {
    collective(std::move(name), CollectiveKind::all_reduce, elements * gradient_element() / e_,
               group, stride);
  }

  /// Activations between products, of a tensor-parallel group. gather() collects them before a
  /// product ("PREFIX_all_gather_WHAT"); without sequence parallelism it does nothing. sum() adds
  /// them up behind one: "PREFIX_reduce_scatter_WHAT", or without it "PREFIX_all_reduce_WHAT".
  void gather(const std::string& prefix, const std::string& what, double elements);
  void sum(const std::string& prefix, const std::string& what, double elements);

  /// The kernel launched last finishes so many gradient elements of the rank.
  void finishes(double elements) { made_.gradients.back() += elements; }

  /// The kernels so far; the list is then empty. @throws DataError
  [[nodiscard]] GeneratedStep take(std::string name, Provenance provenance);

 private:
  Kernel& append(Kernel kernel);
  void quantise(const std::string& name, double elements);
  [[nodiscard]] bool autocasts() const noexcept { return e_ < stream_element(); }

  ListedRank rank_;
  double e_, t_;
  Pass pass_ = Pass::embedding;
  KernelPart part_ = KernelPart::other;
  GeneratedStep made_;
};

}  // namespace rubato
