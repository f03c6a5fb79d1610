// Prefill and decode in captures of servers, in the words of vLLM, SGLang, TensorRT-LLM and ATOM.

#include "traces/serving_steps.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/import/readers.hpp"
#include "traces/odd_steps.hpp"

namespace rubato {
namespace {

TEST(ServingSteps, AreToldByTheirNames) {
  using enum ServingStep;
  const std::vector<std::pair<const char*, std::optional<ServingStep>>> expected{
      {"execute_context_1(8064)_generation_0(0)", prefill},
      {"execute_context_2(300)_generation_7(7)", mixed},
      {"execute_context_0(0)_generation_64(64)", decode},
      {"execute_context_0(0)_generation_0(0)", idle},  // caches are moved
      {"execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489)",
       mixed},
      {"execute_64_context_0(sq0sk0)_generation_64(sq64sk34489)", decode},
      {"execute_new_1_cached_0", prefill},
      {"execute_new_0_cached_3", decode},
      {"step[EXTEND bs=1 toks=4]", prefill},
      {"step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]", prefill},
      {"step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]", decode},
      {"step[TARGET_VERIFY bs=16]", decode},
      {"step[DRAFT_EXTEND_V2 bs=16]", std::nullopt},  // of the step that verifies it
      {"step[MIXED bs=2 c=1 g=1]", mixed},
      {"step[IDLE bs=0]", idle},
      {"[Executor] _forward_step 12: 2 ctx reqs, 0 gen reqs", prefill},
      {"[Executor] _forward_step 12: 2 ctx reqs, 1024 ctx tokens, 3 gen reqs", mixed},
      {"[Executor] _forward_step 13: 0 ctx reqs, 0 ctx tokens, 8 gen reqs", decode},
      {"prefill[bs=2 tok=16384]", prefill},
      {"decode[bs=64 tok=64 d=64]", decode},
      {"eager_decode[bs=32]", decode},
      {"prefill", prefill},  // a script's own record_function("prefill")
      {"decode", decode},
      {"decode_attention", std::nullopt},
      {"gpu_model_runner: forward", std::nullopt},
      {"ProfilerStep#3", std::nullopt},
      {"execute_model", std::nullopt},
      {"step 3", std::nullopt},
      {"execute_context_x_generation_1", std::nullopt}};
  for (const auto& [label, step] : expected) EXPECT_EQ(serving_step_of(label), step) << label;
}

// Which steps there are: p prefill, d decode, m both. Each is two layers, and a sampling kernel
// that is launched behind the mark.
struct Served {
  std::string steps, prefill, decode, mixed;

  [[nodiscard]] std::string name(std::size_t i) const {
    const std::string& form = steps[i] == 'p' ? prefill : steps[i] == 'd' ? decode : mixed;
    return fmt::format(fmt::runtime(form), i);
  }
};

constexpr int step_us = 1000, marked_us = 500, gpu_behind_us = 700, kernels = 3;

enum class Marks { host, device, both };

std::string kineto_of(const Served& served, Marks marks) {
  std::vector<std::string> events;
  for (std::size_t i = 0; i < served.steps.size(); ++i) {
    const auto at = static_cast<int>(i) * step_us + 1000;
    const auto mark = [&](const char* category, int tid, int ts, int length) {
      events.push_back(fmt::format(
          R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 9, "tid": {}, "ts": {}, "dur": {}}})",
          category, served.name(i), tid, ts, length));
    };
    if (marks != Marks::device) mark("user_annotation", 9, at, marked_us);
    if (marks != Marks::host) {
      mark("gpu_user_annotation", 7, at + gpu_behind_us, 300);
      mark("gpu_user_annotation", 8, at + gpu_behind_us + 50, 200);  // of another stream
    }
    for (int k = 0; k < kernels; ++k) {
      const int call = at + 100 + 200 * k;  // the last one behind the mark
      const auto id = static_cast<int>(i) * kernels + k + 1;
      events.push_back(fmt::format(
          R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": {},
            "dur": 4, "args": {{"correlation": {}}}}})",
          call, id));
      events.push_back(fmt::format(
          R"({{"ph": "X", "cat": "kernel", "name": "k{}", "pid": 0, "tid": 7, "ts": {}, "dur": 90,
            "args": {{"device": 0, "stream": 7, "correlation": {}}}}})",
          k, at + gpu_behind_us + 100 * k, id));
    }
  }
  return fmt::format(R"({{"traceEvents": [{}]}})", fmt::join(events, ",\n"));
}

const std::vector<Served> dialects{
    {"pdddmdddp", "execute_context_1(512)_generation_0(0)", "execute_context_0(0)_generation_4(4)",
     "execute_context_1(256)_generation_3(3)"},
    {"pdddmdddp", "step[EXTEND bs=1 toks=512]", "step[DECODE bs=4]", "step[MIXED bs=4]"},
    {"pdddmdddp", "[Executor] _forward_step {}: 1 ctx reqs, 512 ctx tokens, 0 gen reqs",
     "[Executor] _forward_step {}: 0 ctx reqs, 0 ctx tokens, 4 gen reqs",
     "[Executor] _forward_step {}: 1 ctx reqs, 256 ctx tokens, 3 gen reqs"}};

