#include "traces/import/operator_work.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>

namespace rubato {

namespace {

double elements(const std::vector<std::uint64_t>& dims) {
  double product = dims.empty() ? 0.0 : 1.0;
  for (const std::uint64_t d : dims) product *= static_cast<double>(d);
  return product;
}

double bytes_per_element(Dtype dtype) {
  return dtype == Dtype::unknown ? 0.0 : element_bytes(dtype);
}

// Matrix product of operands `a` and `b`; in the column-major terms of GemmShape its m is the
// columns of b.
OperatorWork product(const OperatorCall& call, std::size_t a, std::size_t b) {
  if (call.dims.size() <= b) return {};
  const auto &left = call.dims[a], &right = call.dims[b];
  if (left.size() < 2 || right.size() != left.size() || left.back() != right[right.size() - 2])
    return {};
  const std::size_t rank = left.size();
  GemmShape gemm{.m = right[rank - 1], .n = left[rank - 2], .k = left[rank - 1]};
  for (std::size_t i = 0; i + 2 < rank; ++i) gemm.batch *= left[i];
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  const double m = number(gemm.m), n = number(gemm.n), k = number(gemm.k),
               batch = number(gemm.batch);
  OperatorWork work{.flops = 2.0 * m * n * k * batch,
                    .dram_bytes = {},
                    .gemm = gemm,
                    .dtype = call.dtypes[a],
                    .source = WorkSource::derived};
  if (work.dtype != Dtype::unknown)
    work.dram_bytes = batch * (m * k + k * n + m * n) * element_bytes(work.dtype);
  return work;
}

// Whether a call of attention says that it is causal: by the first truth value behind the
// probability of dropout, the first number with a point. Efficient attention has the number of a
// mask there, of which 0 is none.
bool says_causal(const OperatorCall& call) {
  const auto dropout = std::ranges::find_if(call.values, [](const std::string& value) {
    return value.find('.') != std::string::npos && value.find('[') == std::string::npos;
  });
  for (auto value = dropout; value != call.values.end(); ++value) {
    if (*value == "True" || *value == "1" || *value == "2") return true;
    if (*value == "False" || *value == "0") return false;
  }
  return false;
}

// Query, key and value, each of four dimensions of which `length` is the sequence; backward the
// gradient of the result stands before them.
OperatorWork attention(const OperatorCall& call, std::size_t length) {
  const bool backward = call.name.find("backward") != std::string::npos;
  const std::size_t first = backward ? 1 : 0;
  if (call.dims.size() < first + 3) return {};
  const auto &query = call.dims[first], &key = call.dims[first + 1], &value = call.dims[first + 2];
  if (query.size() != 4 || key.size() != 4) return {};
  const std::size_t heads = 3 - length;
  const AttentionShape shape{.batch = query[0],
                             .q_tokens = query[length],
                             .kv_tokens = key[length],
                             .heads = query[heads],
                             .kv_heads = key[heads],
                             .head_dim = query[3],
                             .causal = says_causal(call)};
  if (elements(query) == 0.0 || elements(key) == 0.0) return {};
  // Forward: queries x keys, weights x values.
  const double products = backward ? 5.0 : 2.0;
  OperatorWork work{.flops = products * 2.0 * attended_pairs(shape) *
                             static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                             static_cast<double>(shape.head_dim),
                    .dram_bytes = {},
                    .gemm = {},
                    .attention = {},
                    .dtype = call.dtypes[first],
                    .source = WorkSource::derived};
  if (shape.heads % shape.kv_heads == 0) work.attention = shape;
  // Backward the gradient and the result are read too, and three gradients are written.
  if (work.dtype != Dtype::unknown)
    work.dram_bytes = element_bytes(work.dtype) * (backward ? 2.0 : 1.0) *
                      (2.0 * elements(query) + elements(key) + elements(value));
  return work;
}

// "[2, 2]" or "1" of argument `i`.
std::vector<std::uint64_t> integers(const OperatorCall& call, std::size_t i) {
  std::vector<std::uint64_t> out;
  if (i >= call.values.size()) return out;
  const std::string& text = call.values[i];
  for (const char* at = text.data(); at != text.data() + text.size();) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), value);
    if (error == std::errc()) out.push_back(value);
    at = error == std::errc() ? end : at + 1;
  }
  return out;
}

bool is_backward_convolution(std::string_view name) {
  return name.find("convolution_backward") != std::string_view::npos;
}

