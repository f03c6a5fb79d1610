#include "sim/graph/comm_sms.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <set>
#include <utility>

#include "models/network/collective_time.hpp"

namespace rubato {

namespace {

// When a GPU ran what, as captured.
struct Interval {
  double start_s = 0.0, end_s = 0.0;
  KernelId kernel;
};

struct GpuIntervals {
  std::vector<Interval> collectives, compute;
};

bool computes(KernelClass kind) {
  return kind != KernelClass::communication && kind != KernelClass::memcpy &&
         kind != KernelClass::memset;
}

std::vector<GpuIntervals> captured_intervals(const ExecutionGraph& graph) {
  std::vector<GpuIntervals> gpus(graph.gpus().size());
  std::vector<double> arrived_s(graph.streams().size(), 0.0);
  for (const Activity& activity : graph.activities()) {
    const auto gpu = graph.gpu_of(activity);
    if (!gpu) continue;
    GpuIntervals& of = gpus[index(*gpu)];
    const KernelClass kind = graph.kernels()[index(activity.kernel)].kind;
    double start_s = activity.start_s;
    if (activity.kind == ActivityKind::arrival) arrived_s[*activity.stream] = start_s;
    if (activity.kind == ActivityKind::departure) start_s = arrived_s[*activity.stream];
    const Interval interval{start_s, activity.end_s(), activity.kernel};
    if (interval.end_s <= start_s) continue;
    if (computes(kind)) of.compute.push_back(interval);
    if (kind == KernelClass::communication) of.collectives.push_back(interval);
  }
  return gpus;
}

// Collectives that share a GPU with compute for longer than clocks of files are rounded to.
std::set<KernelId> kernels_beside_compute(const ExecutionGraph& graph) {
  constexpr double rounding_s = 1e-6;
  std::set<KernelId> kernels;
  for (GpuIntervals& gpu : captured_intervals(graph)) {
    std::ranges::sort(gpu.compute, {}, &Interval::start_s);
    double latest_s = 0.0;  // launches on several streams: an end never goes back
    for (Interval& one : gpu.compute) one.end_s = latest_s = std::max(latest_s, one.end_s);
    for (const Interval& one : gpu.collectives) {
      const auto beside =
          std::ranges::upper_bound(gpu.compute, one.start_s + rounding_s, {}, &Interval::end_s);
      if (beside != gpu.compute.end() && beside->start_s < one.end_s - rounding_s)
        kernels.insert(one.kernel);
    }
  }
  return kernels;
}

// Bytes that a rank sends over its link; nothing where the file does not say.
std::optional<double> sent_bytes(const Capture& capture, const CapturedCollective& collective) {
  if (!collective.group || !capture.groups[*collective.group].size) return std::nullopt;
  const double ranks = *capture.groups[*collective.group].size;
  const auto message = std::max(collective.in_bytes, collective.out_bytes);  // the full buffer
  if (ranks < 2.0 || !message || *message == 0) return std::nullopt;
  return bus_factor(collective.kind, ranks) * static_cast<double>(*message);
}

// What the launches of a kernel send, and how long they took as captured.
struct Sent {
  double traffic_bytes = 0.0, time_s = 0.0;
  bool known = true;  // of all of them
};

std::vector<Sent> sent_by_kernels(const CaptureGraph& run, std::span<const Capture> captures) {
  constexpr double s_per_ns = 1e-9;
  std::vector<Sent> sent(run.graph.kernels().size());
  for (std::size_t c = 0; c < captures.size(); ++c) {
    for (std::size_t l = 0; l < captures[c].launches.size(); ++l) {
      const CapturedLaunch& launch = captures[c].launches[l];
      Sent& of = sent[index(run.graph[run.activity_of_launch[c][l]].kernel)];
      std::optional<double> bytes;
      if (launch.collective)
        bytes = sent_bytes(captures[c], captures[c].collectives[*launch.collective]);
      of.known = of.known && bytes.has_value();
      of.traffic_bytes += bytes.value_or(0.0);
      of.time_s += s_per_ns * static_cast<double>(launch.duration_ns);
    }
  }
  return sent;
}

double threads_of_block(const Kernel& kernel) {
  constexpr double usual = 512.0;  // of NCCL; 256 to 640
  if (!kernel.launch) return usual;
  double threads = 1.0;
  for (const std::uint32_t extent : kernel.launch->block) threads *= std::max(extent, 1U);
  return threads;
}

}  // namespace

double OverlappingCollective::added_frac(double comm_sms) const {
  const double longer = captured_sms / comm_sms - 1.0;
  return longer * (longer > 0.0 ? drawn_out_frac : shortened_frac);
}

std::vector<OverlappingCollective> overlapping_collectives(const CaptureGraph& run,
                                                           std::span<const Capture> captures,
                                                           double sm_count) {
  const std::vector<Sent> sent = sent_by_kernels(run, captures);
  std::vector<OverlappingCollective> found;
  for (const KernelId id : kernels_beside_compute(run.graph)) {
    const Kernel& kernel = run.graph.kernels()[index(id)];
    OverlappingCollective one{.kernel = id, .captured_sms = sm_demand(kernel, sm_count).held};
    if (const Sent& of = sent[index(id)]; of.known && of.time_s > 0.0) {
      const double copying_s =
          copy_time_s({}, of.traffic_bytes, one.captured_sms, threads_of_block(kernel));
      one.drawn_out_frac = one.shortened_frac = std::min(copying_s / of.time_s, 1.0);
    }
    found.push_back(one);
  }
  return found;
}

std::vector<double> usual_comm_sms(std::span<const OverlappingCollective> collectives,
                                   double sm_count) {
  assert(!collectives.empty());
  const double most =
      std::ranges::max_element(collectives, {}, &OverlappingCollective::captured_sms)->captured_sms;
  std::vector<double> tried;
  for (std::uint32_t sms = 1; sms <= std::min(2.0 * most, 0.5 * sm_count); sms *= 2)
    tried.push_back(sms);
  return tried;
}

}  // namespace rubato