class ServingFile : public FileTest {};

TEST_F(ServingFile, HasTheLongestRowOfStepsOfAPhase) {
  for (const Served& served : dialects) {
    for (const Marks marks : {Marks::host, Marks::device, Marks::both}) {
      const auto path = file("k.json", kineto_of(served, marks));
      const Capture all = import_capture(path);
      ASSERT_EQ(all.steps.size(), served.steps.size()) << served.name(0);
      const Capture decode = import_capture(path, {.partial = false, .phase = "decode"});
      ASSERT_EQ(decode.steps.size(), 3U);
      EXPECT_EQ(decode.steps.front().name, served.name(5));  // the last of two rows of three
      ASSERT_EQ(decode.launches.size(), 3U * kernels);
      ASSERT_EQ(decode.calls.size(), 3U * kernels);
      for (std::size_t i = 0; i < decode.launches.size(); ++i) {
        const CapturedLaunch& launch = decode.launches[i];
        EXPECT_EQ(launch.step, i / kernels);  // what is sampled behind a mark is of its step
        EXPECT_EQ(launch.launch_ns, decode.calls[launch.call.value()].start_ns);
        EXPECT_EQ(launch.start_ns, all.launches[5 * kernels + i].start_ns);
      }
      ASSERT_EQ(decode.left_out.size(), 1U);
      EXPECT_NE(decode.left_out[0].find("3 of 6 steps of decode, in a row"), std::string::npos)
          << decode.left_out[0];
      const Capture prefill = import_capture(path, {.partial = false, .phase = "prefill"});
      EXPECT_EQ(prefill.steps.size(), 1U);
      EXPECT_TRUE(odd_steps(all).empty());  // the last one has a mark alone
      EXPECT_EQ(prefill.launches.front().start_ns, all.launches[8 * kernels].start_ns);
      EXPECT_NE(
          prefill.left_out[0].find("1 of 3 steps of prefill (1 of them with next tokens too)"),
          std::string::npos);
    }
  }
}

TEST_F(ServingFile, ThatDoesNotTellPhasesIsRefused) {
  const Served silent{"pdd", "gpu_model_runner: forward", "gpu_model_runner: forward", ""};
  const auto path = file("n.json", kineto_of(silent, Marks::both));
  EXPECT_TRUE(import_capture(path).steps.empty());
  expect_error<DataError>(
      [&] { (void)import_capture(path, {.partial = false, .phase = "decode"}); },
      "does not tell prefill from decode", "execute_context_");
  Served prompts = dialects[1];
  prompts.steps = "pp";
  const auto only = file("p.json", kineto_of(prompts, Marks::both));
  expect_error<DataError>(
      [&] { (void)import_capture(only, {.partial = false, .phase = "decode"}); },
      "none of its 2 steps of a server is decode");
}

// Two workers of one server: each marks its own steps, in ranges of NVTX.
TEST_F(ServingFile, OfNsightHasTheStepsOfEachProcess) {
  const auto path = folder_ / "n.sqlite";
  {
    SqlConnection made(path, SqlConnection::Mode::create);
    made.execute(R"(
      CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
      INSERT INTO StringIds VALUES (1, 'void k<1>(P)'), (2, 'k'), (3, 'launch');
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid,
        demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ);
      CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
      CREATE TABLE NVTX_EVENTS (start, end, eventType, text, textId, globalTid);)");
    const std::string steps = "pddd";
    for (int process = 0; process < 2; ++process) {
      const int pid = (process + 1) << 24, late = 100 * process;  // a worker is behind the other
      for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
        const int at = 10'000 * (i + 1) + late;
        made.execute(fmt::format(
            "INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', NULL, {});"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, 3);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, 7, {}, {}, 1, 2, 4, 1, 1, "
            "128, 1, 1);",
            at, at + 5000,
            steps.at(static_cast<std::size_t>(i)) == 'p' ? "step[EXTEND bs=1 toks=9]"
                                                         : "step[DECODE bs=4]",
            pid + 1, at + 10, at + 20, pid + 1, i + 1, at + 6000, at + 7000, process, i + 1, pid));
      }
    }
  }
  const Capture all = import_capture(path);
  EXPECT_EQ(all.steps.size(), 4U);
  const Capture decode = import_capture(path, {.partial = false, .phase = "decode"});
  EXPECT_EQ(decode.steps.size(), 3U);
  ASSERT_EQ(decode.launches.size(), 6U);
  for (std::size_t i = 0; i < decode.launches.size(); ++i)
    EXPECT_EQ(decode.launches[i].step, i / 2);
}

}  // namespace
}  // namespace rubato
