// What files say about who waits for whom, and about communication.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/captures.hpp"
#include "traces/import/host_calls.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

std::map<CallKind, std::size_t> counts(const Capture& capture) {
  std::map<CallKind, std::size_t> out;
  for (const CapturedCall& call : capture.calls) ++out[call.kind];
  return out;
}

// What every capture promises.
void expect_sound(const Capture& capture) {
  EXPECT_TRUE(std::ranges::is_sorted(capture.calls, {}, &CapturedCall::start_ns));
  for (const CapturedLaunch& launch : capture.launches) {
    if (launch.call) {
      EXPECT_EQ(capture.calls.at(*launch.call).start_ns, launch.launch_ns);
    }
    if (launch.collective) {
      EXPECT_LT(*launch.collective, capture.collectives.size());
      EXPECT_EQ(capture.kernels[index(launch.kernel)].kind, KernelClass::communication);
    }
  }
  for (const CapturedCall& call : capture.calls) {
    EXPECT_LT(call.thread, capture.threads.size());
    if (call.record) {
      const CapturedCall& record = capture.calls.at(*call.record);
      EXPECT_EQ(record.kind, CallKind::event_record);
      EXPECT_LE(record.start_ns, call.start_ns);
    }
  }
}

class KinetoDependencies : public testing::Test {
 protected:
  KinetoDependencies()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("rubato_dependencies_{}.json", ::getpid())) {}
  ~KinetoDependencies() override { std::filesystem::remove(path_); }

  [[nodiscard]] Capture imported(const std::string& events, const std::string& members = "") const {
    std::ofstream(path_) << "{" << members << "\"traceEvents\": [" << events << "]}";
    return import_capture(path_);
  }

  std::filesystem::path path_;
};

std::string call(std::string_view name, int process, int ts, int correlation, int dur = 2) {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},)"
      R"("args":{{"correlation":{}}}}},)",
      name, process, process + 1, ts, dur, correlation);
}
std::string kernel(std::string_view name, int device, int stream, int ts, int correlation,
                   std::string_view more = "") {
  return fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"{}","pid":{},"tid":{},"ts":{},"dur":3,"args":{{"device":{},)"
      R"("stream":{},"correlation":{},"grid":[1,1,1],"block":[1,1,1]{}}}}},)",
      name, device, stream, ts, device, stream, correlation, more);
}
std::string sync(std::string_view name, int stream, int correlation, std::string_view more) {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_sync","name":"{}","pid":0,"tid":{},"ts":1,"dur":1,"args":{{"device":0,)"
      R"("stream":{},"correlation":{}{}}}}},)",
      name, stream, stream, correlation, more);
}
std::string joined(std::string text) {
  text.pop_back();
  return text;
}

