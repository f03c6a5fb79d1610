#include "traces/import/kernel_work.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

#include "traces/import/operator_work.hpp"

namespace rubato {

namespace {

using Parts = std::vector<std::string_view>;

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The parts of a list up to its closing bracket, "a, b<c, d>)..." -> "a", "b<c, d>".
Parts list_of(std::string_view text) {
  Parts parts;
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool opens = c == '<' || c == '(' || c == '[' || c == '{';
    const bool closes = c == '>' || c == ')' || c == ']' || c == '}';
    if (opens) ++depth;
    if ((c == ',' && depth == 0) || (closes && depth == 0)) {
      const std::string_view part = without_blanks(text.substr(from, i - from));
      if (!part.empty() || c == ',') parts.push_back(part);
      from = i + 1;
      if (closes) return parts;
    }
    if (closes) --depth;
  }
  return {};  // cut off
}

// Template arguments behind a name, where the name is not the end of a longer one.
Parts arguments_of(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t open = at + name.size();
    const char before = at == 0 ? ' ' : text[at - 1];
    const bool whole = before != '_' && std::isalnum(static_cast<unsigned char>(before)) == 0;
    if (whole && open < text.size() && text[open] == '<') return list_of(text.substr(open + 1));
  }
  return {};
}

// The list in the first angle brackets of "name<a, b>".
Parts arguments_of(std::string_view text) {
  const std::size_t open = text.find('<');
  return open == std::string_view::npos ? Parts() : list_of(text.substr(open + 1));
}

