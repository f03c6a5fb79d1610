#include "sim/graph/comm_sms.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <set>
#include <utility>

#include "models/network/collective_time.hpp"

namespace rubato {

namespace {

constexpr double s_per_ns = 1e-9;

// One kernel's time on a GPU, as captured.
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

// Collectives that share a GPU with compute for longer than times in files are rounded to.
std::set<KernelId> kernels_beside_compute(const ExecutionGraph& graph) {
  constexpr double rounding_s = 1e-6;
  std::set<KernelId> kernels;
  for (GpuIntervals& gpu : captured_intervals(graph)) {
    std::ranges::sort(gpu.compute, {}, &Interval::start_s);
    double latest_s = 0.0;  // last end so far: ends ascend, so that they can be searched
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

// What launches of a kernel send, and how long they took as captured.
struct Sent {
  double traffic_bytes = 0.0, time_s = 0.0;
  bool known = true;  // the bytes of all of them
  bool any = false;
};

// The launches of a kernel. `joined`: their ranks were joined, so their time is that of the
// transfer, from the last arrival on. `alone`: nothing tells their time from waiting.
struct KernelSent {
  Sent joined, alone;
};

// Seconds from the last arrival to the first end, of launches that were joined; shape
// [captures][launches].
std::vector<std::vector<std::optional<double>>> transfer_times(const CaptureGraph& run,
                                                               std::span<const Capture> captures) {
  std::vector<std::vector<std::optional<double>>> times;
  for (const Capture& capture : captures) times.emplace_back(capture.launches.size());
  for (const JoinedCollective& joined : run.ranks.collectives) {
    for (const CollectiveMember& member : joined.members)
      times[member.capture][member.launch] = s_per_ns * static_cast<double>(joined.transfer_ns());
  }
  return times;
}

std::vector<KernelSent> sent_by_kernels(const CaptureGraph& run,
                                        std::span<const Capture> captures) {
  std::vector<KernelSent> sent(run.graph.kernels().size());
  const auto transfers_s = transfer_times(run, captures);
  for (std::size_t c = 0; c < captures.size(); ++c) {
    for (std::size_t l = 0; l < captures[c].launches.size(); ++l) {
      const CapturedLaunch& launch = captures[c].launches[l];
      const std::optional<double> transfer_s = transfers_s[c][l];
      KernelSent& of_kernel = sent[index(run.graph[run.activity_of_launch[c][l]].kernel)];
      Sent& of = transfer_s ? of_kernel.joined : of_kernel.alone;
      std::optional<double> bytes;
      if (launch.collective)
        bytes = sent_bytes(captures[c], captures[c].collectives[*launch.collective]);
      of.any = true;
      of.known = of.known && bytes.has_value();
      of.traffic_bytes += bytes.value_or(0.0);
      of.time_s += transfer_s.value_or(s_per_ns * static_cast<double>(launch.duration_ns));
    }
  }
  return sent;
}

double threads_of_block(const Kernel& kernel) {
  constexpr double usual = 512.0;  // NCCL's blocks have 256 to 640
  if (!kernel.launch) return usual;
  double threads = 1.0;
  for (const std::uint32_t extent : kernel.launch->block) threads *= std::max(extent, 1U);
  return threads;
}

// Takes the worst of what is known of its launches.
void take_shares(const Sent& sent, const Kernel& kernel, OverlappingCollective& one) {
  if (!sent.any) return;
  if (!sent.known || !(sent.time_s > 0.0)) {
    one.drawn_out_frac = 1.0;
    one.shortened_frac = 0.0;
    return;
  }
  const double copying_s =
      copy_time_s({}, sent.traffic_bytes, one.captured_sms, threads_of_block(kernel));
  const double share = std::min(copying_s / sent.time_s, 1.0);
  one.drawn_out_frac = std::max(one.drawn_out_frac, share);
  one.shortened_frac = std::min(one.shortened_frac, share);
}

}  // namespace

double OverlappingCollective::added_frac(double comm_sms) const {
  const double longer = captured_sms / comm_sms - 1.0;
  return longer * (longer > 0.0 ? drawn_out_frac : shortened_frac);
}

std::vector<OverlappingCollective> overlapping_collectives(const CaptureGraph& run,
                                                           std::span<const Capture> captures,
                                                           double sm_count) {
  const std::vector<KernelSent> sent = sent_by_kernels(run, captures);
  std::vector<OverlappingCollective> found;
  for (const KernelId id : kernels_beside_compute(run.graph)) {
    const Kernel& kernel = run.graph.kernels()[index(id)];
    OverlappingCollective one{.kernel = id,
                              .captured_sms = sm_demand(kernel, sm_count).held,
                              .drawn_out_frac = 0.0,
                              .shortened_frac = 1.0};
    take_shares(sent[index(id)].joined, kernel, one);
    take_shares(sent[index(id)].alone, kernel, one);
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
