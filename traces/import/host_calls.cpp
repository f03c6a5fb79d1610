#include "traces/import/host_calls.hpp"

#include <array>

namespace rubato {

namespace {

struct CallRule {
  std::string_view begins;  ///< behind "cuda", "cu" or "hip"
  CallKind kind;
};

// The first rule that fits decides.
constexpr std::array rules{
    CallRule{"StreamSynchronize", CallKind::stream_sync},
    CallRule{"DeviceSynchronize", CallKind::device_sync},
    CallRule{"CtxSynchronize", CallKind::device_sync},
    CallRule{"ThreadSynchronize", CallKind::device_sync},
    CallRule{"EventSynchronize", CallKind::event_sync},
    CallRule{"EventQuery", CallKind::event_query},
    CallRule{"EventRecord", CallKind::event_record},
    CallRule{"StreamWaitEvent", CallKind::stream_wait},
    CallRule{"Launch", CallKind::launch},
    CallRule{"GraphLaunch", CallKind::launch},
    CallRule{"ModuleLaunch", CallKind::launch},     // hipModuleLaunchKernel
    CallRule{"ExtLaunch", CallKind::launch},        // hipExtLaunchKernel
    CallRule{"ExtModuleLaunch", CallKind::launch},  // hipExtModuleLaunchKernel
    CallRule{"Memset", CallKind::launch},           // returns before its end, but for host memory
};

}  // namespace

std::optional<CallKind> call_kind_of(std::string_view api_name) {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (!api_name.starts_with(prefix)) continue;
    const std::string_view rest = api_name.substr(prefix.size());
    for (const CallRule& rule : rules) {
      if (rest.starts_with(rule.begins)) return rule.kind;
    }
    if (!rest.starts_with("Memcpy")) return std::nullopt;
    const bool returns = rest.find("Async") != std::string_view::npos ||
                         rest.find("Peer") != std::string_view::npos ||
                         rest.find("DtoD") != std::string_view::npos;
    return returns ? CallKind::launch : CallKind::blocking_copy;
  }
  return std::nullopt;
}

CallKind copy_kind(CallKind by_name, CopyEnds ends) {
  if (ends.within_device) return CallKind::launch;
  if (ends.to_pageable) return CallKind::blocking_copy;
  return by_name;
}

bool waits_for_event(CallKind kind) {
  return kind == CallKind::event_sync || kind == CallKind::event_query ||
         kind == CallKind::stream_wait;
}

std::uint32_t KeptCalls::keep(std::uint32_t position, const RecordedCall& call) {
  std::optional<std::uint32_t>& index = index_[position];
  if (!index)
    index = builder_.call({.kind = call.kind.value_or(CallKind::launch),
                           .thread = builder_.thread(call.thread),
                           .start_ns = call.start_ns,
                           .duration_ns = call.duration_ns});
  return *index;
}

}  // namespace rubato
