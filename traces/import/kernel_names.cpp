#include "traces/import/kernel_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "common/text.hpp"
#include "traces/import/operator_work.hpp"

namespace rubato {

namespace {

struct NameRule {
  std::string_view part;
  KernelClass kind;
};

// The first rule whose part is in the name decides, so special names come before general ones.
constexpr std::array name_rules{
    NameRule{"copybuffer", KernelClass::memcpy},
    NameRule{"fillbuffer", KernelClass::memset},
    NameRule{"reshape_and_cache", KernelClass::permute},
    NameRule{"flash", KernelClass::attention},
    NameRule{"fmha", KernelClass::attention},
    NameRule{"attention", KernelClass::attention},
    NameRule{"attn", KernelClass::attention},
    NameRule{"sdpa", KernelClass::attention},
    NameRule{"batchdecode", KernelClass::attention},
    NameRule{"batchprefill", KernelClass::attention},
    NameRule{"singledecode", KernelClass::attention},
    NameRule{"singleprefill", KernelClass::attention},
    NameRule{"mergestate", KernelClass::attention},
    NameRule{"adam", KernelClass::optimizer},
    NameRule{"multi_tensor_apply", KernelClass::optimizer},
    NameRule{"lamb_", KernelClass::optimizer},
    NameRule{"gemm", KernelClass::gemm},
    NameRule{"matmul", KernelClass::gemm},
    NameRule{"triton_mm", KernelClass::gemm},
    NameRule{"triton_bmm", KernelClass::gemm},
    NameRule{"fused_moe", KernelClass::gemm},
    NameRule{"gemv", KernelClass::gemm},
    NameRule{"nvjet", KernelClass::gemm},
    NameRule{"cutlass", KernelClass::gemm},
    NameRule{"xmma", KernelClass::gemm},
    NameRule{"wgrad", KernelClass::gemm},
    NameRule{"dgrad", KernelClass::gemm},
    NameRule{"convolve", KernelClass::gemm},
    NameRule{"winograd", KernelClass::gemm},
    NameRule{"scudnn", KernelClass::gemm},
    NameRule{"fprop", KernelClass::gemm},
    NameRule{"conv2d", KernelClass::gemm},
    NameRule{"cijk_", KernelClass::gemm},
    NameRule{"splitkreduce", KernelClass::reduce},
    NameRule{"layer_norm", KernelClass::layernorm},
    NameRule{"layernorm", KernelClass::layernorm},
    NameRule{"rms_norm", KernelClass::layernorm},
    NameRule{"rmsnorm", KernelClass::layernorm},
    NameRule{"batch_norm", KernelClass::layernorm},
    NameRule{"bn_fw", KernelClass::layernorm},
    NameRule{"bn_bw", KernelClass::layernorm},
    NameRule{"softmax", KernelClass::softmax},
    NameRule{"gelu", KernelClass::gelu},
    NameRule{"embedding", KernelClass::embedding},
    NameRule{"indexselect", KernelClass::embedding},
    NameRule{"transpose", KernelClass::permute},
    NameRule{"permute", KernelClass::permute},
    NameRule{"catarray", KernelClass::permute},
    NameRule{"nchwtonhwc", KernelClass::permute},
    NameRule{"nhwctonchw", KernelClass::permute},
    NameRule{"reduce", KernelClass::reduce},
    NameRule{"elementwise", KernelClass::elementwise},
    NameRule{"scal_kernel", KernelClass::elementwise},
};

// Parts of the names of functions that wait for other GPUs, in lower case without underscores.
// NCCL, RCCL, MSCCL and MSCCL++, NVSHMEM, PyTorch's symmetric memory, Transformer Engine's
// userbuffers, the all-reduces of vLLM, SGLang, FlashInfer and TensorRT-LLM, and the exchanges of
// experts.
constexpr std::string_view collective_functions =
    "nccl rccl msccl oneccl nvshmem symmmem multimem userbuffers allreduce allgather "
    "reducescatter alltoall all2all moea2a crossdevicereduce quickreduce oneshot twoshot "
    "epdispatch epcombine putsignal waitsignal lowlatencydispatch lowlatencycombine "
    "sendrecv";

// What holds one of them and computes on one GPU all the same.
constexpr std::string_view local_functions = "smallreduce smallgather blockallreduce warpallreduce";

// Namespaces whose kernels are collectives whatever they are called ("dispatch", "combine",
// "barrier"), written as above.
constexpr std::string_view collective_scopes =
    "internode intranode hybridep mscclpp nvshmem nccl rccl oneccl symmetricmemory "
    "userbuffers allreduce alltoall";

// Namespaces that hold the part of a rule and say nothing of their kernels: libraries of embeddings
// and sparse operators, of whatever inference needs.
constexpr std::string_view mixed_libraries = "fbgemm_gpu flashinfer";

// @param words  with blanks between
bool has_any(std::string_view text, std::string_view words) {
  return std::ranges::any_of(split(words, ' '), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

std::string without_underscores(std::string_view lower) {
  std::string text(lower);
  std::erase(text, '_');
  return text;
}

bool is_collective_function(std::string_view lower) {
  std::string text = without_underscores(lower);
  for (const std::string_view local : split(local_functions, ' ')) {
    for (std::size_t at = text.find(local); at != std::string::npos; at = text.find(local))
      text.erase(at, local.size());
  }
  return has_any(text, collective_functions);
}

// ---- Names taken apart ----

bool is_identifier(char c) {
  return c == '_' || c == '$' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// Behind the bracket that closes the one at `open`, or the end of the text.
std::size_t behind_bracket(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (c == '>' && i > 0 && text[i - 1] == '-') continue;  // an arrow
    if ((c == '>' || c == ')' || c == ']' || c == '}') && --depth == 0) return i + 1;
  }
  return text.size();
}

// The parts of "a, b<c, d>".
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= list.size();) {
    if (i == list.size() || list[i] == ',') {
      std::string_view part = list.substr(from, i - from);
      while (part.starts_with(' ')) part.remove_prefix(1);
      while (part.ends_with(' ')) part.remove_suffix(1);
      if (!part.empty()) parts.push_back(part);
      from = ++i;
    } else if (list[i] == '<' || list[i] == '(' || list[i] == '[' || list[i] == '{') {
      i = behind_bracket(list, i);
    } else {
      ++i;
    }
  }
  return parts;
}

KernelName parse_demangled(std::string_view text) {
  KernelName name;
  std::size_t from = 0, i = 0;
  const auto here = [&] { return text.substr(from, i - from); };
  while (i < text.size()) {
    const char c = text[i];
    if (c == ':' && i + 1 < text.size() && text[i + 1] == ':') {
      if (name.function.empty()) name.function = here();
      if (!name.function.empty()) name.scope.push_back(name.function);
      name.function = {};
      name.arguments.clear();
      from = i += 2;
    } else if (c == ' ') {  // what is before it was the return type
      if (i + 1 < text.size() && text[i + 1] == '[') break;
      name = {};
      from = ++i;
    } else if (c == '<' && i > from) {
      if (name.function.empty()) name.function = here();
      const std::size_t end = behind_bracket(text, i);
      const std::size_t inside = end > i + 1 && text[end - 1] == '>' ? end - i - 2 : end - i - 1;
      name.arguments = parts_of(text.substr(i + 1, inside));
      from = i = end;
    } else if (c == '(' && (i > from || !name.function.empty())) {
      break;  // call arguments
    } else if (c == '<' || c == '(' || c == '{' || c == '[') {
      from = i = behind_bracket(text, i);  // "(anonymous namespace)", "<unnamed>", "(int)4"
    } else if (!is_identifier(c) && i == from) {
      from = ++i;  // "&name"
    } else {
      ++i;
    }
  }
  if (name.function.empty()) name.function = here();
  return name;
}

// The name that a mangled text has at `at`, "8dispatch", and moves behind it.
std::optional<std::string_view> source_name(std::string_view text, std::size_t& at) {
  std::size_t length = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + at, end, length);
  const auto from = static_cast<std::size_t>(rest - text.data());
  if (error != std::errc() || length == 0 || from >= text.size()) return std::nullopt;
  const std::string_view name = text.substr(from, length);  // shorter where the text is cut off
  if (std::isdigit(static_cast<unsigned char>(name.front())) != 0 ||
      !std::ranges::all_of(name, is_identifier))
    return std::nullopt;
  at = from + name.size();
  return name;
}

// Of the Itanium C++ ABI only what names are made of: a full demangler can be made to expand a
// short text without end.
KernelName parse_mangled(std::string_view text) {
  KernelName name;
  std::size_t at = 2;
  if (text.substr(at).starts_with('N')) ++at;
  while (at < text.size() && (text[at] == 'K' || text[at] == 'V' || text[at] == 'r')) ++at;
  if (text.substr(at).starts_with("St")) at += 2;
  while (const auto next = source_name(text, at)) {
    if (!name.function.empty()) name.scope.push_back(name.function);
    name.function = next->starts_with("_GLOBAL__N") ? std::string_view() : *next;
  }
  if (!text.substr(std::min(at, text.size())).starts_with('I')) return name;  // no template
  while (at < text.size()) {
    if (text[at] == 'L' && at + 1 < text.size()) {  // a number: Li8E
      const std::size_t end = text.find('E', at);
      const std::string_view digits =
          text.substr(at + 2, end == std::string_view::npos ? end : end - at - 2);
      if (digits.find_first_not_of("n0123456789") == std::string_view::npos) {
        at = std::min(end, text.size());
        continue;
      }
    }
    const auto next = source_name(text, at);
    if (next) {
      name.arguments.push_back(*next);
    } else {
      ++at;
    }
  }
  return name;
}

// ---- Classes ----

// torch.compile names a kernel by all operators fused in it, so the name of a matrix product may
// hold "softmax". What the kernel is stands before them: a template (tem), an element-wise one
// (poi, "pointwise") or a reduction (red, per).
std::optional<KernelClass> class_of_inductor_kernel(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("triton_tem_"))
    return has("attention") || has("flash") ? KernelClass::attention : KernelClass::gemm;
  const bool elementwise = has("triton_poi_");
  if (!elementwise && !has("triton_red_") && !has("triton_per_")) return std::nullopt;
  if (has("adam") || has("lamb_")) return KernelClass::optimizer;
  if (elementwise) return has("gelu") ? KernelClass::gelu : KernelClass::elementwise;
  if (has("softmax")) return KernelClass::softmax;
  return has("_norm") ? KernelClass::layernorm : KernelClass::reduce;
}