TEST_F(KinetoDependencies, SyncEventsNameStreamsAndRecords) {
  const std::string events =
      call("cudaLaunchKernel", 5, 10, 1) + kernel("a", 0, 7, 20, 1) +
      call("cudaEventRecord", 5, 30, 2) + call("cudaEventRecord", 5, 34, 3) +
      call("cudaStreamWaitEvent", 5, 40, 4) +
      sync(
          "Stream Wait Event", 20, 4,
          R"(,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":2,"wait_on_cuda_event_id":9)") +
      call("cudaLaunchKernel", 5, 50, 5) + kernel("b", 0, 20, 60, 5, R"(,"priority":-1)") +
      call("cudaStreamSynchronize", 5, 70, 6, 15) + sync("Stream Sync", 20, 6, "") +
      call("cudaEventSynchronize", 5, 90, 7) +
      sync("Event Sync", -1, 7, R"(,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":-1)") +
      call("cudaDeviceSynchronize", 5, 100, 8) + sync("Context Sync", -1, 8, "") +
      call("cudaFuncSetAttribute", 5, 110, 9) +
      // A wait of a stream without work, and one in a file of 2023, which names no record.
      call("cudaStreamWaitEvent", 5, 120, 10) +
      sync("Stream Wait Event", 33, 10, R"(,"wait_on_stream":7)") +
      R"({"ph":"X","cat":"cuda_event","name":"cudaEvent","pid":0,"tid":20,"ts":1,"dur":0,"args":
         {"event_id":4,"stream":20,"correlation":3,"device":0}})";
  const Capture capture = imported(events);
  expect_sound(capture);
  ASSERT_EQ(capture.streams.size(), 2U);
  EXPECT_FALSE(capture.streams[0].priority);
  EXPECT_EQ(capture.streams[1].priority, -1);
  EXPECT_EQ(capture.threads, (std::vector<CaptureThread>{{5, 6}}));
  using Stream = std::optional<std::uint32_t>;
  const auto expected = [](CallKind kind, std::int64_t start_us, Stream stream, Stream record,
                           Stream recorded, std::int64_t us = 2) {
    return CapturedCall{kind, 0, start_us * 1000, us * 1000, stream, record, recorded};
  };
  EXPECT_EQ(capture.calls,
            (std::vector<CapturedCall>{expected(CallKind::launch, 10, 0, {}, {}),
                                       expected(CallKind::event_record, 30, 0, {}, {}),
                                       expected(CallKind::event_record, 34, 1, {}, {}),
                                       expected(CallKind::stream_wait, 40, 1, 1, 0),
                                       expected(CallKind::launch, 50, 1, {}, {}),
                                       expected(CallKind::stream_sync, 70, 1, {}, {}, 15),
                                       expected(CallKind::event_sync, 90, {}, {}, 0),
                                       expected(CallKind::device_sync, 100, 0, {}, {}),
                                       expected(CallKind::stream_wait, 120, {}, {}, 0)}));
}

TEST_F(KinetoDependencies, CollectivesNameGroupAndBytes) {
  const std::string more =
      R"(,"Collective name":"_allgather_base","In msg nelems":100,"Out msg nelems":400,"Group size":4,)"
      R"("dtype":"Long","Process Group Name":"7","Process Group Description":"tp",)"
      R"("Process Group Ranks":"[0, 1, 2, 3]","Seq":12)";
  const std::string peer =
      R"(,"Collective name":"send","In msg nelems":8,"Out msg nelems":8,"Group size":2,"dtype":"Half",)"
      R"("Process Group Name":"9","Process Group Ranks":"[0, ... 6]","Src Rank":0,"Dst Rank":6)";
  const std::string events =
      kernel("ncclDevKernel_AllGather(x)", 0, 20, 10, 1, more) +
      kernel("ncclDevKernel_SendRecv(x)", 0, 21, 20, 2, peer) +
      kernel("ncclDevKernel_AllReduce_Sum(x)", 0, 20, 30, 3) +
      // An annotation of an older file, and a second kernel under it.
      R"({"ph":"X","cat":"user_annotation","name":"nccl:all_to_all","pid":5,"tid":6,"ts":100,"dur":50,"args":
         {"Input Dims":[[384],[2,4],[]],"Input type":["int","c10::BFloat16","Scalar"]}},)" +
      call("cudaLaunchKernel", 5, 110, 4) + kernel("ncclKernel_SendRecv(x)", 0, 20, 130, 4) +
      call("cudaLaunchKernel", 5, 120, 5) + kernel("ncclKernel_SendRecv(x)", 0, 20, 150, 5);
  const Capture capture = imported(
      joined(events),
      R"("distributedInfo": {"backend":"nccl","rank":2,"world_size":8,"pg_config":[{"pg_name":"9",
          "pg_desc":"pp","pg_size":2,"ranks":[2,6]}]},)");
  expect_sound(capture);
  EXPECT_EQ(capture.rank, 2U);
  EXPECT_EQ(capture.world_size, 8U);
  EXPECT_EQ(capture.groups,
            (std::vector<CaptureGroup>{{"9", "pp", 2U, {2, 6}}, {"7", "tp", 4U, {0, 1, 2, 3}}}));
  ASSERT_EQ(capture.collectives.size(), 5U);
  EXPECT_EQ(capture.collectives[0],
            (CapturedCollective{CollectiveKind::all_gather, 1U, 12U, 800U, 3200U, {}, {}}));
  EXPECT_EQ(capture.collectives[1],
            (CapturedCollective{CollectiveKind::send_recv, 0U, {}, 16U, 16U, 0U, 6U}));
  EXPECT_EQ(capture.collectives[2],
            (CapturedCollective{CollectiveKind::all_reduce, {}, {}, {}, {}, {}, {}}));
  EXPECT_EQ(capture.collectives[3],
            (CapturedCollective{CollectiveKind::all_to_all, {}, {}, 384U * 4 + 16, {}, {}, {}}));
  EXPECT_EQ(capture.collectives[4].in_bytes, std::nullopt);  // the message is not sent twice
}

