#include "traces/graph/capture_draft.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "common/algorithms/sort_by.hpp"
#include "common/statistics.hpp"
#include "traces/capture.hpp"

namespace rubato {

namespace {

// A host that hardly did anything but wait calls again within unseen_sync_window_ns of what it
// waited for, or within a tenth of the wait: after a long one it has more to do.
constexpr std::int64_t unseen_sync_share = 10;
// A thread that has been silent for this long was woken by the thread that called last.
constexpr std::int64_t wake_up_ns = 100'000;
// Slacks beyond this say what the host or another GPU did, and nothing of the usual lag of a kind.
constexpr double longest_usual_lag_s = 100e-6;

bool waits(CallKind kind) {
  return kind == CallKind::stream_sync || kind == CallKind::device_sync ||
         kind == CallKind::event_sync || kind == CallKind::blocking_copy;
}

// Called before everything that was recorded.
constexpr std::int64_t before_recording = std::numeric_limits<std::int64_t>::min();

}  // namespace

CaptureDraft::CaptureDraft(const Capture& capture, const CapturePlace& place, GraphBuilder& builder,
                           const std::vector<std::uint32_t>& splits,
                           const CaptureGraphOptions& options)
    : capture_(capture),
      place_(place),
      builder_(builder),
      options_(options),
      by_stream_(capture.streams.size()),
      called_on_(capture.streams.size()),
      called_ns_(capture.launches.size(), before_recording),
      process_of_stream_(capture.streams.size()),
      launches_of_call_(capture.calls.size()),
      has_event_(capture.launches.size(), false) {
  host_waits_ = std::ranges::any_of(capture.calls, waits, &CapturedCall::kind);
  add_launches(splits);
  add_stream_order();
  if (capture.calls.empty()) {
    add_calls_of_launches_alone();
  } else {
    add_host_calls();
    add_waits();
  }
  add_waits_by_time();
}

double CaptureDraft::seconds(std::int64_t at_ns) const {
  return std::max(static_cast<double>(at_ns - place_.origin_ns) * s_per_ns, 0.0);
}

DraftId CaptureDraft::add_host_moment(std::int64_t at_ns) {
  return builder_.add({.kind = ActivityKind::host, .rank = place_.rank, .start_s = seconds(at_ns)});
}

void CaptureDraft::connect(DraftId from, DraftId to, ArcKind kind, bool inferred) {
  arcs_.push_back({from, to, kind, inferred});
}

bool CaptureDraft::is_collective(std::uint32_t launch) const {
  return capture_.kernels[index(capture_.launches[launch].kernel)].kind ==
         KernelClass::communication;
}

void CaptureDraft::add_launches(const std::vector<std::uint32_t>& splits) {
  std::map<std::uint32_t, GpuId> gpus;
  std::vector<std::uint32_t> stream_of(capture_.streams.size());
  std::vector<bool> used(capture_.streams.size(), false);
  for (const CapturedLaunch& launch : capture_.launches) used[launch.stream] = true;
  for (std::size_t s = 0; s < capture_.streams.size(); ++s) {
    if (!used[s]) continue;  // a GPU that does nothing is none of the run
    const std::uint32_t device = capture_.streams[s].device;
    if (!gpus.contains(device))
      gpus[device] = builder_.add_gpu({place_.rank, device, capture_.devices[device].name});
    stream_of[s] = builder_.add_stream({gpus[device], capture_.streams[s].id});
  }
  std::vector<KernelId> kernel_of;
  for (const Kernel& kernel : capture_.kernels) kernel_of.push_back(builder_.add_kernel(kernel));
  for (std::uint32_t i = 0; i < capture_.launches.size(); ++i) {
    const CapturedLaunch& launch = capture_.launches[i];
    Activity activity{.kind = ActivityKind::launch,
                      .pass = launch.pass,
                      .stream = stream_of[launch.stream],
                      .kernel = kernel_of[index(launch.kernel)],
                      .rank = place_.rank,
                      .launch = i,
                      .step = launch.step,
                      .start_s = seconds(launch.start_ns),
                      .duration_s = static_cast<double>(launch.duration_ns) * s_per_ns};
    if (!std::ranges::binary_search(splits, i)) {
      const DraftId id = builder_.add(activity);
      launches_.push_back({id, id});
      continue;
    }
    activity.kind = ActivityKind::arrival;
    activity.duration_s = 0.0;
    const DraftId arrival = builder_.add(activity);
    activity.kind = ActivityKind::departure;
    activity.start_s = seconds(launch.end_ns());
    launches_.push_back({arrival, builder_.add(activity)});
  }
}

void CaptureDraft::add_stream_order() {
  for (std::uint32_t i = 0; i < capture_.launches.size(); ++i) {
    const CapturedLaunch& launch = capture_.launches[i];
    by_stream_[launch.stream].push_back(i);
    if (launch.launch_ns && !call_known(launch)) ++lost_.late;
    if (!launch.call) continue;
    launches_of_call_[*launch.call].push_back(i);
    process_of_stream_[launch.stream] =
        capture_.threads[capture_.calls[*launch.call].thread].process;
  }
  for (std::uint32_t stream = 0; stream < by_stream_.size(); ++stream) {
    auto& list = by_stream_[stream];
    sort_by(list, [&](std::uint32_t i) { return capture_.launches[i].start_ns; });
    std::int64_t latest_ns = before_recording;
    for (const std::uint32_t i : list) {
      const CapturedLaunch& launch = capture_.launches[i];
      called_ns_[i] = call_known(launch) ? *launch.launch_ns : latest_ns;
      latest_ns = std::max(latest_ns, called_ns_[i]);
    }
    called_on_[stream] = list;
    sort_by(called_on_[stream], [&](std::uint32_t i) { return called_ns_[i]; });
    for (std::size_t at = 1; at < list.size(); ++at) {
      const std::int64_t over_ns =
          capture_.launches[list[at - 1]].end_ns() - capture_.launches[list[at]].start_ns;
      overlap_s_ += static_cast<double>(std::max<std::int64_t>(over_ns, 0)) * s_per_ns;
      connect(launches_[list[at - 1]].end, launches_[list[at]].begin, ArcKind::stream_order, false);
    }
  }
}

std::optional<std::uint32_t> CaptureDraft::last_launch_called(std::uint32_t stream,
                                                              std::int64_t before_ns,
                                                              std::int64_t over_by_ns,
                                                              bool over) const {
  const auto& list = called_on_[stream];
  auto after =
      std::ranges::lower_bound(list, before_ns, {}, [&](std::uint32_t i) { return called_ns_[i]; });
  while (after != list.begin()) {
    const CapturedLaunch& launch = capture_.launches[*--after];
    if ((call_known(launch) && !over) || launch.end_ns() <= over_by_ns + clock_error_ns)
      return *after;
  }
  return std::nullopt;
}

// Whether a process may have made a launch: it waits for streams of its own only.
bool CaptureDraft::is_of_process(std::uint32_t launch, std::int64_t process) const {
  return process_of_stream_[capture_.launches[launch].stream].value_or(process) == process;
}

std::optional<std::uint32_t> CaptureDraft::first_launch_called(std::uint32_t stream,
                                                               std::int64_t from_ns) const {
  const auto& list = called_on_[stream];
  const auto at = std::find_if(
      std::ranges::lower_bound(list, from_ns, {}, [&](std::uint32_t i) { return called_ns_[i]; }),
      list.end(), [&](std::uint32_t i) { return call_known(capture_.launches[i]); });
  if (at == list.end()) return std::nullopt;
  return *at;
}

// The nearest launch of the same thread before or after a call.
std::optional<std::uint32_t> CaptureDraft::neighbour_in_thread(std::uint32_t call,
                                                               bool before) const {
  const std::uint32_t thread = capture_.calls[call].thread;
  std::uint32_t at = call;
  while (before ? at-- > 0 : ++at < capture_.calls.size()) {
    if (capture_.calls[at].thread != thread || launches_of_call_[at].empty()) continue;
    return before ? launches_of_call_[at].back() : launches_of_call_[at].front();
  }
  return std::nullopt;
}

// What a call waited for, by its kind and its end. Where the file does not name the stream, it is
// the one whose work ended last before the end of the call.
void CaptureDraft::add_sync(std::uint32_t call, DraftId begin, DraftId end) {
  const CapturedCall& sync = capture_.calls[call];
  std::vector<std::pair<std::uint32_t, bool>> awaited;  // launch, inferred
  const bool stream_known = options_.read_waits && sync.stream.has_value();
  const bool event_known = options_.read_waits && sync.recorded_stream.has_value();
  if (sync.kind == CallKind::blocking_copy && !launches_of_call_[call].empty()) {
    for (const std::uint32_t own : launches_of_call_[call]) awaited.emplace_back(own, false);
  } else if (sync.kind == CallKind::stream_sync && stream_known) {
    if (const auto last = last_launch_called(*sync.stream, sync.start_ns, sync.end_ns()))
      awaited.emplace_back(*last, false);
  } else if (sync.kind == CallKind::event_sync && event_known && sync.record) {
    if (const auto last = last_launch_called(*sync.recorded_stream,
                                             capture_.calls[*sync.record].start_ns, sync.end_ns()))
      awaited.emplace_back(*last, false);
  } else if (sync.kind == CallKind::device_sync) {
    awaited = awaited_of_device(call);
  } else {
    const bool event = sync.kind == CallKind::event_sync;  // of work before the last
    const std::int64_t process = capture_.threads[sync.thread].process;
    for (std::uint32_t s = 0; s < capture_.streams.size(); ++s) {
      if (event && event_known && *sync.recorded_stream != s) continue;
      const auto last = last_launch_called(s, sync.start_ns, sync.end_ns(), event);
      if (!last || !is_of_process(*last, process)) continue;
      if (capture_.launches[*last].end_ns() <= sync.end_ns()) awaited.emplace_back(*last, true);
    }
    if (awaited.size() > 1) {
      std::ranges::sort(awaited, std::greater{},
                        [&](const auto& one) { return capture_.launches[one.first].end_ns(); });
      awaited.resize(1);
    }
  }
  bool waited = false;
  for (const auto& [launch, inferred] : awaited) {
    const std::int64_t end_ns = capture_.launches[launch].end_ns();
    if (end_ns > sync.end_ns() + clock_error_ns) {  // the call returned without it
      ++lost_.unfinished;
      continue;
    }
    waited |= end_ns > sync.start_ns;
    connect(launches_[launch].end, end, ArcKind::sync, inferred);
  }
  // A call that found nothing to wait for took its time itself.
  if (waited) {
    builder_.add_arc(begin, end, 0.0, ArcKind::host_order);
  } else {
    connect(begin, end, ArcKind::host_order, false);
    if (sync.duration_ns > unseen_sync_window_ns) {
      ++lost_.unexplained;
      lost_.unexplained_s += static_cast<double>(sync.duration_ns) * s_per_ns;
    }
  }
}

// Calls of one thread keep their distances; a thread that slept was woken by the last call of
// another one of its process.
void CaptureDraft::add_host_calls() {
  struct Last {
    DraftId moment;
    std::int64_t at_ns = 0;
  };
  std::map<std::int64_t, std::optional<std::uint32_t>> last_of_process;  // launch that ends last
  std::vector<std::optional<Last>> of_thread(capture_.threads.size());
  std::map<std::int64_t, Last> of_process;
  for (std::uint32_t c = 0; c < capture_.calls.size(); ++c) {
    const CapturedCall& call = capture_.calls[c];
    if (!waits(call.kind) && launches_of_call_[c].empty()) continue;
    const DraftId begin = add_host_moment(call.start_ns);
    auto& own = of_thread[call.thread];
    const std::int64_t process = capture_.threads[call.thread].process;
    const auto any = of_process.find(process);
    const std::int64_t own_ns = own ? own->at_ns : std::numeric_limits<std::int64_t>::min();
    auto& last_launch = last_of_process[process];
    const bool waited = !host_waits_ && any != of_process.end() &&
                        add_unseen_wait(begin, call.start_ns, any->second.at_ns, last_launch);
    if (waited) {
      builder_.add_arc(any->second.moment, begin, 0.0, ArcKind::host_order);
      if (own) builder_.add_arc(own->moment, begin, 0.0, ArcKind::host_order);
    } else if (any != of_process.end() && any->second.at_ns > own_ns &&
               (!own || call.start_ns - own_ns > wake_up_ns) &&
               any->second.at_ns <= call.start_ns) {
      connect(any->second.moment, begin, ArcKind::host_order, true);
      if (own) builder_.add_arc(own->moment, begin, 0.0, ArcKind::host_order);  // it slept
    } else if (own) {
      connect(own->moment, begin, ArcKind::host_order, false);
    }
    Last last{begin, call.start_ns};
    for (const std::uint32_t launch : launches_of_call_[c]) {
      if (call_known(capture_.launches[launch]))
        connect(begin, launches_[launch].begin, ArcKind::launch_call, false);
      keep_later(last_launch, launch);
    }
    if (waits(call.kind)) {
      last = {add_host_moment(call.end_ns()), call.end_ns()};
      add_sync(c, begin, last.moment);
    }
    own = last;
    auto& newest = of_process[process];
    if (newest.at_ns <= last.at_ns) newest = last;
  }
}

void CaptureDraft::keep_later(std::optional<std::uint32_t>& last, std::uint32_t launch) const {
  if (!last || capture_.launches[launch].end_ns() > capture_.launches[*last].end_ns())
    last = launch;
}

// For files that record no waits. Where the host paused, and called again after all it had launched
// was over, it may have waited for that, or worked. Taken is the wait, if nothing else is asked
// for: with it slower clocks come later.
// @param before_ns  its last call
// @param last       of what it had launched, what ended last
bool CaptureDraft::add_unseen_wait(DraftId moment, std::int64_t call_ns, std::int64_t before_ns,
                                   std::optional<std::uint32_t> last) {
  if (!last) return false;
  const std::int64_t end_ns = capture_.launches[*last].end_ns();
  const std::int64_t waited_ns = end_ns - before_ns;
  if (waited_ns <= unseen_sync_window_ns || end_ns > call_ns) return false;
  if (call_ns > end_ns + std::max(unseen_sync_window_ns, waited_ns / unseen_sync_share)) {
    ++lost_.ambiguous;
    lost_.ambiguous_s += static_cast<double>(waited_ns) * s_per_ns;
    if (!options_.pauses_wait) return false;
  }
  connect(launches_[*last].end, moment, ArcKind::sync, true);
  return true;
}

// For files that say when launches were called and nothing else. The calls of a device keep their
// distances, but for waits that the file does not have.
void CaptureDraft::add_calls_of_launches_alone() {
  std::vector<std::vector<std::uint32_t>> called(capture_.devices.size());
  for (std::uint32_t i = 0; i < capture_.launches.size(); ++i) {
    const CapturedLaunch& launch = capture_.launches[i];
    called[capture_.streams[launch.stream].device].push_back(i);
  }
  for (auto& list : called) {
    sort_by(list, [&](std::uint32_t i) { return called_ns_[i]; });
    std::optional<DraftId> before;
    std::int64_t before_ns = list.empty() ? 0 : capture_.launches[list.front()].start_ns;
    std::optional<std::uint32_t> last;
    for (const std::uint32_t i : list) {
      // One without a call may still be what the host waits for.
      if (call_known(capture_.launches[i])) {
        const DraftId moment = add_host_moment(called_ns_[i]);
        const bool waited = add_unseen_wait(moment, called_ns_[i], before_ns, last);
        if (before && !waited) connect(*before, moment, ArcKind::host_order, false);
        connect(moment, launches_[i].begin, ArcKind::launch_call, false);
        before = moment;
        before_ns = called_ns_[i];
      }
      keep_later(last, i);
    }
  }
}

void close_arcs(GraphBuilder& builder, const std::vector<OpenArc>& arcs) {
  const auto slack_s = [&](const OpenArc& arc) {
    return std::max(builder[arc.to].start_s - builder[arc.from].end_s(), 0.0);
  };
  std::vector<double> least_of(builder.size(), std::numeric_limits<double>::infinity());
  for (const OpenArc& arc : arcs)
    least_of[index(arc.to)] = std::min(least_of[index(arc.to)], slack_s(arc));
  // What is usual: the median over the arcs that decided a start.
  std::array<std::vector<double>, arc_kinds> deciding;
  for (const OpenArc& arc : arcs) {
    const double slack = slack_s(arc);
    if (slack <= least_of[index(arc.to)] && slack <= longest_usual_lag_s)
      deciding[static_cast<std::size_t>(arc.kind)].push_back(slack);
  }
  std::array<double, arc_kinds> usual_s{};
  for (std::size_t kind = 0; kind < arc_kinds; ++kind) {
    if (!deciding[kind].empty()) usual_s[kind] = median(std::move(deciding[kind]));
  }
  for (const OpenArc& arc : arcs) {
    const double slack = slack_s(arc);
    const bool exact = slack <= least_of[index(arc.to)] || arc.kind == ArcKind::host_order;
    builder.add_arc(arc.from, arc.to,
                    exact ? slack : std::min(slack, usual_s[static_cast<std::size_t>(arc.kind)]),
                    arc.kind, arc.inferred);
  }
}

}  // namespace rubato