// "4", "(int)4", "3ul"
std::optional<std::uint64_t> number_of(std::string_view text) {
  if (text.starts_with('(')) text.remove_prefix(std::min(text.find(')') + 1, text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

struct Element {
  double bytes = 0.0;
  Dtype dtype = Dtype::unknown;
};

std::optional<Element> element_of(std::string_view type) {
  struct Known {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array known{Known{"float", 4.0},         Known{"double", 8.0},
                                    Known{"c10::Half", 2.0},     Known{"c10::BFloat16", 2.0},
                                    Known{"int", 4.0},           Known{"long", 8.0},
                                    Known{"short", 2.0},         Known{"bool", 1.0},
                                    Known{"unsigned char", 1.0}, Known{"signed char", 1.0},
                                    Known{"char", 1.0},          Known{"c10::Float8_e4m3fn", 1.0},
                                    Known{"unsigned int", 4.0},  Known{"c10::Float8_e5m2", 1.0}};
  const auto* const found = std::ranges::find(known, without_blanks(type), &Known::name);
  if (found == known.end()) return std::nullopt;
  return Element{found->bytes, dtype_from_framework(found->name)};
}

// What an element-wise functor reads and of which type.
struct Functor {
  std::optional<std::uint64_t> operands;
  std::optional<Element> element;
  double output_bytes = 0.0;
  bool only_moves = false;
};

Functor functor_of(std::string_view text) {
  Functor functor;
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  // Lambdas nest; the innermost one, the last, computes.
  const std::size_t lambda = text.rfind("lambda(");
  const Parts parameters =
      lambda != std::string_view::npos ? list_of(text.substr(lambda + 7)) : Parts();
  if (!parameters.empty() && element_of(parameters.front())) {
    functor.operands = parameters.size();
    functor.element = element_of(parameters.front());
  } else {
    if (has("FillFunctor")) {
      functor.operands = 0;
    } else if (has("AUnaryFunctor") || has("BUnaryFunctor") || has("OnSelf")) {
      functor.operands = 1;
    } else if (has("BinaryFunctor") || has("CUDAFunctor_")) {
      functor.operands = 2;
    }
    const std::size_t named = text.find("Functor");
    const Parts types =
        named != std::string_view::npos ? arguments_of(text.substr(named)) : Parts();
    if (!types.empty()) functor.element = element_of(types.front());
  }
  if (!functor.element) return functor;
  const bool narrows = has("float16_copy_kernel");  // and bfloat16_copy_kernel: from float
  functor.output_bytes = narrows ? 2.0 : functor.element->bytes;
  functor.only_moves = has("copy_kernel") || has("FillFunctor");
  return functor;
}

std::optional<NameWork> streamed(double elements, const Functor& functor,
                                 std::optional<std::uint64_t> tensors) {
  if (!functor.element) return std::nullopt;
  if (!tensors && functor.operands) tensors = *functor.operands + 1;
  if (!tensors || *tensors == 0) return std::nullopt;
  const double read = static_cast<double>(*tensors - 1) * functor.element->bytes;
  return NameWork{functor.only_moves ? 0.0 : elements, elements * (read + functor.output_bytes),
                  functor.element->dtype};
}

double product(const std::array<std::uint32_t, 3>& sizes) {
  return static_cast<double>(sizes[0]) * sizes[1] * sizes[2];
}

std::optional<NameWork> elementwise(std::string_view name, const LaunchShape& shape,
                                    int vector_items) {
  const double threads = product(shape.grid) * product(shape.block);
  const bool vectorized = name.find("vectorized_elementwise_kernel<") != std::string_view::npos;
  Parts arguments = arguments_of(
      name, vectorized ? "vectorized_elementwise_kernel" : "unrolled_elementwise_kernel");
  if (vectorized && !arguments.empty()) arguments.erase(arguments.begin());  // width of a load
  if (arguments.size() >= 2) {
    // Functor, then an array of pointers, then since 2.5 the elements a thread handles.
    const Parts array = arguments_of(arguments[1]);
    if (array.size() != 2) return std::nullopt;
    double items = vectorized ? vector_items : 4.0;
    if (!vectorized && arguments.size() > 2)
      items = static_cast<double>(number_of(arguments[2]).value_or(4));
    return streamed(threads * items, functor_of(arguments[0]), number_of(array[1]));
  }
  arguments = arguments_of(name, "elementwise_kernel");
  if (arguments.size() < 3) return std::nullopt;
  const auto items = number_of(arguments[1]);
  Parts inner = arguments_of(arguments[2], "gpu_kernel_impl_nocast");
  if (inner.empty()) inner = arguments_of(arguments[2], "gpu_kernel_impl");
  if (!items || inner.empty()) return std::nullopt;
  return streamed(threads * static_cast<double>(*items), functor_of(inner.front()), std::nullopt);
}

// A block takes a chunk of one tensor of a list; the last chunk of a tensor is smaller.
std::optional<NameWork> multi_tensor(std::string_view name, const LaunchShape& shape) {
  constexpr double chunk = 65536.0;  // PyTorch's kChunkSize, and apex's 2048 * 32
  const Parts arguments = arguments_of(name, "multi_tensor_apply_kernel");
  if (arguments.size() < 2) return std::nullopt;
  const Parts lists = arguments_of(arguments[0]);
  const Parts types = arguments_of(arguments[1]);
  // TensorListMetadata<2>, TensorListScalarListMetadata<float, 3>
  const auto depth = lists.empty() ? std::nullopt : number_of(lists.back());
  const auto element = types.empty() ? std::nullopt : element_of(types[0]);
  if (!depth || *depth == 0 || !element) return std::nullopt;
  const auto has = [&](std::string_view part) {
    return arguments[1].find(part) != std::string_view::npos;
  };
  // Functor<type, depth, number of lists read, ...> reads that many tensors and writes one.
  const auto read = types.size() == 4 ? number_of(types[2]) : std::nullopt;
  double tensors = static_cast<double>(read.value_or(*depth)) + 1.0;
  if (has("Norm")) tensors = static_cast<double>(*depth);
  // Fused Adam reads parameters, gradients and moments, and writes all but the gradients.
  if (has("FusedAdam") || has("AdamFunctor")) tensors = 2.0 * static_cast<double>(*depth) - 1.0;
  const double elements = product(shape.grid) * chunk;
  return NameWork{elements, elements * tensors * element->bytes, element->dtype};
}

// The grid is blocks of queries x batch x heads. Keys are taken to be as many as queries.
std::optional<NameWork> flash_attention(std::string_view name, const LaunchShape& shape) {
  const bool backward = name.find("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel") != name.npos;
  if (!backward && name.find("flash_fwd_kernel") == name.npos) return std::nullopt;
  const Parts outer = arguments_of(
      name, backward ? "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel" : "flash_fwd_kernel");
  const Parts traits =
      arguments_of(name, backward ? "Flash_bwd_kernel_traits" : "Flash_fwd_kernel_traits");
  if (traits.size() < 3 || outer.size() < 3) return std::nullopt;
  const auto head = number_of(traits[0]);
  const auto block = number_of(traits[backward ? 2 : 1]);  // keys backward, queries forward
  if (!head || !block) return std::nullopt;
  const std::uint64_t tokens = shape.grid[0] * *block;
  const double length = static_cast<double>(tokens);
  const double heads = static_cast<double>(shape.grid[1]) * shape.grid[2];
  const double width = static_cast<double>(*head);
  const bool causal = outer[2] == "(bool)1" || outer[2] == "true";
  const double products = backward ? 5.0 : 2.0, seen = causal ? 0.5 : 1.0;
  const bool half = name.find("half_t") != name.npos;
  const double tensors = backward ? 8.0 : 4.0, element_size = 2.0;
  return NameWork{products * 2.0 * heads * length * length * width * seen,
                  tensors * heads * length * width * element_size, half ? Dtype::fp16 : Dtype::bf16,
                  AttentionShape{.batch = shape.grid[1],
                                 .q_tokens = tokens,
                                 .kv_tokens = tokens,
                                 .heads = shape.grid[2],
                                 .kv_heads = shape.grid[2],
                                 .head_dim = *head,
                                 .causal = causal}};
}

// Since 2.7 PyTorch loads 16 bytes at once on Hopper and later, and a thread takes 8 elements.
int vector_items_of(const Capture& capture) {
  constexpr int before = 4, since = 8;
  const bool wide = std::ranges::any_of(capture.kernels, [](const Kernel& kernel) {
    const Parts arguments = arguments_of(kernel.label, "vectorized_elementwise_kernel");
    return !arguments.empty() && number_of(arguments[0]).value_or(0) >= since;
  });
  return wide ? since : before;
}

// Grids and template arguments of damaged names may be 0.
bool is_shape(const std::optional<AttentionShape>& shape) {
  return shape && shape->batch > 0 && shape->q_tokens > 0 && shape->heads > 0 &&
         shape->head_dim > 0;
}

}  // namespace

std::optional<NameWork> work_from_name(std::string_view full_name, const LaunchShape& shape,
                                       int vector_items) {
  constexpr std::size_t longest = 16384;  // names of real kernels are shorter
  if (full_name.size() > longest) return std::nullopt;
  if (full_name.find("elementwise_kernel<") != std::string_view::npos)
    return elementwise(full_name, shape, vector_items);
  if (full_name.find("multi_tensor_apply_kernel<") != std::string_view::npos)
    return multi_tensor(full_name, shape);
  return flash_attention(full_name, shape);
}

void guess_kernel_work(Capture& capture) {
  constexpr double most_bytes_per_s = 10e12, most_flops_per_s = 5e15;
  std::vector<double> time_s(capture.kernels.size(), 0.0), launches(time_s);
  for (const CapturedLaunch& launch : capture.launches) {
    time_s[index(launch.kernel)] += 1e-9 * static_cast<double>(launch.duration_ns);
    launches[index(launch.kernel)] += 1.0;
  }
  const int vector_items = vector_items_of(capture);
  for (std::size_t k = 0; k < capture.kernels.size(); ++k) {
    Kernel& kernel = capture.kernels[k];
    if (kernel.work_source != WorkSource::unknown || !kernel.launch) continue;
    const auto work = work_from_name(kernel.label, *kernel.launch, vector_items);
    if (!work || work->dram_bytes <= 0.0) continue;
    const bool possible = work->dram_bytes * launches[k] <= most_bytes_per_s * time_s[k] &&
                          work->flops * launches[k] <= most_flops_per_s * time_s[k];
    if (!possible) continue;
    kernel.flops = work->flops;
    kernel.dram_bytes = work->dram_bytes;
    if (is_shape(work->attention)) kernel.attention = work->attention;
    if (kernel.dtype == Dtype::unknown) kernel.dtype = work->dtype;
    kernel.work_source = WorkSource::guessed;
  }
}

}  // namespace rubato
