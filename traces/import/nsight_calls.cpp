#include "traces/import/nsight_calls.hpp"

#include "traces/import/kernel_names.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rubato::nsight {

namespace {

class CallKeeper {
 public:
  CallKeeper(const Tables& tables, CaptureBuilder& builder)
      : tables_(tables), builder_(builder), kept_(builder, tables.calls.size()) {
    for (std::uint32_t i = 0; i < tables_.calls.size(); ++i) {
      const HostCall& call = tables_.calls[i];
      by_correlation_.emplace(std::pair{process_of(call.thread), call.correlation}, i);
      if (call.kind) (void)keep(i);
      if (call.kind == CallKind::event_record) records_[process_of(call.thread)].push_back(i);
    }
    for (const Work& work : tables_.work) {
      if (work.process) devices_[{process_of(*work.process), work.context}] = work.device;
    }
  }

  std::vector<std::optional<std::uint32_t>> launches() {
    std::vector<std::optional<std::uint32_t>> out(tables_.work.size());
    for (std::size_t i = 0; i < tables_.work.size(); ++i) {
      const Work& work = tables_.work[i];
      if (!work.launch_ns || !work.process || !work.correlation) continue;
      const auto position = find(*work.process, *work.correlation);
      if (!position || tables_.calls[*position].start_ns != *work.launch_ns) continue;
      out[i] = keep(*position);
      CapturedCall& call = builder_.call_at(*out[i]);
      if (!call.stream) call.stream = builder_.known_stream(work.device, work.stream);
      if (work.kernel.kind == KernelClass::memcpy) call.kind = copy_kind(call.kind, work.ends);
    }
    return out;
  }

  void waits() {
    const std::map<std::int64_t, std::int64_t> first_ids = ids_before_first_record();
    for (const Synchronization& sync : tables_.synchronizations) {
      const auto position = find(sync.process, sync.correlation);
      if (!position) continue;
      CapturedCall& call = builder_.call_at(keep(*position));
      const auto device = devices_.find({process_of(sync.process), sync.context});
      if (device != devices_.end())
        call.stream = builder_.awaited_stream(call.kind, device->second, sync.stream);
      const auto first_id = first_ids.find(process_of(sync.process));
      if (!waits_for_event(call.kind) || first_id == first_ids.end()) continue;
      const std::int64_t number = sync.event_sync_id - first_id->second;  // from 1
      if (number < 1 || number > records_before(*position)) continue;     // before the window
      call.record =
          kept_.find(records_[process_of(sync.process)][static_cast<std::size_t>(number - 1)]);
    }
    // Where the device says it: the record's stream, and exactly which record a wait means.
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> exact;
    for (const EventRecord& record : tables_.records) {
      const auto position = find(record.process, record.correlation);
      if (!position || tables_.calls[*position].kind != CallKind::event_record) continue;
      builder_.call_at(keep(*position)).stream =
          stream_of(record.process, record.context, record.stream);
      exact[{process_of(record.process), record.event_sync_id}] = keep(*position);
    }
    for (const Synchronization& sync : tables_.synchronizations) {
      const auto record = exact.find({process_of(sync.process), sync.event_sync_id});
      const auto position = find(sync.process, sync.correlation);
      if (record == exact.end() || !position) continue;
      CapturedCall& call = builder_.call_at(keep(*position));
      if (!waits_for_event(call.kind)) continue;
      call.record = record->second;
      call.recorded_stream = builder_.call_at(record->second).stream;
    }
  }

 private:
  std::uint32_t keep(std::uint32_t position) {
    const HostCall& call = tables_.calls[position];
    constexpr std::int64_t ids = 0xffffff;
    return kept_.keep(position, {call.kind,
                                 {(call.thread >> 24) & ids, call.thread & ids},
                                 call.start_ns,
                                 call.end_ns - call.start_ns});
  }

