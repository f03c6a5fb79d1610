#include "traces/import/builder.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/serving_steps.hpp"

namespace rubato {

namespace {

// Whether a product of fp32 operands runs on tensor cores: "tf32", or Ampere's instruction for it,
// which on Turing is one for fp16.
bool names_tf32(std::string_view label) {
  return label.find("tf32") != std::string_view::npos ||
         label.find("s1688") != std::string_view::npos;
}

}  // namespace

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

std::map<std::int64_t, StepFinder> add_steps(std::vector<StepMark> marks, Capture& capture) {
  const auto serves = [](const StepMark& mark) { return serving_step_of(mark.name).has_value(); };
  const bool serving = std::ranges::any_of(marks, serves);
  if (serving) std::erase_if(marks, std::not_fn(serves));
  sort_by(marks, &StepMark::start_ns);
  using Key = std::pair<std::string_view, std::uint32_t>;                   // name, which time
  std::map<std::pair<std::int64_t, std::string_view>, std::uint32_t> seen;  // process, name
  std::map<Key, std::uint32_t> steps;
  std::map<std::int64_t, std::vector<StepFinder::Interval>> intervals;
  for (const StepMark& mark : marks) {
    const auto [step, fresh] = steps.emplace(Key{mark.name, seen[{mark.process, mark.name}]++},
                                             static_cast<std::uint32_t>(capture.steps.size()));
    if (fresh) capture.steps.push_back({std::string(mark.name), mark.start_ns, mark.end_ns});
    CapturedStep& known = capture.steps[step->second];
    known.end_ns = std::max(known.end_ns, mark.end_ns);
    auto& own = intervals[mark.process];
    if (serving && !own.empty()) {
      own.back().end_ns = mark.start_ns;
      CapturedStep& before = capture.steps[own.back().step];
      before.end_ns = std::max(before.end_ns, mark.start_ns);
    }
    own.push_back({mark.start_ns, serving ? std::numeric_limits<std::int64_t>::max() : mark.end_ns,
                   step->second});
  }
  if (!capture.steps.empty()) capture.step_source = StepSource::annotation;
  std::map<std::int64_t, StepFinder> finders;
  for (auto& [process, own] : intervals) finders.emplace(process, StepFinder(std::move(own)));
  return finders;
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
  const auto is_said = [](const NamedDevice& one) {
    return !one.name.empty() || one.compute_capability;
  };
  const auto kind_of = [](const NamedDevice& one) {
    return std::tuple(std::string_view(one.name), one.compute_capability, one.sm_count);
  };
  std::map<decltype(kind_of({})), const NamedDevice*> kinds;
  for (const NamedDevice& one : known) {
    if (is_said(one)) kinds.emplace(kind_of(one), &one);
  }
  for (CaptureDevice& device : capture_.devices) {
    const auto own = std::ranges::find(known, std::optional(device.id), &NamedDevice::id);
    const NamedDevice* kind = own != known.end() && is_said(*own) ? &*own : nullptr;
    if (kind == nullptr && kinds.size() == 1) kind = kinds.begin()->second;
    if (kind != nullptr) {
      if (device.name.empty()) device.name = kind->name;
      device.compute_capability = kind->compute_capability;
      device.sm_count = kind->sm_count;
    } else if (device.name.empty() && !kinds.empty()) {
      leave_out("kinds of GPUs: the file names several, none by the number of the one that ran");
    }
  }
}

std::optional<double> capability_of(std::optional<std::int64_t> major,
                                    std::optional<std::int64_t> minor) {
  constexpr std::int64_t most_major = 99, most_minor = 9;
  if (!major || *major < 1 || *major > most_major) return std::nullopt;
  const std::int64_t behind = minor.value_or(0);
  if (behind < 0 || behind > most_minor) return std::nullopt;
  return static_cast<double>(10 * *major + behind) / 10.0;
}

std::optional<std::uint32_t> sms_of(std::optional<std::int64_t> count) {
  constexpr std::int64_t most = 10'000;
  return count && *count > 0 && *count <= most ? std::optional(static_cast<std::uint32_t>(*count))
                                               : std::nullopt;
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

std::optional<std::uint32_t> CaptureBuilder::awaited_stream(CallKind kind, std::uint32_t device_id,
                                                            std::int64_t stream_id) const {
  if (kind != CallKind::device_sync) return known_stream(device_id, stream_id);
  const auto any = streams_.lower_bound({device_id, std::numeric_limits<std::int64_t>::min()});
  return any == streams_.end() || any->first.first != device_id ? std::nullopt
                                                                : std::optional(any->second);
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
  if (kernel.dtype == Dtype::fp32 && names_tf32(kernel.label)) kernel.dtype = Dtype::tf32;
  std::string key = kernel.label;
  if (const auto& l = kernel.launch)
    key += fmt::format("\n{} {}", fmt::join(l->grid, ","), fmt::join(l->block, ","));
  key += fmt::format("\n{} {} {}", name_of(kernel.pass), kernel.flops.value_or(-1.0),
                     kernel.dram_bytes.value_or(-1.0));
  if (const auto& g = kernel.gemm) key += fmt::format("\n{} {} {} {}", g->m, g->n, g->k, g->batch);
  if (const auto& a = kernel.attention)
    key += fmt::format("\n{} {} {} {} {} {} {}", a->batch, a->q_tokens, a->kv_tokens, a->heads,
                       a->kv_heads, a->head_dim, a->causal);
  key += fmt::format("\n{}", name_of(kernel.dtype));
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

// Readers may have made 0 relative to the epoch of the recording.
bool CaptureBuilder::timed_launch(const CapturedLaunch& launch) {
  constexpr std::int64_t rounding_ns = 1'000'000;  // of a double with us since 1970
  const auto is_zero = [&](std::int64_t start_ns) {
    return start_ns >= -rounding_ns && start_ns <= rounding_ns;
  };
  const bool zero =
      launch.start_ns == 0 ||
      (capture_.epoch_ns && *capture_.epoch_ns > rounding_ns && *capture_.epoch_ns <= max_time_ns &&
       launch.start_ns < 0 && is_zero(launch.start_ns + *capture_.epoch_ns));
  // The end is 0 too, or is a time while the call that launched the work came after 0.
  if (zero && (launch.duration_ns == 0 || launch.launch_ns.value_or(0) > launch.start_ns)) {
    leave_out_untimed_launch();
    return false;
  }
  return this->launch(launch);
}

// Puts calls in order of their start, and mends the indices of those that refer to them.
void CaptureBuilder::sort_calls() {
  std::vector<std::uint32_t> order(capture_.calls.size()), place(order);
  std::iota(order.begin(), order.end(), 0U);
  sort_by(order, [&](std::uint32_t i) { return capture_.calls[i].start_ns; });
  std::vector<CapturedCall> calls;
  calls.reserve(order.size());
  std::map<std::pair<std::uint32_t, CallKind>, std::uint32_t> last;  // of a thread
  for (const std::uint32_t i : order) {
    const CapturedCall& call = capture_.calls[i];
    const auto [before, fresh] = last.try_emplace({call.thread, call.kind}, 0);
    const bool again = !fresh && call.duration_ns > 0 &&
                       calls[before->second].start_ns == call.start_ns &&
                       calls[before->second].duration_ns == call.duration_ns;
    if (!again) {
      before->second = static_cast<std::uint32_t>(calls.size());
      calls.push_back(call);
    }
    place[i] = before->second;
  }
  for (CapturedCall& call : calls) {
    if (call.record) call.record = place[*call.record];
  }
  capture_.calls = std::move(calls);
  for (CapturedLaunch& launch : capture_.launches) {
    if (launch.call) launch.call = place[*launch.call];
  }
}

// A stream runs one at a time, so two of one start and length are one.
void CaptureBuilder::sort_launches() {
  auto& launches = capture_.launches;
  std::ranges::stable_sort(launches, {}, [](const CapturedLaunch& launch) {
    return std::pair(launch.start_ns, launch.stream);
  });
  const auto label_of = [&](const CapturedLaunch& launch) -> const std::string& {
    return capture_.kernels[index(launch.kernel)].label;
  };
  const auto same = [&](const CapturedLaunch& a, const CapturedLaunch& b) {
    return a.duration_ns > 0 && a.start_ns == b.start_ns && a.stream == b.stream &&
           a.duration_ns == b.duration_ns && label_of(a) == label_of(b);
  };
  const auto twice = std::unique(launches.begin(), launches.end(), same);
  if (twice == launches.end()) return;
  leave_out(launched_twice, static_cast<std::size_t>(launches.end() - twice));
  launches.erase(twice, launches.end());
}

Capture CaptureBuilder::finish() && {
  sort_calls();
  sort_launches();
  for (const auto& [what, count] : left_out_) {
    if (count == 0) continue;
    capture_.left_out.push_back(fmt::format("{} {}", count, what));
  }
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
