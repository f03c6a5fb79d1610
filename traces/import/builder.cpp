#include "traces/import/builder.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numeric>
#include <queue>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

struct NameRule {
  std::string_view part;
  KernelClass kind;
};

// The first rule whose part is in the name decides, so special names come before general ones.
constexpr std::array name_rules{
    NameRule{"nccl", KernelClass::communication},
    NameRule{"rccl", KernelClass::communication},
    NameRule{"multimem_", KernelClass::communication},
    NameRule{"nvshmem", KernelClass::communication},
    NameRule{"symm_mem", KernelClass::communication},
    NameRule{"copybuffer", KernelClass::memcpy},
    NameRule{"fillbuffer", KernelClass::memset},
    NameRule{"flash", KernelClass::attention},
    NameRule{"fmha", KernelClass::attention},
    NameRule{"attention", KernelClass::attention},
    NameRule{"attn", KernelClass::attention},
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
};

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

}  // namespace

std::string short_kernel_name(std::string_view full) {
  std::string out;
  int angle = 0;
  for (const char c : full) {
    if (c == '<') ++angle;
    if (c == '(' && angle == 0 && !out.empty() && out.back() != ' ' && out.back() != ':') break;
    if (angle == 0) out += c;
    if (c == '>' && angle > 0) --angle;
  }
  if (out.starts_with("void ")) out.erase(0, 5);
  const std::size_t colons = out.rfind("::");
  if (colons != std::string::npos && colons + 2 < out.size()) out.erase(0, colons + 2);
  if (out == "Kernel" || out == "Kernel2") {
    // cutlass::Kernel<cutlass_80_tensorop_...>: the argument is the name.
    const std::size_t open = full.find('<');
    if (open != std::string_view::npos)
      out = full.substr(open + 1, full.find_first_of(",<>:", open + 1) - open - 1);
  }
  constexpr std::size_t longest = 60;
  out.resize(utf8_prefix(out, longest).size());
  return out.empty() ? "kernel" : out;
}

KernelClass kernel_class_of(std::string_view full_name) {
  std::string name = lower_case(full_name.substr(0, 4096));
  if (const auto known = class_of_inductor_kernel(name)) return *known;
  // A library of embeddings and sparse operators, not a product.
  constexpr std::string_view library = "fbgemm_gpu::";
  for (std::size_t at = name.find(library); at != std::string::npos; at = name.find(library))
    name.erase(at, library.size());
  for (const NameRule& rule : name_rules) {
    if (name.find(rule.part) != std::string::npos) return rule.kind;
  }
  return KernelClass::other;
}

CollectiveKind collective_kind_of(std::string_view name) {
  std::string text = lower_case(name);
  std::erase(text, '_');
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (has("allreduce")) return CollectiveKind::all_reduce;
  if (has("allgather")) return CollectiveKind::all_gather;
  if (has("reducescatter")) return CollectiveKind::reduce_scatter;
  if (has("alltoall")) return CollectiveKind::all_to_all;
  if (has("broadcast")) return CollectiveKind::broadcast;
  if (has("reduce")) return CollectiveKind::reduce;
  if (has("send") || has("recv")) return CollectiveKind::send_recv;
  return CollectiveKind::other;
}

StepFinder::StepFinder(std::vector<Interval> intervals) : intervals_(std::move(intervals)) {
  sort_by(intervals_, &Interval::start_ns);
  for (const Interval& interval : intervals_)
    latest_end_ns_.push_back(latest_end_ns_.empty()
                                 ? interval.end_ns
                                 : std::max(latest_end_ns_.back(), interval.end_ns));
}

std::optional<std::uint32_t> StepFinder::at(std::int64_t ts_ns) const {
  // The first interval that ends later is the one that raises the latest end.
  const auto end = std::ranges::upper_bound(latest_end_ns_, ts_ns);
  if (end == latest_end_ns_.end()) return std::nullopt;
  const Interval& first = intervals_[static_cast<std::size_t>(end - latest_end_ns_.begin())];
  return first.start_ns <= ts_ns ? std::optional(first.step) : std::nullopt;
}

