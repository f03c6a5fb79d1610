#pragma once
// FLOPs and bytes of a framework's operator from the shapes it was called with.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace rubato {

/// A call of an operator and its operands; a scalar has no dimensions.
struct OperatorCall {
  std::string name;                              ///< "aten::mm"
  std::vector<std::vector<std::uint64_t>> dims;  ///< shape [operands][dimensions]
  std::vector<Dtype> dtypes;                     ///< shape [operands]
  std::vector<std::string> values = {};  ///< what is no tensor, as text: "[2, 2]"; may be empty

  friend bool operator==(const OperatorCall&, const OperatorCall&) = default;
};

/// What a call does; nothing where the rules do not know it.
struct OperatorWork {
  std::optional<double> flops;
  std::optional<double> dram_bytes;  ///< every operand and result once: a lower bound
  std::optional<GemmShape> gemm;
  std::optional<AttentionShape> attention = {};
  Dtype dtype = Dtype::unknown;
  WorkSource source = WorkSource::unknown;
};

/// Work of a call by rules. FLOPs that are `derived`:
/// - 2 m n k of a matrix product;
/// - 4 b h p d of attention, for b sequences, h heads of width d and p pairs of query and key
///   (attended_pairs; all of them where the call does not say that it is causal); 10 b h p d of its
///   backward pass;
/// - of a convolution, 2 for each output and weight of the output's channel; twice that of a
///   backward pass that makes both gradients.
/// FLOPs that are `guessed`:
/// - a convolution of unknown stride counts as one of stride 1, a transposed one by its input;
/// - any other operator does one FLOP per element of its largest operand.
[[nodiscard]] OperatorWork operator_work(const OperatorCall& call);

/// Gives a kernel this work, or a share of it; what is not known of FLOPs and bytes stays.
void give_work(const OperatorWork& work, Kernel& kernel, double share = 1.0);

/// Whether the call runs two products of equal work: the backward pass of a convolution that makes
/// the gradients of input and of weights.
[[nodiscard]] bool is_two_products(const OperatorCall& call);

/// Operators that compute nothing: they view memory in another way, allocate it or ask for a value.
/// Some compute through operators within them, which are counted then: "aten::to" of another type.
[[nodiscard]] bool moves_nothing(std::string_view name);

/// Class of the kernel that does an operator's work.
[[nodiscard]] KernelClass class_of_operator(std::string_view name);

/// "c10::BFloat16", "float", "Half", "BFloat16" ...; unknown otherwise.
[[nodiscard]] Dtype dtype_from_framework(std::string_view name);

/// Bytes of an element of such a type, whole numbers too ("long int", "Byte"); nothing otherwise.
[[nodiscard]] std::optional<std::uint64_t> bytes_from_framework(std::string_view name);

}  // namespace rubato