std::optional<KernelClass> class_by_rules(std::string_view lower) {
  for (const NameRule& rule : name_rules) {
    if (lower.find(rule.part) != std::string_view::npos) return rule.kind;
  }
  return std::nullopt;
}

bool is_collective_scope(const KernelName& name) {
  return std::ranges::any_of(name.scope, [](std::string_view part) {
    const std::string text = without_underscores(lower_case(part));
    return text == "ccl" || has_any(text, collective_scopes);
  });
}

std::optional<KernelClass> class_of(const KernelName& name, int depth);

std::optional<KernelClass> class_of_arguments(const KernelName& name, int depth) {
  constexpr int deepest = 8;
  if (depth >= deepest) return std::nullopt;
  for (const std::string_view argument : name.arguments) {
    if (argument.ends_with("_t")) continue;  // cutlass::half_t
    const auto found = class_of(parse_kernel_name(argument), depth + 1);
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<KernelClass> class_of(const KernelName& name, int depth) {
  const std::string function = lower_case(name.function);
  if (const auto known = class_of_inductor_kernel(function)) return known;
  if (is_collective_function(function) || is_collective_scope(name))
    return KernelClass::communication;
  if (const auto known = class_by_rules(function)) {
    // Element-wise kernels are named by what they run over the elements.
    const bool gelu = known == KernelClass::elementwise &&
                      std::ranges::any_of(name.arguments, [](std::string_view argument) {
                        return lower_case(argument).find("gelu") != std::string::npos;
                      });
    return gelu ? KernelClass::gelu : *known;
  }
  return class_of_arguments(name, depth);
}

std::optional<KernelClass> class_of_scope(const KernelName& name) {
  for (auto part = name.scope.rbegin(); part != name.scope.rend(); ++part) {
    const std::string scope = lower_case(*part);
    if (has_any(scope, mixed_libraries)) continue;
    if (const auto known = class_by_rules(scope)) return known;
  }
  return std::nullopt;
}

}  // namespace

KernelName parse_kernel_name(std::string_view full) {
  if (full.starts_with("_Z")) return parse_mangled(full);
  // Words of a tool, no name of C++.
  if (full.find_first_of("<(") == std::string_view::npos &&
      full.find("::") == std::string_view::npos)
    return {.function = full, .scope = {}, .arguments = {}};
  return parse_demangled(full);
}

std::string short_kernel_name(std::string_view full) {
  const KernelName name = parse_kernel_name(full);
  std::string_view out = name.function;
  // cutlass::Kernel<cutlass_80_tensorop_...>: the argument is the name.
  if ((out == "Kernel" || out == "Kernel2") && !name.arguments.empty())
    out = name.arguments.front().substr(0, name.arguments.front().find_first_of(",<>:"));
  constexpr std::size_t longest = 60;
  out = utf8_prefix(out, longest);
  return out.empty() ? "kernel" : std::string(out);
}

KernelClass kernel_class_of(std::string_view full_name, std::string_view op) {
  constexpr std::size_t longest = 4096;
  const KernelName name = parse_kernel_name(full_name.substr(0, longest));
  if (const auto known = class_of(name, 0)) return *known;
  const auto by_scope = class_of_scope(name);
  if (op.empty()) return by_scope.value_or(KernelClass::other);
  if (is_collective_operator(op)) return KernelClass::communication;
  const KernelClass by_operator = class_of_operator(op);
  if (by_operator != KernelClass::elementwise) return by_operator;
  const bool known = by_scope && op.starts_with("aten::");  // else it is what nothing else fits
  return known ? by_operator : by_scope.value_or(KernelClass::other);
}

bool is_collective_operator(std::string_view name) {
  const std::string lower = lower_case(name);
  return lower.starts_with("c10d::") || lower.starts_with("_c10d_functional::") ||
         is_collective_function(lower);
}

CollectiveKind collective_kind_of(std::string_view name) {
  const std::string lower = lower_case(name), text = without_underscores(lower);
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (has("userbuffers")) {
    if (!has("sum")) return CollectiveKind::send_recv;
    return lower.find("_rs") != std::string::npos   ? CollectiveKind::reduce_scatter
           : lower.find("_ag") != std::string::npos ? CollectiveKind::all_gather
                                                    : CollectiveKind::all_reduce;
  }
  struct Known {
    std::string_view part;
    CollectiveKind kind;
  };
  // In order: "reducescatter" before "reduce".
  static constexpr std::array known{Known{"allreduce", CollectiveKind::all_reduce},
                                    Known{"crossdevicereduce", CollectiveKind::all_reduce},
                                    Known{"quickreduce", CollectiveKind::all_reduce},
                                    Known{"allgather", CollectiveKind::all_gather},
                                    Known{"reducescatter", CollectiveKind::reduce_scatter},
                                    Known{"alltoall", CollectiveKind::all_to_all},
                                    Known{"all2all", CollectiveKind::all_to_all},
                                    Known{"a2a", CollectiveKind::all_to_all},
                                    Known{"dispatch", CollectiveKind::all_to_all},
                                    Known{"combine", CollectiveKind::all_to_all},
                                    Known{"broadcast", CollectiveKind::broadcast},
                                    Known{"reduce", CollectiveKind::reduce},
                                    Known{"send", CollectiveKind::send_recv},
                                    Known{"recv", CollectiveKind::send_recv}};
  const auto* const found =
      std::ranges::find_if(known, [&](const Known& k) { return has(k.part); });
  return found == known.end() ? CollectiveKind::other : found->kind;
}

}  // namespace rubato
