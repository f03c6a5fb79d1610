// Which of the devices of a process a call waited for.

#include <algorithm>
#include <map>

#include "traces/graph/capture_draft.hpp"

namespace rubato {

// The last launches of the device that a call waited for. Of a process with several devices it is
// the one that the file names. Else it is that of the thread's nearest launch, or, where a long
// wait does not end with the work of that one, a device with whose work it does.
std::vector<std::pair<std::uint32_t, bool>> CaptureDraft::awaited_of_device(
    std::uint32_t call) const {
  using Launches = std::vector<std::uint32_t>;
  const CapturedCall& sync = capture_.calls[call];
  const std::int64_t process = capture_.threads[sync.thread].process;
  std::map<std::uint32_t, Launches> last_of_device;
  for (std::uint32_t s = 0; s < capture_.streams.size(); ++s) {
    const auto last = last_launch_called(s, sync.start_ns, sync.end_ns());
    if (last && is_of_process(*last, process))
      last_of_device[capture_.streams[s].device].push_back(*last);
  }
  const auto of_stream = [&](std::uint32_t stream) {
    return last_of_device.find(capture_.streams[stream].device);
  };
  const auto ends_with_it = [&](const Launches& launches) {
    std::int64_t end_ns = sync.start_ns;
    for (const std::uint32_t launch : launches)
      end_ns = std::max(end_ns, capture_.launches[launch].end_ns());
    return end_ns > sync.start_ns && end_ns <= sync.end_ns() + clock_error_ns &&
           end_ns + unseen_sync_window_ns >= sync.end_ns();
  };
  const bool known = options_.read_waits && sync.stream.has_value();
  auto own = known ? of_stream(*sync.stream) : last_of_device.begin();
  const bool inferred = !known && last_of_device.size() > 1;
  if (inferred) {
    const auto before = neighbour_in_thread(call, true);
    const auto near = before ? before : neighbour_in_thread(call, false);
    own = near ? of_stream(capture_.launches[*near].stream) : last_of_device.end();
    if (own == last_of_device.end() || !ends_with_it(own->second)) {
      const auto other = std::ranges::find_if(
          last_of_device, [&](const auto& device) { return ends_with_it(device.second); });
      if (other != last_of_device.end()) own = other;
    }
  }
  std::vector<std::pair<std::uint32_t, bool>> awaited;
  if (own == last_of_device.end()) return awaited;
  for (const std::uint32_t launch : own->second) awaited.emplace_back(launch, inferred);
  return awaited;
}

}  // namespace rubato