// Where stride, padding and dilation stand among a convolution's arguments.
struct ConvolutionArguments {
  std::size_t stride = 3, padding = 4, dilation = 5, transposed = 6;
};

std::optional<ConvolutionArguments> convolution_arguments(std::string_view name) {
  if (name == "aten::cudnn_convolution") return ConvolutionArguments{3, 2, 4, 99};
  if (name == "aten::miopen_convolution") return ConvolutionArguments{4, 3, 5, 99};
  if (name == "aten::convolution_backward") return ConvolutionArguments{4, 5, 6, 7};
  for (const std::string_view known : {"aten::convolution", "aten::_convolution"}) {
    if (name == known) return ConvolutionArguments{};
  }
  for (const std::string_view known : {"aten::conv1d", "aten::conv2d", "aten::conv3d"}) {
    if (name == known) return ConvolutionArguments{3, 4, 5, 99};
  }
  return std::nullopt;
}

// Sizes of a convolution's result; those of the input where the stride is not known.
std::vector<std::uint64_t> convolved(const OperatorCall& call, const ConvolutionArguments& at,
                                     bool& known) {
  const auto &input = call.dims[0], &weight = call.dims[1];
  const auto stride = integers(call, at.stride), padding = integers(call, at.padding),
             dilation = integers(call, at.dilation);
  std::vector<std::uint64_t> out{input[0], weight[0]};
  known = !stride.empty() && !padding.empty() && !dilation.empty();
  for (std::size_t i = 2; i < input.size(); ++i) {
    const auto of = [&](const std::vector<std::uint64_t>& list) {
      return list[std::min(i - 2, list.size() - 1)];
    };
    std::uint64_t size = input[i];
    if (known && of(stride) > 0) {
      const std::uint64_t padded = input[i] + 2 * of(padding),
                          reach = of(dilation) * (weight[i] - 1) + 1;
      size = padded < reach ? 0 : (padded - reach) / of(stride) + 1;
    }
    out.push_back(size);
  }
  return out;
}

// Operands input and weight [out, in / groups, ...]; backward the gradient comes first.
OperatorWork convolution(const OperatorCall& call, const ConvolutionArguments& at) {
  const bool backward = is_backward_convolution(call.name);
  const std::size_t first = backward ? 1 : 0;
  if (call.dims.size() < first + 2) return {};
  const auto &input = call.dims[first], &weight = call.dims[first + 1];
  if (input.size() < 3 || weight.size() != input.size() || elements(weight) == 0.0) return {};
  const bool transposed =
      at.transposed < call.values.size() && call.values[at.transposed] == "True";
  bool known = true;
  std::vector<std::uint64_t> output;
  if (backward) {
    output = call.dims[0];
  } else {
    output = convolved(call, at, known);
    if (transposed) {
      known = false;  // the result is larger than the input; its work follows from the input
      output = input;
    }
  }
  // Every output (or, transposed, every input) meets the weights of one channel.
  const double meets = elements(transposed ? input : output);
  const double per_product = 2.0 * meets * elements(weight) / static_cast<double>(weight[0]);
  const double products = is_two_products(call) ? 2.0 : 1.0;
  OperatorWork work{.flops = products * per_product,
                    .dram_bytes = {},
                    .gemm = {},
                    .dtype = call.dtypes[first],
                    .source = known ? WorkSource::derived : WorkSource::guessed};
  if (work.dtype != Dtype::unknown) {
    work.dram_bytes = products * element_bytes(work.dtype) *
                      (elements(input) + elements(weight) + elements(output));
  }
  return work;
}

// Whether a name without its library is in a list of words, " word word ".
bool is_one_of(std::string_view name, std::string_view words) {
  constexpr std::string_view library = "aten::";
  return name.starts_with(library) &&
         words.find(fmt::format(" {} ", name.substr(library.size()))) != std::string_view::npos;
}