// Ranks merged into one file have the same correlations: a call of another process is not the one.
TEST_F(KinetoDependencies, CorrelationsArePerProcess) {
  std::string first, second;
  for (int i = 0; i < 20; ++i) {
    first += call("cudaLaunchKernel", 100, 10 * i, i) + kernel("a", 0, 7, 10 * i + 5, i);
    second += call("cudaLaunchKernel", 200, 10 * i + 3, i) + kernel("b", 1, 7, 10 * i + 9, i);
  }
  for (const std::string& events : {first + second, second + first}) {
    const Capture capture = imported(joined(events));
    expect_sound(capture);
    for (const CapturedLaunch& launch : capture.launches) {
      const std::uint32_t device = capture.devices[capture.streams[launch.stream].device].id;
      ASSERT_TRUE(launch.call);
      EXPECT_EQ(capture.threads[capture.calls[*launch.call].thread].process,
                device == 0 ? 100 : 200);
      EXPECT_EQ(launch.start_ns - *launch.launch_ns, device == 0 ? 5'000 : 6'000);
    }
  }
}

TEST(HostCalls, KindsFollowFromNames) {
  EXPECT_EQ(call_kind_of("cudaStreamWaitEvent_v3020"), CallKind::stream_wait);
  EXPECT_EQ(call_kind_of("cuStreamWaitEvent"), CallKind::stream_wait);
  EXPECT_EQ(call_kind_of("hipEventRecordWithFlags"), CallKind::event_record);
  EXPECT_EQ(call_kind_of("cudaGraphLaunch"), CallKind::launch);
  EXPECT_EQ(call_kind_of("hipExtModuleLaunchKernel"), CallKind::launch);
  EXPECT_EQ(call_kind_of("cudaMemcpyAsync"), CallKind::launch);
  EXPECT_EQ(call_kind_of("cudaMemcpy"), CallKind::blocking_copy);
  EXPECT_EQ(call_kind_of("hipMemcpyWithStream"), CallKind::blocking_copy);
  EXPECT_EQ(call_kind_of("cuMemcpyDtoD_v2"), CallKind::launch);
  EXPECT_EQ(call_kind_of("cudaMalloc"), std::nullopt);
  EXPECT_EQ(call_kind_of("hipify"), std::nullopt);
  EXPECT_EQ(call_kind_of("MyLaunch"), std::nullopt);
  EXPECT_EQ(copy_kind(CallKind::launch, {.to_pageable = true}), CallKind::blocking_copy);
  EXPECT_EQ(copy_kind(CallKind::blocking_copy, {.within_device = true}), CallKind::launch);
}

