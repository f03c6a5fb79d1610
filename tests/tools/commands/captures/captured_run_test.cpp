// A captured run as a user replays and plans it, with a power log beside it.

#include <array>
#include <cstdio>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "tests/captures.hpp"
#include "tests/text.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

const std::string replay =
    "replay run.json --gpu a100-sxm4-80gb --power smi.csv --clocks 1593/705 --db r.db --page "
    "r.html --timeline p.json";
const std::string explore = "explore run.json --slack 5 --per run";

// Two kernels with gaps of the host between, captured (run.json); a log of the same seconds in
// local time (smi.csv).
class CapturedRun : public ProgramRun {
 protected:
  void SetUp() override {
    write_trace();
    write_log();
  }

  [[nodiscard]] nlohmann::json json_of(const std::string& command) const {
    return nlohmann::json::parse(run(command + " --json 2>/dev/null | cat").text);
  }

  // The run as if another GPU had been captured.
  [[nodiscard]] std::string renamed(const std::string& gpu) const {
    write_file(folder_ / "other.json", replaced(trace_, "NVIDIA A100-SXM4-80GB", gpu));
    return "replay other.json";
  }

  std::vector<std::pair<int, int>> busy_ms_;

 private:
  void write_trace() {
    std::ostringstream trace;
    trace << R"({"schemaVersion": 1, "baseTimeNanoseconds": 1716398122000000000,
 "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}], "traceEvents": [)";
    for (int i = 0, now_ms = 0; i < 24; ++i) {
      const int length_ms = 60 + 37 * (i * i % 7);
      trace << (i > 0 ? "," : "") << R"({"ph": "X", "cat": "kernel", "name": ")"
            << (i % 2 == 0 ? "ampere_sgemm_128x64" : "vectorized_elementwise_kernel")
            << R"(", "pid": 0, "tid": 7, "ts": )" << now_ms * 1000 << R"(, "dur": )"
            << length_ms * 1000 << R"(, "args": {"device": 0, "stream": 7, "correlation": )"
            << i + 1 << "}}";
      busy_ms_.emplace_back(now_ms, now_ms + length_ms);
      now_ms += length_ms + 40 + 61 * (i * 3 % 5);
    }
    trace << "]}";
    trace_ = trace.str();
    write_file(folder_ / "run.json", trace_);
  }

  void write_log() const {
    std::ostringstream log;
    log << "timestamp, index, power.draw.instant [W], clocks.current.sm [MHz], "
           "clocks.current.memory [MHz]\n";
    for (int ms = -100; ms < busy_ms_.back().second + 100; ms += 20) {
      bool busy = false;
      for (const auto& [from, to] : busy_ms_) busy = busy || (ms >= from && ms < to);
      // 17:15:22 UTC, logged two hours ahead and 0.3 s late.
      const int at_ms = 22'000 + ms + 300;
      std::array<char, 128> line{};
      std::snprintf(line.data(), line.size(), "2024/05/22 19:15:%02d.%03d, 0, %d, 1110, 1593\n",
                    at_ms / 1000, at_ms % 1000, busy ? 300 : 90);
      log << line.data();
    }
    write_file(folder_ / "smi.csv", log.str());
  }

  std::string trace_;
};

TEST_F(CapturedRun, IsReplayedBesideAPowerLog) {
  expect(replay, 0, "taken as UTC+2");
  const auto json = json_of(replay);
  EXPECT_EQ(json["runs"][0]["clock"], "1593/1110");  // from the log
  EXPECT_NEAR(json["power"][0]["shift_s"].get<double>(), -0.3, 0.11);
  EXPECT_NEAR(json["runs"][1]["error_pct"].get<double>(), 0.0, 1e-3);
  EXPECT_GT(json["runs"][3]["time_ms"].get<double>(), json["runs"][1]["time_ms"].get<double>());
  double busy_s = 0.0;
  for (const auto& [from, to] : busy_ms_) busy_s += 1e-3 * (to - from);
  const double all_s = 1e-3 * busy_ms_.back().second;
  EXPECT_NEAR(
      json["runs"][0]["energy_j"].get<double>() / (300.0 * busy_s + 90.0 * (all_s - busy_s)), 1.0,
      0.05);
  EXPECT_NE(read_file(folder_ / "r.html").find("correlation"), std::string::npos);
  // People read seconds of what takes seconds.
  const std::string text = run(replay).text;
  EXPECT_NE(text.find(fmt::format("it took {:.4g} s: ", all_s)), std::string::npos) << text;
  EXPECT_NE(text.find("time s  over captured %"), std::string::npos) << text;
  EXPECT_FALSE(nlohmann::json::parse(read_file(folder_ / "p.json"))["traceEvents"].empty());
}

