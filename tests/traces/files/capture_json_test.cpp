#include "traces/files/capture_json.hpp"
#include "traces/import/readers.hpp"

#include <filesystem>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/gzip.hpp"
#include "tests/captures.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"
#include "traces/capture_stats.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/builder.hpp"

namespace rubato {
namespace {

class CaptureJson : public FileTest {
 protected:
  [[nodiscard]] Capture round_trip(const Capture& capture) const {
    save_capture(capture, folder_ / "round.json");
    return load_capture(folder_ / "round.json");
  }
};

// Everything a capture can say, some of it twice.
Capture full_capture() {
  Capture capture;
  capture.name = "all \"of\" it";
  capture.provenance = {"made", "by hand", "x=1"};
  capture.devices = {{3, "NVIDIA A100"}, {5, ""}};
  capture.streams = {{0, 7, -5}, {1, -4}};
  Kernel product;
  product.name = "gemm";
  product.label = "void gemm<float>(int)";
  product.kind = KernelClass::gemm;
  product.pass = Pass::forward;
  product.dtype = Dtype::bf16;
  product.flops = 0.1 + 0.2;
  product.dram_bytes = 1e300;
  product.gemm = GemmShape{2, 3, 4, 5};
  product.attention = AttentionShape{6, 1, 8, 9, 3, 11, true};
  product.launch = LaunchShape{{1, 2, 3}, {4, 5, 6}};
  product.work_source = WorkSource::derived;
  Kernel reduce;
  reduce.name = "reduce";
  reduce.label = "nccl";
  reduce.kind = KernelClass::communication;
  reduce.collective = Collective{CollectiveKind::all_gather, 12.5, 8};
  reduce.measured_time_s = 1e-6;
  capture.kernels = {product, reduce};
  // Old files count from 1970: more digits than a double has.
  const std::int64_t since_1970 = 1661938466367897001;
  capture.launches = {
      {KernelId{0}, 0, since_1970, 5, since_1970 - 900, 1U, Pass::forward},
      {KernelId{1}, 1, since_1970 + 3, 0, std::nullopt, std::nullopt, Pass::backward},
      {KernelId{0}, 0, since_1970 + 9, longest_launch_ns, std::nullopt, 0U, Pass::forward}};
  capture.steps = {{"ProfilerStep#1", since_1970 - 999, since_1970}, {"", 5, 6}};
  capture.step_source = StepSource::annotation;
  capture.epoch_ns = -1;
  capture.left_out = {"3 things"};
  capture.threads = {{59811, -549452224}, {-1, -2}};
  capture.calls = {{CallKind::launch, 1, since_1970 - 900, 7, 0, {}, {}},
                   {CallKind::event_record, 0, since_1970 - 800, 0, 0, {}, {}},
                   {CallKind::stream_wait, 0, since_1970 - 700, 2, 1, 1, 0}};
  capture.launches[0].call = 0;
  capture.launches[1].collective = 1;
  capture.groups = {{"0", "default_pg", 2, {0, 7}}, {"", "", {}, {}}};
  capture.collectives = {{CollectiveKind::broadcast, {}, {}, {}, {}, {}, {}},
                         {CollectiveKind::send_recv, 0, std::uint64_t{1} << 52U, 5, 0, 1, 2}};
  capture.rank = 3;
  capture.world_size = 8;
  return capture;
}

TEST_F(CaptureJson, GivesBackWhatWasWritten) {
  Capture capture = full_capture();
  EXPECT_EQ(round_trip(capture), capture);
  EXPECT_EQ(capture_format(folder_ / "round.json"), CaptureFormat::rubato_capture);
  EXPECT_EQ(import_capture(folder_ / "round.json"), capture);
  save_capture(capture, folder_ / "packed.json.gz");
  EXPECT_LT(std::filesystem::file_size(folder_ / "packed.json.gz"),
            std::filesystem::file_size(folder_ / "round.json"));
  EXPECT_EQ(import_capture(folder_ / "packed.json.gz"), capture);
  // Absurd times cannot be written as distances from the first.
  capture.launches[0].start_ns = std::numeric_limits<std::int64_t>::min();
  capture.launches[2].start_ns = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(round_trip(capture), capture);
  EXPECT_EQ(round_trip(Capture{}), Capture{});
}

TEST_F(CaptureJson, FilesOfTheFirstSchemaAreRead) {
  const auto old = file("old.json", R"({"schema": 1, "kind": "capture", "name": "n",
    "provenance": {"generator": "g", "source": "s", "options": ""}, "origin_ns": 100,
    "devices": [{"id": 0, "name": "GPU"}], "streams": [{"device": 0, "id": 7}],
    "step_source": "whole_file", "steps": [], "left_out": [],
    "kernels": [{"name": "k", "label": "k", "class": "other", "pass": "unknown",
                 "dtype": "unknown", "work_source": "unknown"}],
    "launches": [{"kernel": [0], "stream": [0], "start_ns": [5], "duration_ns": [2],
                  "launch_ns": [-3]}]})");
  const Capture capture = load_capture(old);
  ASSERT_EQ(capture.launches.size(), 1U);
  EXPECT_EQ(capture.launches[0].launch_ns, 97);
  EXPECT_FALSE(capture.launches[0].call);
  EXPECT_EQ(round_trip(capture), capture);
}

TEST_F(CaptureJson, AnyCaptureSurvives) {
  rc::check([&] {
    Capture capture;
    capture.devices.resize(1);
    capture.streams.resize(*rc::gen::inRange<std::size_t>(1, 4));
    capture.kernels.resize(*rc::gen::inRange<std::size_t>(1, 5));
    for (std::size_t k = 0; k < capture.kernels.size(); ++k) {
      capture.kernels[k].name = "k" + std::to_string(k);
      capture.kernels[k].pass = static_cast<Pass>(*rc::gen::inRange(0, 7));
    }
    capture.steps.resize(*rc::gen::inRange<std::size_t>(1, 3));
    const auto count = *rc::gen::inRange(0, 2500);  // up to three blocks
    std::int64_t now_ns = *rc::gen::inRange(-1000, 1000);
    for (int i = 0; i < count; ++i) {
      CapturedLaunch launch;
      launch.kernel = id_at<KernelId>(static_cast<std::size_t>(i * 7) % capture.kernels.size());
      launch.stream =
          static_cast<std::uint32_t>(static_cast<std::size_t>(i) % capture.streams.size());
      launch.start_ns = now_ns += i % 3;
      launch.duration_ns = i % 11;
      if (i % 5 != 0) launch.launch_ns = now_ns - 50;
      if (i % 4 != 0)
        launch.step =
            static_cast<std::uint32_t>(static_cast<std::size_t>(i) % capture.steps.size());
      launch.pass = i % 600 == 599 ? Pass::loss : capture.kernels[index(launch.kernel)].pass;
      capture.launches.push_back(launch);
    }
    RC_ASSERT(round_trip(capture) == capture);
  });
}

TEST_F(CaptureJson, WrongEntriesAreNamed) {
  const std::string good = capture_json(full_capture());
  const auto rejected = [&](const std::string& from, const std::string& to, std::string_view what,
                            std::string_view hint = {}) {
    const auto path = file("bad.json", replaced(good, from, to));
    expect_error<DataError>([&] { (void)load_capture(path); }, what, hint);
  };
  rejected("\"schema\": 1", "\"schema\": 2", "schema 2 is not supported; expected 1",
           "written by a newer version");
  rejected("\"kind\": \"capture\"", "\"kind\": \"picture\"", "found 'picture'; expected 'capture'");
  rejected("\"devices\"", "\"device\"", "unknown key 'device'; did you mean 'devices'?");
  rejected("\"left_out\": [\"3 things\"],", "", "key 'left_out' is missing");
  rejected("\"left_out\"", "\"name\": \"\", \"left_out\"", "key 'name' occurs twice");
  rejected("\"annotation\"", "\"guess\"", "expected annotation, periodic or whole_file");
  rejected("\"duration_ns\": [5,0,", "\"duration_ns\": [5,-1,", "duration_ns[1] is -1; expected 0");
  rejected("\"duration_ns\": [5,0,", "\"duration_ns\": [5,NaN,", "not valid JSON");
  rejected("\"duration_ns\": [5,0,", "\"duration_ns\": [5,null,", "value 1 is null");
  rejected("\"duration_ns\": [5,0,", "\"duration_ns\": [5,0.5,", "found 0.5; expected a whole");
  rejected("\"duration_ns\": [5,0,", "\"duration_ns\": [5,", "has 2 values, 'kernel' has 3");
  rejected("\"kernel\": [0,1,0]", "\"kernel\": [0,2,0]", "a launch has kernel 2, but there are 2");
  rejected("\"kernel\": [0,1,0]", "\"kernel\": [0,-2,0]", "kernel -2 does not exist");
  rejected("\"stream\": [0,1,0]", "\"stream\": [0,9,0]", "a launch has stream 9, but there are 2");
  rejected("\"step\": [1,null,0]", "\"step\": [2,null,0]", "a launch has step 2, but there are 2");
  rejected("\"start_ns\": [0,", "\"start_ns\": [9223372036854775807,", "is absurd");
  rejected("\"start_ns\": [0,", "\"start_ns\": [18446744073709551615,", "at most 64 bits");
  rejected("\"pass\": [\"forward\"", "\"pass\": [\"foreward\"", "did you mean 'forward'?");
  rejected("\"device\":0", "\"device\":7", "streams: device 7, but there are 2");
  rejected("\"name\":\"reduce\"", "\"name\":\"gemm\"", "kernel name 'gemm' occurs twice");
  rejected("\"call\": [0", "\"call\": [3", "a launch has call 3, but there are 3");
  rejected("\"collective\": [null,1", "\"collective\": [null,2", "collective 2, but there are 2");
  rejected("\"thread\": [1", "\"thread\": [2", "a call has thread 2, but there are 2");
  rejected("\"record\": [null,null,1", "\"record\": [null,null,0",
           "record 0, which is no event_rec");
  rejected("\"record\": [null,null,1", "\"record\": [null,null,9", "record 9, but there are 3");
  rejected("\"start_ns\": [-900,", "\"start_ns\": [-750,", "calls are not in order of start_ns");
  rejected("\"stream_wait\"", "\"stream_weit\"", "did you mean 'stream_wait'?");
  rejected("\"group\":0", "\"group\":2", "a collective has group 2, but there are 2");
  rejected("\"priority\":-5", "\"priority\":-5000000000", "whole number of 32 bits");
  rejected("\"class\":\"gemm\"", "\"class\":\"gem\"", "did you mean one of gemm, gemm_batched?");
}

TEST_F(CaptureJson, WhatIsDamagedIsLeftOutIfAsked) {
  Capture capture = full_capture();
  const CapturedLaunch launch = capture.launches.back();
  capture.launches.resize(2500, launch);
  const std::string good = capture_json(capture);
  const auto cut = file("cut.json", good.substr(0, good.size() - 100));
  expect_error<DataError>([&] { (void)load_capture(cut); }, "the file ends early", "--partial");
  const Capture begun = load_capture(cut, {.partial = true});
  EXPECT_EQ(begun.launches.size(), 2000U);
  ASSERT_EQ(begun.left_out.size(), 2U);
  EXPECT_NE(begun.left_out[1].find("the file ends early"), std::string::npos);

  const auto block =
      file("block.json", replaced(good, "\"duration_ns\": [5", "\"duration_ns\": [-5"));
  const Capture rest = load_capture(block, {.partial = true});
  EXPECT_EQ(rest.launches.size(), 1500U);
  EXPECT_NE(rest.left_out.back().find("1 blocks of launches that cannot be read"),
            std::string::npos);

  const auto calls = file("calls.json", replaced(good, "\"thread\": [1", "\"thread\": [null"));
  const Capture uncalled = load_capture(calls, {.partial = true});
  EXPECT_EQ(uncalled.launches.size(), 2500U);
  EXPECT_TRUE(uncalled.calls.empty());
  EXPECT_FALSE(uncalled.launches[0].call);
  EXPECT_NE(uncalled.left_out.back().find("the calls of the host"), std::string::npos);

  std::string packed = gzip(good);
  packed.resize(packed.size() / 2);
  const auto half = file("half.json.gz", packed);
  expect_error<DataError>([&] { (void)load_capture(half); }, "the gzip data end early");
  const auto bomb =
      file("bomb.json.gz", gzip(replaced(good, "3 things", std::string(1U << 22U, 'x'))));
  expect_error<DataError>([&] { (void)load_capture(bomb, {.max_expanded_bytes = 1'000'000}); },
                          "expands to more than 1000000 bytes");
}

// Names of other tools need not be UTF-8; ours must be unique and readable all the same.
TEST_F(CaptureJson, NamesThatAreNoTextCanBeWritten) {
  CaptureBuilder builder("made");
  std::int64_t now_ns = 0;
  for (const char* name : {"k\xff", "k\xfe", "k #2", "k", "k"}) {
    Kernel kernel;
    kernel.label = name;
    kernel.flops = static_cast<double>(now_ns);
    const KernelId id = builder.kernel(kernel, name);
    builder.launch({id, builder.stream(0, 0), ++now_ns, 1, {}, {}, Pass::unknown});
  }
  const Capture capture = std::move(builder).finish();
  const Capture again = round_trip(capture);
  ASSERT_EQ(again.kernels.size(), 5U);
  for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(again.kernels[k].name, capture.kernels[k].name);
  EXPECT_EQ(fold(again).kernels.size(), 5U);
}

TEST_F(CaptureJson, OurOwnTracesAreRecognisedAndCounted) {
  const Trace shipped = load_trace("gpt3-xl");
  const auto json = file("t.json", to_json(shipped));
  EXPECT_EQ(capture_format(json), CaptureFormat::rubato_json);
  EXPECT_EQ(import_trace(json, {}), shipped);
  const Capture capture = import_capture(json);
  std::uint64_t launches = 0;
  for (const std::uint64_t count : launch_counts(shipped)) launches += count;
  EXPECT_EQ(capture.launches.size(), launches);
  EXPECT_EQ(capture_stats(capture).kernels.time_ns, 0);
  ASSERT_EQ(capture.left_out.size(), 1U);
  EXPECT_NE(capture.left_out[0].find("has no measured_time_s"), std::string::npos);
  EXPECT_EQ(import_trace(file("t.json.gz", gzip(to_json(shipped))), {}), shipped);

  const auto csv = file("t.csv",
                        "repeat,segment,kernel,class,pass,measured_time_s\n"
                        "3,a,k,gemm,forward,2e-6\n");
  EXPECT_EQ(capture_format(csv), CaptureFormat::rubato_csv);
  EXPECT_EQ(capture_stats(import_capture(csv)).kernels.time_ns, 6'000);
  const auto many =
      file("m.csv", "repeat,segment,kernel,class,pass\n4000000000,a,k,gemm,forward\n");
  expect_error<DataError>([&] { (void)import_capture(many); }, "4000000000 launches");
}

TEST_F(CaptureJson, RealCapturesSurvive) {
  for (const char* name : {"kineto_a100_ddp2_resnet.json.gz", "kineto_h100_qwen_fwd.json.gz",
                           "nsys_h100_2gpu_dit.sqlite", "chakra_resnet_rank0.et.gz",
                           "chakra_host_gpt2_train.json.gz"}) {
    const std::string path = std::string("traces/") + name;
    const Capture capture = import_capture(captured(path));
    EXPECT_EQ(round_trip(capture), capture) << name;
  }
}

}  // namespace
}  // namespace rubato
