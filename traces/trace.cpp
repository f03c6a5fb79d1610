#include "traces/trace.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"
#include "traces/launch_limit.hpp"

namespace rubato {

namespace {

// Names in the order of the enumerators; one specialisation per enumeration.
template <class Enum>
const std::vector<std::string>& names();

template <>
const std::vector<std::string>& names<Pass>() {
  static const std::vector<std::string> list{
      "embedding", "forward", "loss", "backward", "embedding_backward", "optimizer", "unknown"};
  return list;
}

template <>
const std::vector<std::string>& names<KernelClass>() {
  static const std::vector<std::string> list{"embedding",   "layernorm",     "residual_layernorm",
                                             "gemm",        "gemm_batched",  "attention",
                                             "softmax",     "permute",       "gelu",
                                             "elementwise", "bias",          "bias_reduce",
                                             "reduce",      "optimizer",     "memset",
                                             "memcpy",      "communication", "other"};
  return list;
}

template <>
const std::vector<std::string>& names<Dtype>() {
  static const std::vector<std::string> list{"bf16", "fp16", "fp32",  "fp64",
                                             "tf32", "fp8",  "nvfp4", "unknown"};
  return list;
}

template <>
const std::vector<std::string>& names<CollectiveKind>() {
  static const std::vector<std::string> list{"all_reduce", "all_gather", "reduce_scatter",
                                             "all_to_all", "broadcast",  "reduce",
                                             "send_recv",  "other"};
  return list;
}

template <>
const std::vector<std::string>& names<WorkSource>() {
  static const std::vector<std::string> list{"measured", "derived", "guessed", "unknown"};
  return list;
}

template <class Enum>
std::string_view name_in_list(Enum value) noexcept {
  return names<Enum>()[static_cast<std::size_t>(value)];
}

}  // namespace

std::string_view name_of(Pass value) noexcept { return name_in_list(value); }
std::string_view name_of(KernelClass value) noexcept { return name_in_list(value); }
std::string_view name_of(Dtype value) noexcept { return name_in_list(value); }
std::string_view name_of(CollectiveKind value) noexcept { return name_in_list(value); }
std::string_view name_of(WorkSource value) noexcept { return name_in_list(value); }

template <class Enum>
std::optional<Enum> from_name(std::string_view name) noexcept {
  const auto& list = names<Enum>();
  const auto found = std::ranges::find(list, name);
  if (found == list.end()) return std::nullopt;
  return static_cast<Enum>(found - list.begin());
}

template <class Enum>
std::span<const std::string> all_names() {
  return names<Enum>();
}

template std::optional<Pass> from_name<Pass>(std::string_view) noexcept;
template std::optional<KernelClass> from_name<KernelClass>(std::string_view) noexcept;
template std::optional<Dtype> from_name<Dtype>(std::string_view) noexcept;
template std::optional<CollectiveKind> from_name<CollectiveKind>(std::string_view) noexcept;
template std::optional<WorkSource> from_name<WorkSource>(std::string_view) noexcept;
template std::span<const std::string> all_names<Pass>();
template std::span<const std::string> all_names<KernelClass>();
template std::span<const std::string> all_names<Dtype>();
template std::span<const std::string> all_names<CollectiveKind>();
template std::span<const std::string> all_names<WorkSource>();

double element_bytes(Dtype dtype) {
  constexpr double nvfp4_block = 16.0;
  switch (dtype) {
    case Dtype::nvfp4: return 0.5 + 1.0 / nvfp4_block;
    case Dtype::fp8: return 1.0;
    case Dtype::bf16:
    case Dtype::fp16: return 2.0;
    case Dtype::fp32:
    case Dtype::tf32: return 4.0;
    case Dtype::fp64: return 8.0;
    case Dtype::unknown: break;
  }
  throw DataError("the element type is unknown; expected one with a size");
}

double attended_pairs(const AttentionShape& shape) {
  const double queries = static_cast<double>(shape.q_tokens),
               keys = static_cast<double>(shape.kv_tokens);
  if (!shape.causal) return queries * keys;
  const double seeing = std::min(queries, keys);  // queries before them see no key
  return seeing * keys - seeing * (seeing - 1.0) / 2.0;
}

std::vector<Site> sites(std::span<const Segment> segments) {
  std::vector<Site> list;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    for (const KernelId kernel : segments[s].launches)
      list.push_back({kernel, static_cast<std::uint32_t>(s), segments[s].repeat});
  }
  return list;
}

std::vector<Site> sites(const Trace& trace) { return sites(trace.segments); }

std::uint64_t count_launches(std::span<const Segment> segments) {
  std::uint64_t count = 0;
  for (const Segment& segment : segments)
    count += std::uint64_t{segment.repeat} * segment.launches.size();
  return count;
}

