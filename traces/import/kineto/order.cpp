#include "traces/import/kineto/order.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace rubato::kineto {

std::size_t put_in_order(Events& events) {
  if (events.processes > 1) return 0;
  const auto sort = [](auto& list, const auto& key) {
    const auto before = [&](const auto& a, const auto& b) { return key(a) < key(b); };
    if (!std::ranges::is_sorted(list, before)) std::ranges::stable_sort(list, before);
    const auto again = std::unique(list.begin(), list.end(),
                                   [&](const auto& a, const auto& b) { return key(a) == key(b); });
    const auto copies = static_cast<std::size_t>(list.end() - again);
    list.erase(again, list.end());
    return copies;
  };
  const auto thread_of = [&](std::uint32_t thread) {
    const CaptureThread& recorded = events.threads[thread].recorded;
    return std::pair(recorded.process, recorded.id);
  };
  const auto span_key = [&](const Span& one) {
    return std::tuple(one.start_ns, -one.end_ns, thread_of(one.thread), one.external_id,
                      std::string_view(events.names[one.name]));
  };
  (void)sort(events.operators, span_key);
  (void)sort(events.annotations, span_key);
  (void)sort(events.host_calls, [&](const HostCall& one) {
    return std::tuple(one.start_ns, one.correlation, thread_of(one.thread), one.duration_ns);
  });
  (void)sort(events.syncs, [](const SyncDetail& one) {
    return std::tuple(one.device, one.correlation, one.stream, one.recorded_stream,
                      one.record_correlation);
  });
  (void)sort(events.message_labels, [&](const MessageLabel& one) {
    return std::tuple(one.start_ns, -one.end_ns, thread_of(one.thread), one.in_bytes);
  });
  return sort(events.work, [&](const DeviceWork& one) {
    return std::tuple(one.start_ns, one.device, one.stream, one.correlation, one.duration_ns,
                      std::string_view(events.names[one.name]));
  });
}

}  // namespace rubato::kineto