TEST_F(CapturedRun, IsOfTheGpuItNames) {
  expect("replay run.json --captured-clock 1593/1110", 0,
         "note: GPU model a100-sxm4-80gb, by the name of the device: NVIDIA A100-SXM4-80GB");
  expect(renamed("NVIDIA B100"), 2, "no shipped spec is of its GPU, NVIDIA B100");
  expect(renamed("NVIDIA B100"), 2, "those of the nearest chips are listed, the nearest first");
  expect(renamed("AMD Instinct MI250X"), 2, "no spec of it is shipped");
  expect(renamed("Tesla V100-SXM3-32GB"), 0, "GPU model v100-sxm2: none is shipped for");
  expect(
      renamed("NVIDIA GeForce RTX 3080 Ti"), 0,
      "GPU model rtx-3080-ti, by the name of the device: NVIDIA GeForce RTX 3080 Ti; --gpu takes "
      "rtx-3080-ti-2 or rtx-3080-ti-without-table1 instead");
  expect(renamed(""), 2, "it does not say on which GPU it was captured");
  expect(renamed("x\"}, {\"id\": 1, \"name\": \"y"), 2, "no shipped spec is of its GPU, x");
}

// On the GPU and at the clocks of the capture.
TEST_F(CapturedRun, IsPlannedAtOnce) {
  expect(explore, 0, "run.json, 1 GPU, on NVIDIA A100-SXM4-80GB, ");
  expect(explore, 0, "note: GPU model a100-sxm4-80gb, by the name of the device");
  expect(explore + " --wide", 0, "at 1593/auto (clocks not recorded, the default is assumed");
  expect(explore + " --wide --power smi.csv", 0, "at 1593/1110 (power log)");
  expect(explore + " --wide --captured-clock 1593/705", 0, "at 1593/705 (given)");
  expect(explore + " --captured-clock fast", 2, "'fast' is no captured clock");
  expect(explore, 0, "100.0 % anchored");
  expect(explore + " --gpu h100-sxm5", 0, "but the GPU model is that of NVIDIA H100-SXM5-80GB");
  const auto planned = json_of(explore);
  EXPECT_EQ(planned["run"][0]["captured_clock_source"], "default");
  EXPECT_NEAR(planned["run"][0]["reproduced_s"], planned["run"][0]["captured_s"], 1e-9);
  EXPECT_EQ(planned["run"][0]["kind"], "capture");
  ASSERT_EQ(planned["plans"].size(), 2U);  // the default clocks first
  EXPECT_LT(planned["plans"][1]["energy_change_pct"], 0.0);
  EXPECT_LE(planned["plans"][1]["time_change_pct"], 5.0);
  // What is named is of the least slack, and none is set for nothing.
  expect("explore --slack 20,5 run.json --per run", 0, " odds of at most 5 % more time)");
  expect("explore run.json --slack -60 --per run", 1, "nothing: no plan is in time");
}

TEST_F(CapturedRun, HasPlansForEveryGoal) {
  const std::string asked = "explore run.json --per run,kernel --goal ";
  const nlohmann::json planned = json_of(asked + "edp,energy,time --slack any --budget 1000W");
  ASSERT_EQ(planned["plans"].size(), 7U);
  std::set<std::string> goals;
  for (const nlohmann::json& plan : planned["plans"]) goals.insert(plan["goal"]);
  EXPECT_EQ(goals, (std::set<std::string>{"default", "edp", "least_energy", "least_time"}));
  expect(asked + "edp --wide", 0, "(least energy x time)");
  expect(asked + "time --budget 1W", 1, "nothing: no plan keeps within the time or budget");
  expect(asked + "time", 2, "goal 'time' needs --budget");
}

TEST_F(CapturedRun, SaysWhichPrioritiesItsStreamsHad) {
  const std::string text = run(explore).text;
  EXPECT_EQ(text.find("priorities"), std::string::npos) << text;
  write_file(folder_ / "urgent.json", replaced(read_file(folder_ / "run.json"), "\"stream\": 7,",
                                               "\"stream\": 7, \"priority\": -5,"));
  expect(
      "explore urgent.json --per run", 0,
      "note: priorities of streams, as captured: -5 of 1 (the lower, the more urgent; not used)");
}