// Elements that an operator reads and writes where indices name them: rows of a table that is much
// larger, one logit of each row, places of a cache.
double indexed_elements(const OperatorCall& call) {
  const auto& dims = call.dims;
  const auto count = [&](std::size_t i) { return i < dims.size() ? elements(dims[i]) : 0.0; };
  const auto is = [&](std::string_view words) { return is_one_of(call.name, words); };
  if (is(" embedding ") && count(0) > 0.0) return count(1) * static_cast<double>(dims[0].back());
  if (is(" index_select ") && count(0) > 0.0) {
    const auto along = integers(call, 1);
    const std::size_t at = along.empty() || along[0] >= dims[0].size() ? 0 : along[0];
    return count(2) * count(0) / static_cast<double>(dims[0][at]);
  }
  if (is(" nll_loss_forward nll_loss2d_forward ")) return count(1);
  if (is(" gather scatter scatter_ scatter_add scatter_add_ index_put index_put_ _index_put_impl_ "
         "nll_loss_backward nll_loss2d_backward "))
    return count(2);
  if (is(" index_add index_add_ index_copy index_copy_ ")) return count(3);
  // Keys and values of new tokens go into the cache.
  return call.name.find("reshape_and_cache") != std::string::npos ? count(0) + count(1) : 0.0;
}

// A result that is much smaller than the only operand.
bool reduces(const OperatorCall& call) {
  return is_one_of(call.name,
                   " sum nansum mean prod max min amax amin argmax argmin any all norm "
                   "linalg_vector_norm var var_mean std std_mean logsumexp count_nonzero ") &&
         std::ranges::count_if(call.dims, [](const auto& d) { return elements(d) > 0.0; }) == 1;
}

OperatorWork streaming(const OperatorCall& call) {
  double bytes = 0.0, largest = 0.0, largest_bytes = 0.0;
  Dtype dtype = Dtype::unknown;
  for (std::size_t i = 0; i < call.dims.size(); ++i) {
    const double count = elements(call.dims[i]), size = count * bytes_per_element(call.dtypes[i]);
    bytes += size;
    if (count <= largest) continue;
    largest = count;
    largest_bytes = size;
    dtype = call.dtypes[i];
  }
  if (largest == 0.0 || bytes == 0.0) return {};
  const double moved = indexed_elements(call);
  if (moved > 0.0 && moved * largest_bytes <= largest * bytes) {
    bytes = 2.0 * moved * largest_bytes / largest;
    largest = moved;
  } else if (!reduces(call)) {
    bytes += largest_bytes;  // a result like the largest operand
  }
  return {.flops = largest,
          .dram_bytes = bytes,
          .gemm = {},
          .dtype = dtype,
          .source = WorkSource::guessed};
}

OperatorWork work_of(const OperatorCall& call) {
  const std::string_view name = call.name;
  const auto is = [&](std::string_view op) { return name == op; };
  if (is("aten::mm") || is("aten::bmm")) return product(call, 0, 1);
  if (is("aten::addmm") || is("aten::baddbmm") || is("aten::_addmm_activation"))
    return product(call, 1, 2);
  if (const auto at = convolution_arguments(name)) return convolution(call, *at);
  constexpr std::size_t heads_first = 2, length_first = 1;  // [b, h, s, d], [b, s, h, d]
  if (name.starts_with("aten::_scaled_dot_product") || name.starts_with("aten::_cudnn_attention"))
    return attention(call, heads_first);
  for (const std::string_view known :
       {"aten::_flash_attention", "aten::_efficient_attention", "flash_attn::_flash_attn"}) {
    if (name.starts_with(known)) return attention(call, length_first);
  }
  return streaming(call);
}

// No: sizes of a damaged file, or of an empty tensor, for which no product is launched.
bool is_plausible(const OperatorWork& work) {
  constexpr double most_work = 1e24;  // a month of a whole data centre
  constexpr std::uint64_t most_elements = std::uint64_t{1} << 50;
  const auto fits = [](const std::optional<double>& value) {
    return !value || *value <= most_work;
  };
  const auto is_size = [](std::uint64_t size) { return size > 0 && size <= most_elements; };
  if (!fits(work.flops) || !fits(work.dram_bytes)) return false;
  if (const auto& a = work.attention) {
    for (const auto size : {a->batch, a->q_tokens, a->kv_tokens, a->heads, a->head_dim}) {
      if (!is_size(size)) return false;
    }
  }
  return !work.gemm || (is_size(work.gemm->m) && is_size(work.gemm->n) && is_size(work.gemm->k) &&
                        is_size(work.gemm->batch));
}

}  // namespace

OperatorWork operator_work(const OperatorCall& call) {
  const OperatorWork work = work_of(call);
  return is_plausible(work) ? work : OperatorWork{};
}

void give_work(const OperatorWork& work, Kernel& kernel, double share) {
  if (work.flops) kernel.flops = *work.flops * share;
  if (work.dram_bytes) kernel.dram_bytes = *work.dram_bytes * share;
  kernel.gemm = work.gemm;
  kernel.attention = work.attention;
  kernel.dtype = work.dtype;
  kernel.work_source = work.source;
}