void refuse_to_list_too_many(std::span<const Segment> segments) {
  const std::uint64_t count = count_launches(segments);
  if (count <= most_listed_launches) return;
  throw DataError(
      fmt::format("{} launches in one iteration; at most {} can be replayed one by one", count,
                  most_listed_launches),
      {.in = {},
       .hint = "let segments repeat less often; 'rubato trace show', and plans whose changes of "
               "clock are not replayed ('rubato explore --per run'), take any"});
}

std::vector<KernelId> launches(std::span<const Segment> segments) {
  refuse_to_list_too_many(segments);
  std::vector<KernelId> list;
  for (const Segment& segment : segments) {
    for (std::uint32_t r = 0; r < segment.repeat; ++r)
      list.insert(list.end(), segment.launches.begin(), segment.launches.end());
  }
  return list;
}

std::vector<std::uint64_t> launch_counts(const Trace& trace) {
  std::vector<std::uint64_t> counts(trace.kernels.size(), 0);
  for (const Site& site : sites(trace)) counts[index(site.kernel)] += site.repeat;
  return counts;
}

namespace {

bool is_bad(const std::optional<double>& value, double least) {
  return value && !(std::isfinite(*value) && *value >= least);
}

void check_kernel(const Kernel& kernel, std::string_view where, ErrorList& errors) {
  const auto add = [&](std::string_view what) {
    errors.add(fmt::format("{}: kernel '{}': {}", where, kernel.name, what));
  };
  if (kernel.name.empty()) add("the name is empty");
  if (is_bad(kernel.flops, 0.0)) add("flops must be a number >= 0");
  if (is_bad(kernel.dram_bytes, 0.0)) add("dram_bytes must be a number >= 0");
  if (kernel.measured_time_s &&
      !(std::isfinite(*kernel.measured_time_s) && *kernel.measured_time_s > 0.0)) {
    add("measured_time_s must be a number > 0");
  }
  if (kernel.gemm && (kernel.gemm->m == 0 || kernel.gemm->n == 0 || kernel.gemm->k == 0 ||
                      kernel.gemm->batch == 0)) {
    add("a GEMM dimension is 0; expected whole numbers > 0");
  }
  if (const auto& a = kernel.attention) {
    if (a->batch == 0 || a->q_tokens == 0 || a->kv_tokens == 0 || a->heads == 0 ||
        a->kv_heads == 0 || a->head_dim == 0) {
      add("a size of attention is 0; expected whole numbers > 0");
    } else if (a->heads % a->kv_heads != 0) {
      add(fmt::format("kv_heads is {}, which does not divide the {} heads", a->kv_heads, a->heads));
    }
  }
  if (!kernel.collective) return;
  if (!(std::isfinite(kernel.collective->message_bytes) &&
        kernel.collective->message_bytes > 0.0)) {
    add("message_bytes must be a number > 0");
  }
  if (kernel.collective->group_size < 2) add("group_size must be at least 2");
  if (kernel.collective->stride < 1) add("stride must be at least 1");
}

}  // namespace

void validate(const Trace& trace, std::string_view where) {
  ErrorList errors;
  std::vector<std::string_view> seen;
  for (const Kernel& kernel : trace.kernels) {
    check_kernel(kernel, where, errors);
    seen.push_back(kernel.name);
  }
  std::ranges::sort(seen);
  for (auto twice = std::ranges::adjacent_find(seen); twice != seen.end();
       twice = std::adjacent_find(twice + 1, seen.end())) {
    errors.add(fmt::format("{}: kernel name '{}' occurs twice", where, *twice));
  }
  if (trace.kernels.empty()) errors.add(fmt::format("{}: the trace has no kernels", where));
  if (trace.segments.empty()) errors.add(fmt::format("{}: the trace launches nothing", where));
  for (const Segment& segment : trace.segments) {
    if (segment.repeat == 0)
      errors.add(
          fmt::format("{}: segment '{}': repeat is 0; expected a number > 0", where, segment.name));
    if (segment.launches.empty())
      errors.add(fmt::format("{}: segment '{}' launches nothing", where, segment.name));
    for (const KernelId kernel : segment.launches) {
      if (index(kernel) < trace.kernels.size()) continue;
      errors.add(fmt::format("{}: segment '{}' launches kernel {}, but there are {} kernels", where,
                             segment.name, index(kernel), trace.kernels.size()));
    }
  }
  errors.throw_if_any();
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) {
      errors.add(fmt::format("{}: kernel '{}' is never launched", where, trace.kernels[i].name));
    }
  }
  errors.throw_if_any();
}

}  // namespace rubato