  [[nodiscard]] std::optional<std::uint32_t> find(std::int64_t process,
                                                  std::int64_t correlation) const {
    const auto found = by_correlation_.find({process_of(process), correlation});
    return found == by_correlation_.end() ? std::nullopt : std::optional(found->second);
  }

  [[nodiscard]] std::optional<std::uint32_t> stream_of(std::int64_t process, std::int64_t context,
                                                       std::int64_t stream) const {
    const auto device = devices_.find({process_of(process), context});
    return device == devices_.end() ? std::nullopt : builder_.known_stream(device->second, stream);
  }

  // How many records of its process began before a call.
  [[nodiscard]] std::int64_t records_before(std::uint32_t position) const {
    const HostCall& call = tables_.calls[position];
    const auto records = records_.find(process_of(call.thread));
    if (records == records_.end()) return 0;
    // Calls are in order of their start, and so are their positions.
    return std::ranges::lower_bound(records->second, position) - records->second.begin();
  }

  // By process: the id before that of the first record in the file, see keep_calls().
  [[nodiscard]] std::map<std::int64_t, std::int64_t> ids_before_first_record() const {
    std::map<std::int64_t, std::map<std::int64_t, std::size_t>> differences;
    for (const Synchronization& sync : tables_.synchronizations) {
      const auto position = find(sync.process, sync.correlation);
      if (!position || sync.event_sync_id <= 0 ||
          tables_.calls[*position].kind != CallKind::stream_wait)
        continue;
      ++differences[process_of(sync.process)][sync.event_sync_id - records_before(*position)];
    }
    std::map<std::int64_t, std::int64_t> out;
    for (const auto& [process, counts] : differences) {
      std::size_t all = 0;
      for (const auto& [difference, count] : counts) all += count;
      const auto& [largest, count] = *counts.rbegin();
      if (2 * count >= all) out[process] = largest;
    }
    return out;
  }

  const Tables& tables_;
  CaptureBuilder& builder_;
  KeptCalls kept_;  ///< by position in Tables::calls
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> by_correlation_, devices_;
  std::map<std::int64_t, std::vector<std::uint32_t>> records_;  ///< of a process, by start
};

}  // namespace

std::vector<std::optional<std::uint32_t>> keep_calls(const Tables& tables,
                                                     CaptureBuilder& builder) {
  for (const Work& work : tables.work) {
    const std::uint32_t stream = builder.stream(work.device, work.stream);
    const auto priority = tables.priorities.find({work.context, work.stream});
    if (priority != tables.priorities.end())
      builder.capture().streams[stream].priority = priority->second;
  }
  CallKeeper keeper(tables, builder);
  auto out = keeper.launches();
  keeper.waits();
  return out;
}

std::vector<std::optional<std::uint32_t>> keep_collectives(const Tables& tables,
                                                           CaptureBuilder& builder) {
  std::vector<const NvtxRange*> labels;  // by thread and start, as the ranges are
  for (const NvtxRange& range : tables.ranges) {
    if (range.text.starts_with("nccl:")) labels.push_back(&range);
  }
  std::vector<std::optional<std::uint32_t>> out(tables.work.size());
  for (std::size_t i = 0; i < tables.work.size(); ++i) {
    const Work& work = tables.work[i];
    if (work.kernel.kind != KernelClass::communication) continue;
    CapturedCollective collective;
    collective.kind = collective_kind_of(work.kernel.label);
    if (work.launch_ns && work.thread) {
      auto label = std::ranges::upper_bound(
          labels, std::pair(*work.thread, *work.launch_ns), {},
          [](const NvtxRange* range) { return std::pair(range->thread, range->start_ns); });
      if (label != labels.begin() && (*--label)->thread == *work.thread &&
          (*label)->end_ns >= *work.launch_ns)
        collective.kind = collective_kind_of((*label)->text);
    }
    out[i] = static_cast<std::uint32_t>(builder.capture().collectives.size());
    builder.capture().collectives.push_back(collective);
  }
  return out;
}

}  // namespace rubato::nsight
