#include "traces/import/kineto/calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "traces/import/host_calls.hpp"
#include "traces/import/kernel_names.hpp"

namespace rubato::kineto {

CallTable::CallTable(const Events& events) : events_(events) {
  entries_.reserve(events.host_calls.size());
  for (std::uint32_t i = 0; i < events.host_calls.size(); ++i) {
    const HostCall& call = events.host_calls[i];
    entries_.push_back({call.correlation, events.threads[call.thread].process, i});
  }
  // Calls of one process and correlation stay in the order of the file.
  std::ranges::stable_sort(entries_, [](const Entry& a, const Entry& b) {
    return std::pair(a.process, a.correlation) < std::pair(b.process, b.correlation);
  });
  if (events.processes > 1) find_owners();
}

std::optional<std::uint32_t> CallTable::find_in(std::uint32_t process,
                                                std::int64_t correlation) const {
  const std::pair key{process, correlation};
  const auto found = std::ranges::lower_bound(
      entries_, key, {}, [](const Entry& e) { return std::pair(e.process, e.correlation); });
  if (found == entries_.end() || std::pair(found->process, found->correlation) != key)
    return std::nullopt;
  return found->call;
}

std::uint32_t CallTable::process_of(std::uint32_t device) const {
  const auto owner = std::ranges::find(owners_, device, &Owner::device);
  return owner == owners_.end() ? 0 : owner->process;
}

std::optional<std::uint32_t> CallTable::find(std::uint32_t device, std::int64_t correlation) const {
  if (correlation < 0) return std::nullopt;
  const std::uint32_t owner = process_of(device);
  if (const auto call = find_in(owner, correlation)) return call;
  for (std::uint32_t process = 0; process < events_.processes; ++process) {
    if (process == owner) continue;
    if (const auto call = find_in(process, correlation)) return call;
  }
  return std::nullopt;
}

// Merged ranks have the same correlations, so to count hits is not enough. Two facts help: a call
// comes before its work, and a rank's part of a merged file is in one piece as a rule. Every
// process gets a device of its own before one gets a second.
void CallTable::find_owners() {
  struct Fit {
    std::uint64_t hits = 0;
    double distance = 0.0;  ///< of places in the lists of calls and of work, as shares of the lists
    std::int64_t lag_ns = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Fit> fits;  // by device and process
  const auto share = [](std::size_t at, std::size_t of) {
    return static_cast<double>(at) / static_cast<double>(of);
  };
  for (std::size_t i = 0; i < events_.work.size(); ++i) {
    const DeviceWork& work = events_.work[i];
    for (std::uint32_t process = 0; process < events_.processes; ++process) {
      const auto call = find_in(process, work.correlation);
      if (!call || events_.host_calls[*call].start_ns > work.start_ns) continue;
      Fit& fit = fits[{work.device, process}];
      ++fit.hits;
      fit.distance +=
          std::abs(share(i, events_.work.size()) - share(*call, events_.host_calls.size()));
      fit.lag_ns += (work.start_ns - events_.host_calls[*call].start_ns) / 1024;  // no overflow
    }
  }
  std::vector<std::pair<std::pair<std::uint32_t, std::uint32_t>, Fit>> best(fits.begin(),
                                                                            fits.end());
  std::ranges::stable_sort(best, [](const auto& a, const auto& b) {
    const auto per_hit = [](const Fit& f) { return f.distance / static_cast<double>(f.hits); };
    return std::tuple(b.second.hits, per_hit(a.second), a.second.lag_ns) <
           std::tuple(a.second.hits, per_hit(b.second), b.second.lag_ns);
  });
  std::set<std::uint32_t> devices, processes;
  for (const bool own_only : {true, false}) {
    for (const auto& [pair, fit] : best) {
      if (devices.contains(pair.first) || (own_only && processes.contains(pair.second))) continue;
      owners_.push_back({pair.first, pair.second});
      devices.insert(pair.first);
      processes.insert(pair.second);
    }
  }
}

std::vector<std::optional<std::uint32_t>> keep_calls(
    const Events& events, const CallTable& table,
    const std::vector<std::optional<std::uint32_t>>& launch_call, CaptureBuilder& builder) {
  KeptCalls kept(builder, events.host_calls.size());
  const auto keep = [&](std::uint32_t position) {
    const HostCall& call = events.host_calls[position];
    return kept.keep(position, {call.kind, events.threads[call.thread].recorded, call.start_ns,
                                call.duration_ns});
  };
  for (std::uint32_t i = 0; i < events.host_calls.size(); ++i) {
    if (events.host_calls[i].kind) (void)keep(i);
  }
  std::vector<std::optional<std::uint32_t>> out(events.work.size());
  for (std::size_t i = 0; i < events.work.size(); ++i) {
    if (!launch_call[i]) continue;
    const DeviceWork& work = events.work[i];
    out[i] = keep(*launch_call[i]);
    CapturedCall& call = builder.call_at(*out[i]);
    if (!call.stream) call.stream = builder.known_stream(work.device, work.stream);
    if (work.kind != KernelClass::memcpy) continue;
    const std::string& name = events.names[work.name];
    call.kind = copy_kind(call.kind, {.within_device = name.find("DtoD") != std::string::npos,
                                      .to_pageable = name.find("DtoH") != std::string::npos &&
                                                     name.find("Pageable") != std::string::npos});
  }
  for (const SyncDetail& sync : events.syncs) {
    const auto position = table.find(sync.device, sync.correlation);
    if (!position) continue;
    const std::uint32_t index = keep(*position);
    const CallKind kind = builder.call_at(index).kind;
    if (sync.stream >= 0 || kind == CallKind::device_sync)
      builder.call_at(index).stream = builder.awaited_stream(kind, sync.device, sync.stream);
    if (!waits_for_event(builder.call_at(index).kind)) continue;
    const auto recorded = sync.recorded_stream >= 0
                              ? builder.known_stream(sync.device, sync.recorded_stream)
                              : std::nullopt;
    builder.call_at(index).recorded_stream = recorded;
    const auto record = table.find(sync.device, sync.record_correlation);
    if (!record || events.host_calls[*record].kind != CallKind::event_record) continue;
    const std::uint32_t record_index = keep(*record);
    builder.call_at(index).record = record_index;
    if (recorded) builder.call_at(record_index).stream = recorded;
  }
  return out;
}

namespace {

// The innermost label around each launch. Each label is given to the first kernel under it only.
std::vector<const MessageLabel*> labels_of(
    const Events& events, const std::vector<std::optional<std::uint32_t>>& launch_call) {
  std::vector<const MessageLabel*> labels;
  for (const MessageLabel& label : events.message_labels) labels.push_back(&label);
  const auto key = [](const MessageLabel* l) {
    return std::tuple(l->thread, l->start_ns, -l->end_ns);
  };
  std::ranges::stable_sort(labels, [&](const auto* a, const auto* b) { return key(a) < key(b); });
  std::vector<const MessageLabel*> out(events.work.size(), nullptr);
  std::set<const MessageLabel*> taken;
  for (std::size_t i = 0; i < events.work.size(); ++i) {
    if (!launch_call[i] || events.work[i].kind != KernelClass::communication) continue;
    const HostCall& call = events.host_calls[*launch_call[i]];
    auto at = std::ranges::upper_bound(
        labels, std::pair(call.thread, call.start_ns), {},
        [](const MessageLabel* l) { return std::pair(l->thread, l->start_ns); });
    if (at == labels.begin() || (*--at)->thread != call.thread || (*at)->end_ns < call.start_ns)
      continue;
    if (taken.insert(*at).second) out[i] = *at;
  }
  return out;
}

}  // namespace

std::vector<std::optional<std::uint32_t>> keep_collectives(
    const Events& events, const std::vector<std::optional<std::uint32_t>>& launch_call,
    CaptureBuilder& builder) {
  const std::vector<const MessageLabel*> labels = labels_of(events, launch_call);
  std::map<std::string, const CaptureGroup*> described;
  for (const CaptureGroup& group : events.groups) {
    (void)builder.group(group);
    described[group.name] = &group;
  }
  std::vector<std::optional<std::uint32_t>> out(events.work.size());
  for (std::size_t i = 0; i < events.work.size(); ++i) {
    const DeviceWork& work = events.work[i];
    CapturedCollective collective;
    if (work.message != 0) {
      const Message& message = events.messages[work.message];
      collective = message.collective;
      CaptureGroup group = message.group;
      if (group.ranks.empty()) {
        const auto found = described.find(group.name);
        if (found != described.end() && found->second->size == group.size)
          group.ranks = found->second->ranks;
      }
      if (!group.name.empty()) collective.group = builder.group(group);
    } else if (work.kind == KernelClass::communication) {
      collective.kind = collective_kind_of(events.names[work.name]);
      if (labels[i] != nullptr) {
        collective.kind = labels[i]->kind;
        collective.in_bytes = labels[i]->in_bytes;
      }
    } else {
      continue;
    }
    out[i] = static_cast<std::uint32_t>(builder.capture().collectives.size());
    builder.capture().collectives.push_back(collective);
  }
  return out;
}

}  // namespace rubato::kineto