bool is_two_products(const OperatorCall& call) {
  if (!is_backward_convolution(call.name)) return false;
  // The first layer needs no gradient of its input: "[False, True, True]".
  constexpr std::size_t mask = 10;
  return call.values.size() <= mask || call.values[mask].find("[False") == std::string::npos;
}

// Operators that give other views of what there is, allocate, or tell about a tensor.
constexpr std::string_view idle_operators =
    " "
    "result_type size is_same_size view _unsafe_view reshape _reshape_alias view_as "
    "reshape_as t transpose permute expand expand_as broadcast_to as_strided "
    "as_strided_ detach detach_ slice select unsqueeze squeeze unsqueeze_ squeeze_ "
    "t_ transpose_ split split_with_sizes narrow empty empty_like empty_strided "
    "new_empty new_empty_strided resize_ _resize_output_ is_nonzero item "
    "_local_scalar_dense alias unbind chunk tensor_split lift lift_fresh set_ "
    "flatten unflatten movedim moveaxis swapaxes swapdims numpy_T mT mH adjoint "
    "diagonal unfold real imag view_as_real view_as_complex conj _conj resolve_conj "
    "resolve_neg to contiguous type_as record_stream is_pinned requires_grad_ "
    "retain_grad output_nr _version data stride dim numel is_floating_point "
    "is_complex can_cast _nested_tensor_size _has_compatible_shallow_copy_type "
    "_debug_has_internal_overlap dropout feature_dropout ";

bool moves_nothing(std::string_view name) { return is_one_of(name, idle_operators); }

KernelClass class_of_operator(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("::bmm") || has("baddbmm")) return KernelClass::gemm_batched;
  if (has("mm") && !has("comm") && !has("gamma")) return KernelClass::gemm;
  if (has("::conv") && !has("convert")) return KernelClass::gemm;
  if (has("convolution")) return KernelClass::gemm;  // cudnn_convolution
  if (has("attention")) return KernelClass::attention;
  if (has("softmax")) return KernelClass::softmax;
  if (has("layer_norm") || has("batch_norm") || has("rms_norm")) return KernelClass::layernorm;
  if (has("gelu")) return KernelClass::gelu;
  if (has("embedding") || has("index_select")) return KernelClass::embedding;
  if (has("_foreach") || has("_fused_adam") || has("_fused_sgd")) return KernelClass::optimizer;
  if (has("::sum") || has("::mean") || has("::max") || has("nll_loss")) return KernelClass::reduce;
  if (has("copy_") || has("clone") || has("cat") || has("contiguous")) return KernelClass::permute;
  return KernelClass::elementwise;
}

Dtype dtype_from_framework(std::string_view name) {
  struct Known {
    std::string_view name;
    Dtype dtype;
  };
  static constexpr Known known[] = {{"float", Dtype::fp32},
                                    {"Float", Dtype::fp32},
                                    {"double", Dtype::fp64},
                                    {"Double", Dtype::fp64},
                                    {"c10::Half", Dtype::fp16},
                                    {"Half", Dtype::fp16},
                                    {"c10::BFloat16", Dtype::bf16},
                                    {"BFloat16", Dtype::bf16},
                                    {"c10::Float8_e4m3fn", Dtype::fp8},
                                    {"c10::Float8_e5m2", Dtype::fp8},
                                    {"Float8_e4m3fn", Dtype::fp8}};
  const auto* const found = std::ranges::find(known, name, &Known::name);
  return found == std::end(known) ? Dtype::unknown : found->dtype;
}

std::optional<std::uint64_t> bytes_from_framework(std::string_view name) {
  const Dtype dtype = dtype_from_framework(name);
  if (dtype != Dtype::unknown) return static_cast<std::uint64_t>(element_bytes(dtype));
  struct Known {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr Known known[] = {
      {"long int", 8},      {"long", 8},  {"Long", 8},        {"int", 4},  {"Int", 4},
      {"short int", 2},     {"short", 2}, {"Short", 2},       {"bool", 1}, {"Bool", 1},
      {"unsigned char", 1}, {"Byte", 1},  {"signed char", 1}, {"char", 1}, {"Char", 1}};
  const auto* const found = std::ranges::find(known, name, &Known::name);
  return found == std::end(known) ? std::nullopt : std::optional(found->bytes);
}

}  // namespace rubato