std::vector<std::optional<Pass>> passes_by_label(std::vector<PassLabel> labels,
                                                 std::vector<LaunchCall> calls,
                                                 std::size_t launches) {
  std::ranges::sort(labels, {}, &PassLabel::start_ns);
  std::ranges::sort(calls, {}, &LaunchCall::ts_ns);
  std::vector<std::optional<Pass>> passes(launches);
  // Open labels, the narrowest on top. One that has ended is removed when it gets there.
  const auto wider = [](const PassLabel& a, const PassLabel& b) {
    return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
  };
  std::priority_queue<PassLabel, std::vector<PassLabel>, decltype(wider)> open(wider);
  auto next = labels.begin();
  for (const LaunchCall& call : calls) {
    for (; next != labels.end() && next->start_ns <= call.ts_ns; ++next) open.push(*next);
    while (!open.empty() && open.top().end_ns <= call.ts_ns) open.pop();
    if (!open.empty()) passes[call.launch] = open.top().pass;
  }
  return passes;
}

std::optional<Pass> pass_of_label(std::string_view label) {
  const std::string text = lower_case(label.substr(0, 256));
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (has("nccl") || has("profilerstep")) return std::nullopt;
  if (has("optimizer")) return Pass::optimizer;
  if (has("backward")) return Pass::backward;
  if (has("forward")) return Pass::forward;
  return std::nullopt;
}

std::int64_t clamped_ns(double ns) {
  constexpr double most = 4e18;
  return static_cast<std::int64_t>(std::round(std::clamp(ns, -most, most)));
}

CaptureBuilder::CaptureBuilder(std::string file) {
  capture_.provenance.source = file;
  capture_.name = std::move(file);
}

std::uint32_t CaptureBuilder::device(std::uint32_t id, std::string_view name) {
  const auto [found, fresh] =
      devices_.emplace(id, static_cast<std::uint32_t>(capture_.devices.size()));
  if (fresh) capture_.devices.push_back({id, {}});
  std::string& known = capture_.devices[found->second].name;
  if (known.empty()) known = name;
  return found->second;
}

void CaptureBuilder::name_devices(std::span<const NamedDevice> known) {
  std::set<std::string_view> kinds;
  for (const NamedDevice& one : known) {
    if (!one.name.empty()) kinds.insert(one.name);
    if (one.id && devices_.contains(*one.id)) (void)device(*one.id, one.name);
  }
  for (CaptureDevice& device : capture_.devices) {
    if (!device.name.empty() || kinds.empty()) continue;
    if (kinds.size() == 1) {
      device.name = *kinds.begin();
    } else {
      leave_out("kinds of GPUs: the file names several, none by the number of the one that ran");
    }
  }
}

std::uint32_t CaptureBuilder::stream(std::uint32_t device_id, std::int64_t stream_id) {
  const auto [found, fresh] = streams_.emplace(std::pair{device_id, stream_id},
                                               static_cast<std::uint32_t>(capture_.streams.size()));
  if (fresh) capture_.streams.push_back({device(device_id), stream_id});
  return found->second;
}

