// Which launches waited for launches on other streams.

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "common/algorithms/sort_by.hpp"

#include "traces/graph/capture_draft.hpp"

namespace rubato {

namespace {

// Where the file does not name what a launch waited for: a launch on another stream that ended at
// most this long before its start.
constexpr std::int64_t event_window_ns = 10'000;

}  // namespace

// Events between streams, from the calls that wait for them.
void CaptureDraft::add_waits() {
  for (std::uint32_t c = 0; c < capture_.calls.size(); ++c) {
    if (capture_.calls[c].kind != CallKind::stream_wait) continue;
    names_waits_ = true;
    if (!add_wait(c)) open_waits_.push_back(c);
  }
}

// @return whether the launches on both sides were found
bool CaptureDraft::add_wait(std::uint32_t call) {
  const CapturedCall& wait = capture_.calls[call];
  const bool read = options_.read_waits;
  const bool to_read = read && wait.stream;
  const bool from_read = read && wait.recorded_stream;
  const bool named = to_read && wait.record;
  if (named) {
    ++named_waits_.named;
    ++named_waits_.idle;  // until both launches are found
  }
  const auto to =
      to_read ? first_launch_called(*wait.stream, wait.start_ns) : neighbour_in_thread(call, false);
  if (!to) return false;
  const std::uint32_t to_stream = capture_.launches[*to].stream;
  const std::int64_t before_ns =
      read && wait.record ? capture_.calls[*wait.record].start_ns : wait.start_ns;
  std::optional<std::uint32_t> from;
  if (from_read) {
    from = last_launch_called(*wait.recorded_stream, before_ns, capture_.launches[*to].start_ns,
                              !wait.record);
  } else {
    // A collective waits for the last other launch that was called, and any other launch for the
    // last collective: those run on streams of their own.
    for (std::uint32_t s = 0; s < capture_.streams.size(); ++s) {
      if (s == to_stream || capture_.streams[s].device != capture_.streams[to_stream].device)
        continue;
      const auto last = last_launch_called(s, before_ns, capture_.launches[*to].start_ns);
      if (!last || (is_collective(*last) == is_collective(*to))) continue;
      if (!from || called_ns_[*last] > called_ns_[*from]) from = last;
    }
  }
  if (!from) return false;
  if (named) --named_waits_.idle;
  if (capture_.launches[*from].stream == to_stream) return false;
  // A wait that the capture itself breaks was not for this launch.
  const bool inferred = !(to_read && from_read && wait.record);
  const std::int64_t error_ns = inferred ? 0 : clock_error_ns;
  if (capture_.launches[*from].end_ns() > capture_.launches[*to].start_ns + error_ns) {
    if (named) ++named_waits_.broken;
    return false;
  }
  has_event_[*to] = true;
  connect(launches_[*from].end, launches_[*to].begin, ArcKind::event, inferred);
  return true;
}

// Whether a wait whose launches were not found may have been called between a launch and the one
// before it on its stream. Where the file names no waits at all, any launch may have waited.
bool CaptureDraft::may_wait(std::uint32_t launch, std::optional<std::uint32_t> before) const {
  const CapturedLaunch& own = capture_.launches[launch];
  if (has_event_[launch]) return false;
  if (!names_waits_ || !own.call) return true;
  const auto first = std::numeric_limits<std::int64_t>::min();
  const std::int64_t from_ns =
      before ? capture_.launches[*before].launch_ns.value_or(first) : first;
  const auto start_ns = [&](std::uint32_t call) { return capture_.calls[call].start_ns; };
  const auto end = std::ranges::lower_bound(open_waits_, *own.launch_ns, {}, start_ns);
  return std::any_of(std::ranges::lower_bound(open_waits_, from_ns, {}, start_ns), end,
                     [&](std::uint32_t call) {
                       const CapturedCall& wait = capture_.calls[call];
                       return !options_.read_waits || !wait.stream || *wait.stream == own.stream;
                     });
}

// Launches that began just after the end of one on another stream, where nothing that came later
// (own call, own stream) explains the start.
void CaptureDraft::add_waits_by_time() {
  std::vector<std::uint32_t> by_start(capture_.launches.size());
  std::iota(by_start.begin(), by_start.end(), 0U);
  sort_by(by_start, [&](std::uint32_t i) { return capture_.launches[i].start_ns; });
  std::vector<std::optional<std::uint32_t>> last_on_stream(capture_.streams.size());
  std::multimap<std::int64_t, std::uint32_t> ends;  // of launches that started before
  for (const std::uint32_t i : by_start) {
    const CapturedLaunch& launch = capture_.launches[i];
    const std::uint32_t device = capture_.streams[launch.stream].device;
    std::int64_t ready_ns = std::numeric_limits<std::int64_t>::min();
    if (call_known(launch)) ready_ns = *launch.launch_ns;
    if (const auto& before = last_on_stream[launch.stream])
      ready_ns = std::max(ready_ns, capture_.launches[*before].end_ns());
    const bool open = may_wait(i, last_on_stream[launch.stream]);
    for (auto end = ends.upper_bound(launch.start_ns); open && end != ends.begin();) {
      --end;
      if (end->first <= ready_ns || launch.start_ns - end->first > event_window_ns) break;
      const CapturedLaunch& other = capture_.launches[end->second];
      if (other.stream == launch.stream || capture_.streams[other.stream].device != device)
        continue;
      connect(launches_[end->second].end, launches_[i].begin, ArcKind::event, true);
      break;
    }
    last_on_stream[launch.stream] = i;
    ends.emplace(launch.end_ns(), i);
    while (!ends.empty() && ends.begin()->first + event_window_ns < launch.start_ns)
      ends.erase(ends.begin());
  }
}

}  // namespace rubato