// Stages whose clocks begin anew in each step are of one run: only the GPU is missing.
TEST_F(CapturedRun, SaysWhatIsWrongWithRanksBeforeThatTheirGpuIsMissing) {
  const std::string ranks = (captured("multirank/primus_pp8") / "pp_rank_?.json.gz").string();
  expect("explore '" + ranks + "'", 2, "does not say on which GPU it was captured");
  const std::string sampled =
      (captured("multirank/hta_sampled_2of128_negative") / "*.json.gz").string();
  expect("explore '" + sampled + "'", 3, "does not match");
}

TEST_F(CapturedRun, IsPlannedWithWhatChangesOfClockTake) {
  const std::string automatic = "explore run.json --slack 5 --per kernel,segment --wide";
  expect(automatic + " --switching stall=10us --db auto.db", 0,
         "a switch takes 10 us (10 us of it a");
  expect(automatic + " --switching free", 0, "switches are free, as asked for");
  expect(automatic + " --gpu h100-sxm5", 0, "a switch takes 6 ms (a guess: measured");
  expect(automatic + " --gpu rtx-5090", 0, "a switch takes 22 ms (a guess: nobody measured");
  expect(automatic + " --gpu rtx-5090 --switching latency=8ms", 0, "a switch takes 8 ms\n");
  expect(automatic + " --switching latency=-5ms", 2, "latency is '-5ms'; expected a number");
  expect(explore + " --switching latency=10us,stall=20us", 2, "part of the latency");
  expect("explore 'nothing*.json'", 2, "no file is named like 'nothing*.json'");
}

TEST_F(CapturedRun, IsTheSameInRubatosOwnForm) {
  expect("trace import run.json --capture own.json.gz", 0, "run.json, Kineto: 2 distinct");
  const auto json = json_of(replay), own = json_of(replaced(replay, "run.json", "own.json.gz"));
  for (const char* table : {"runs", "coverage", "classes", "steps", "kernels"})
    EXPECT_EQ(own[table], json[table]) << table;
  expect("trace import own.json.gz", 0, "Rubato capture: 2 distinct kernel names");
  EXPECT_EQ(replaced(run("trace import own.json.gz --json").text, "Rubato capture", "Kineto"),
            run("trace import run.json --json").text);
}

// Its GPU waits half of the time, for a host that the profiler has slowed down.
TEST_F(CapturedRun, SaysThatTheProfilerSlowsTheHost) {
  expect(explore, 0, "and the profiler slows down the host that it waits for");
}

// A log of more watts than the board can draw is of another GPU: plans are those without it.
TEST_F(CapturedRun, IsNotPlannedByWattsBeyondTheLimit) {
  write_file(folder_ / "high.csv", "unix,power\n1,900\n2,900\n3,900\n");
  const std::string with = explore + " --captured-clock 1593/1410 --power high.csv";
  expect(with, 0, "beyond the limit of 400 W");
  expect(with, 0, "watts are not used");
  EXPECT_EQ(json_of(with)["plans"], json_of(explore + " --captured-clock 1593/1410")["plans"]);
}

// Whatever reads a capture says what the reader left out of it.
TEST_F(CapturedRun, SaysWhatWasLeftOut) {
  expect("trace import run.json --capture own.json", 0, "");
  const std::string line = "7 records without a meaning";
  const std::string own = read_file(folder_ / "own.json");
  write_file(folder_ / "own.json",
             replaced(own, R"("left_out": [])", R"("left_out": [")" + line + R"("])"));
  for (const char* command :
       {"explore own.json --per run --slack 0", "suggest own.json", "replay own.json",
        "trace import own.json", "calibrate --captures own.json@1593/1410 -o x.json",
        "network capture own.json --cluster dgx-a100",
        "explore run.json --per run --slack 0 --captured-clock 1593/1410 --also "
        "own.json@1593/1200"}) {
    EXPECT_NE(run(command).text.find(line), std::string::npos) << command;
  }
}

TEST_F(CapturedRun, RefusesWhatItDoesNotHold) {
  expect("replay run.json --gpu a100-sxm4-80gb --step 9", 2, "there is no step '9'");
  expect("replay run.json --gpu a100-sxm4-80gb --device 3", 2, "--device is 3");
  expect("replay gpt3-xl", 3, "has no measured_time_s");
  expect("replay missing.json", 4, "missing.json: cannot open");
}

}  // namespace
}  // namespace rubato