std::optional<std::uint32_t> CaptureBuilder::known_stream(std::uint32_t device_id,
                                                          std::int64_t stream_id) const {
  const auto found = streams_.find({device_id, stream_id});
  return found == streams_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t CaptureBuilder::thread(const CaptureThread& thread) {
  const auto [found, fresh] = threads_.emplace(std::pair{thread.process, thread.id},
                                               static_cast<std::uint32_t>(capture_.threads.size()));
  if (fresh) capture_.threads.push_back(thread);
  return found->second;
}

std::uint32_t CaptureBuilder::call(const CapturedCall& call) {
  const auto index = static_cast<std::uint32_t>(capture_.calls.size());
  CapturedCall& kept = capture_.calls.emplace_back(call);
  if (kept.duration_ns < 0 || kept.duration_ns > longest_launch_ns) {
    kept.duration_ns = 0;
    leave_out("durations of host calls, negative or longer than a day");
  }
  return index;
}

std::uint32_t CaptureBuilder::group(const CaptureGroup& group) {
  const auto [found, fresh] = groups_.emplace(std::pair{group.name, group.ranks},
                                              static_cast<std::uint32_t>(capture_.groups.size()));
  if (fresh) capture_.groups.push_back(group);
  CaptureGroup& known = capture_.groups[found->second];
  if (!known.size) known.size = group.size;
  if (known.description.empty()) known.description = group.description;
  return found->second;
}

KernelId CaptureBuilder::kernel(Kernel kernel, std::string_view short_name) {
  std::string key = kernel.label;
  if (const auto& l = kernel.launch)
    key += fmt::format("\n{} {}", fmt::join(l->grid, ","), fmt::join(l->block, ","));
  key += fmt::format("\n{} {} {}", name_of(kernel.pass), kernel.flops.value_or(-1.0),
                     kernel.dram_bytes.value_or(-1.0));
  if (const auto& g = kernel.gemm) key += fmt::format("\n{} {} {} {}", g->m, g->n, g->k, g->batch);
  if (const auto& c = kernel.collective)
    key += fmt::format("\n{} {} {}", name_of(c->kind), c->message_bytes, c->group_size);
  const auto [found, fresh] =
      kernels_.emplace(std::move(key), id_at<KernelId>(capture_.kernels.size()));
  if (!fresh) return found->second;
  const std::string first = printable(short_name.empty() ? "kernel" : short_name);
  do {
    const std::uint32_t number = ++names_[first];
    kernel.name = number == 1 ? first : fmt::format("{} #{}", first, number);
  } while (!taken_.insert(kernel.name).second);
  kernel.label = printable(kernel.label);
  capture_.kernels.push_back(std::move(kernel));
  return found->second;
}

bool CaptureBuilder::launch(const CapturedLaunch& launch) {
  const char* problem = nullptr;
  if (launch.duration_ns < 0) problem = "launches with a negative duration";
  if (launch.duration_ns > longest_launch_ns) problem = "launches longer than a day";
  if (launch.start_ns > max_time_ns || launch.start_ns < -max_time_ns)
    problem = "launches at an absurd time";
  if (problem != nullptr) {
    leave_out(problem);
    return false;
  }
  capture_.launches.push_back(launch);
  return true;
}

// Puts calls in order of their start, and mends the indices of those that refer to them.
void CaptureBuilder::sort_calls() {
  std::vector<std::uint32_t> order(capture_.calls.size()), place(capture_.calls.size());
  std::iota(order.begin(), order.end(), 0U);
  sort_by(order, [&](std::uint32_t i) { return capture_.calls[i].start_ns; });
  std::vector<CapturedCall> calls;
  calls.reserve(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    calls.push_back(capture_.calls[order[i]]);
  }
  for (CapturedCall& call : calls) {
    if (call.record) call.record = place[*call.record];
  }
  capture_.calls = std::move(calls);
  for (CapturedLaunch& launch : capture_.launches) {
    if (launch.call) launch.call = place[*launch.call];
  }
}

Capture CaptureBuilder::finish() && {
  sort_calls();
  std::ranges::stable_sort(capture_.launches, [](const auto& a, const auto& b) {
    return std::pair(a.start_ns, a.stream) < std::pair(b.start_ns, b.stream);
  });
  for (const auto& [what, count] : left_out_)
    capture_.left_out.push_back(fmt::format("{} {}", count, what));
  if (capture_.launches.empty())
    throw DataError(fmt::format("{}: no launch can be used: {}", printable(capture_.name),
                                fmt::join(capture_.left_out, "; ")));
  for (CapturedStep& step : capture_.steps) step.name = printable(step.name);
  for (CaptureDevice& device : capture_.devices) device.name = printable(device.name);
  for (CaptureGroup& group : capture_.groups) {
    group.name = printable(group.name);
    group.description = printable(group.description);
  }
  const std::optional<std::int64_t>& epoch = capture_.epoch_ns;
  if (epoch && (*epoch > max_time_ns || *epoch < -max_time_ns)) {
    capture_.left_out.emplace_back("the time of the recording, which is absurd");
    capture_.epoch_ns.reset();
  }
  return std::move(capture_);
}

}  // namespace rubato