TEST(RealDependencies, DataParallelResNet) {
  const Capture capture = import_capture(captured("traces/kineto_a100_ddp2_resnet.json.gz"));
  expect_sound(capture);
  EXPECT_EQ(capture.rank, 0U);
  EXPECT_EQ(capture.world_size, 2U);
  EXPECT_EQ(capture.groups, (std::vector<CaptureGroup>{{"0", "default_pg", 2U, {0, 1}}}));
  const auto found = counts(capture);
  EXPECT_EQ(found, (std::map<CallKind, std::size_t>{{CallKind::launch, 2550 + 150 + 960 + 117},
                                                    {CallKind::event_record, 1077},
                                                    {CallKind::stream_wait, 84},
                                                    {CallKind::event_query, 48},
                                                    {CallKind::event_sync, 24},
                                                    {CallKind::device_sync, 1}}));
  // DDP's buckets, in each of three steps; floats.
  std::vector<std::uint64_t> elements;
  std::map<CollectiveKind, std::size_t> kinds;
  for (const CapturedLaunch& launch : capture.launches) {
    if (!launch.collective) continue;
    const CapturedCollective& collective = capture.collectives[*launch.collective];
    ++kinds[collective.kind];
    EXPECT_EQ(collective.group, 0U);
    if (collective.kind == CollectiveKind::all_reduce) elements.push_back(*collective.in_bytes / 4);
  }
  EXPECT_EQ(kinds, (std::map<CollectiveKind, std::size_t>{{CollectiveKind::all_reduce, 15},
                                                          {CollectiveKind::broadcast, 6}}));
  const std::vector<std::uint64_t> step{2'049'000, 7'875'584, 6'563'840, 6'637'568, 2'431'040};
  ASSERT_EQ(elements.size(), 15U);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(elements[i], step[i % 5]) << i;
}

TEST(RealDependencies, EightRanks) {
  const std::vector<std::uint64_t> bytes{24'576,    192,    1'536, 13'568,
                                         1'576'964, 24'576, 448,   907'840};
  std::uint32_t ranks = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(captured("multirank/dlrm_v100_8rank"))) {
    if (!entry.path().string().ends_with("trace.json.gz")) continue;
    const Capture capture = import_capture(entry.path());
    expect_sound(capture);
    ++ranks;
    EXPECT_EQ(capture.world_size, 8U);
    EXPECT_TRUE(entry.path().filename().string().starts_with(
        fmt::format("worker{}_", capture.rank.value())));
    auto found = counts(capture);
    EXPECT_EQ(found[CallKind::stream_wait], 44U);
    EXPECT_EQ(found[CallKind::stream_sync], 10U);
    std::vector<std::uint64_t> sent;
    for (const CapturedLaunch& launch : capture.launches) {
      if (launch.collective)
        sent.push_back(capture.collectives[*launch.collective].in_bytes.value_or(0));
    }
    EXPECT_EQ(sent, bytes);
  }
  EXPECT_EQ(ranks, 8U);
}

// eventSyncId names the record call of every wait, though the file has no rows of events.
TEST(RealDependencies, WaitsOfNsightSystems) {
  const Capture capture = import_capture(captured("traces/nsys_h100_2gpu_dit.sqlite"));
  expect_sound(capture);
  auto found = counts(capture);
  EXPECT_EQ(found[CallKind::launch] + found[CallKind::blocking_copy], 3604U + 1018 + 402 + 268);
  EXPECT_EQ(found[CallKind::event_record], 198U + 134);
  EXPECT_EQ(found[CallKind::stream_wait], 200U);
  EXPECT_EQ(found[CallKind::event_query], 133U);
  EXPECT_EQ(found[CallKind::stream_sync], 33U);
  std::map<std::uint32_t, std::int64_t> latest;  // record by process
  for (std::uint32_t i = 0; i < capture.calls.size(); ++i) {
    const CapturedCall& call = capture.calls[i];
    const auto process = static_cast<std::uint32_t>(capture.threads[call.thread].process);
    if (call.kind == CallKind::event_record) latest[process] = i;
    if (call.kind == CallKind::stream_wait) {
      ASSERT_TRUE(call.record) << i;
      EXPECT_EQ(*call.record, latest[process]);  // as found in the file by other means
    }
    if (call.kind == CallKind::stream_sync) {
      EXPECT_GT(call.duration_ns, 8'000'000);
    }
  }
  // Two were called before the recording began: their annotation is not in it.
  std::map<CollectiveKind, std::size_t> kinds;
  for (const CapturedCollective& collective : capture.collectives) ++kinds[collective.kind];
  EXPECT_EQ(kinds, (std::map<CollectiveKind, std::size_t>{{CollectiveKind::all_to_all, 64},
                                                          {CollectiveKind::send_recv, 2}}));
}

}  // namespace
}  // namespace rubato
