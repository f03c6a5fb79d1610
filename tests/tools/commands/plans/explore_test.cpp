// Plans as a user asks for, keeps and sees them.

#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "tests/paths.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

TEST_F(ProgramRun, ASavingWithinALimitThatNothingEnforcesSaysSo) {
  expect("explore gpt3-xl --gpu a40 --power-limit 100 --db r.db", 0, "limit not reached: 52 %");
  expect(
      "query --db r.db --csv \"SELECT count(*), sum(caveats LIKE '%limit not reached%') FROM "
      "v_plans\"",
      0, "4,4");
}

TEST_F(ProgramRun, WhatIsLeftOnceChangesAreCountedIsShownOnNarrowTerminals) {
  ::setenv("COLUMNS", "100", 1);
  expect("explore gpt3-xl --gpu rtx-3080-ti", 0, "cannot be set\n");
  expect("explore gpt3-xl --gpu rtx-3080-ti", 0, "if switches were free; with");
  ::unsetenv("COLUMNS");
}

TEST_F(ProgramRun, FollowsARunFromTraceToReport) {
  expect("trace gen gpt3-xl --batch 8 --tp 2 -o t.json", 0, "");
  expect("trace show t.json", 0, "24 x layer forward");
  expect("trace convert t.json t.csv", 0, "");
  expect("explore t.csv --db r.db --timeline timeline.json --list kernels", 0,
         "stored as run 1 in r.db");
  expect("explore t.json --db r.db", 0, "stored as run 2 in r.db");
  expect("query --db r.db 'SELECT count(*) AS n FROM runs' --csv", 0, "n\n2\n");
  expect("query --db r.db 'DELETE FROM runs'", 2, "queries can only read");
  expect("compare --db r.db 1 2", 0, "strict_waste");
  expect("compare --db r.db 1 3", 2, "there is no run 3");
  expect("explore t.json --power-limit 250 --db r.db", 0, "stored as run 3");
  expect("compare --db r.db 1 3", 1, "strict_waste");
  expect("explore t.json --per segment --switching stall=1ms --odds 0 --db r.db", 0, "\nsegment ");
  expect("explore t.json --per segment --switching latency=100ms,dwell=10us --list segments", 0,
         "clock mem/core");
  expect("explore t.json --per segment --list segments --csv --switching mem.stall=5ms", 0,
         "granularity,aggregation,goal,slack_pct,gpu_label,");
  expect("explore --switching latency=10us,stall=20us", 2,
         "stall is 20 us and latency is 10 us; the stall is part of the latency");
  expect("explore --switching dwell=-1ms", 2, "dwell is '-1ms'; expected a number from 0 to");
  expect("explore t.json --per segment --switching spec", 0, "switches/s");
  expect("explore t.json --gpu h200-sxm5 --switching spec --per segment", 0, "switches/s");
  expect("explore --per segment --goal edp", 2,
         "granularity 'segment' plans for goal 'strict_waste'");
  expect("latency-scan t.json --latencies-us 1000", 0, "Ascend NPU");
  expect("latency-scan t.json --latencies-us -1", 2, "--latencies-us is -1; expected numbers > 0");
  expect("transfer t.json --db r.db --batches 1,40 --tp 1,2", 0, "gpt3-xl-b40-s1024-tp2-dp1");
  expect("transfer --db r.db", 2, "no trace to apply the plan to");
  expect("export cells --db r.db --run 1", 0, "kernel,clock,time_s,energy_j");
  expect("export cell --db r.db", 2, "there is no part 'cell'; did you mean 'cells'?");
  expect("report --db r.db -o r.html", 0, "wrote r.html (run 4)");
  EXPECT_TRUE(nlohmann::json::parse(read_file(folder_ / "timeline.json")).contains("traceEvents"));
}

TEST_F(ProgramRun, PlansThatAreLateAsPlayedAreNotToBeSet) {
  const std::string explore = "explore '" +
                              (source_dir() / "docs/examples/run.pt.trace.json.gz").string() +
                              "' --captured-clock 1593/1410 --slack 5 --per ";
  const Outcome late = run(explore + "kernel");
  EXPECT_EQ(late.status, 1) << late.text;
  EXPECT_NE(late.text.find("nothing: keep the default clocks; "), std::string::npos) << late.text;
  EXPECT_EQ(late.text.find("rubato apply plan.json"), std::string::npos) << late.text;
  expect(explore + "segment", 0, "rubato apply plan.json");
}

// Kernels of a capture follow the table that measured them: as slow as it says at another clock,
// and no slower where it says that the clock changes nothing.
TEST_F(ProgramRun, ACaptureTakesWhatATableMeasuredOfItsKernels) {
  const std::string capture = (source_dir() / "docs/examples/run.pt.trace.json.gz").string(),
                    explore = "explore '" + capture +
                              "' --captured-clock 1593/1410 --odds 0 --slack 50 --per run --clocks "
                              "'mem=1593 core=1005,1410' --quiet --json --list kernels";
  const auto modelled = nlohmann::json::parse(run(explore).text);
  for (const bool follows : {false, true}) {
    std::string table = "kernel,mem_mhz,core_mhz,time_s,power_w\n";
    for (const auto& row : modelled["kernels"]) {
      for (const int mhz : {1410, 1305, 1200, 1110, 1005})
        table += fmt::format("\"{}\",1593,{},{},{}\n", row["kernel"].get<std::string>(), mhz,
                             follows ? 1e-3 * 1410 / mhz : 1e-3, 80 + 250 * (mhz / 1410.0));
    }
    write_file(folder_ / "t.csv", table);
    const auto measured = nlohmann::json::parse(run(explore + " --table t.csv").text);
    EXPECT_GT(measured["run"][0]["measured_pct"], 95.0);
    const auto& plan = measured["plans"][1];
    ASSERT_EQ(plan["clocks"], "1593/1005");
    // Kernels take 87 % of the time, and hosts may run ahead in the rest.
    const double most = 0.87 * 100.0 * (1410.0 / 1005 - 1.0);
    EXPECT_GT(plan["time_change_pct"].get<double>(), follows ? 0.7 * most : -0.1);
    EXPECT_LT(plan["time_change_pct"].get<double>(), follows ? most : 0.05 * most);
  }
  write_file(folder_ / "t.csv",
             "kernel,mem_mhz,core_mhz,time_s,power_w\nother,1593,1410,1e-3,300\n");
  expect(explore + " --table t.csv", 3, "kernels was measured");
}

// One rule for all kinds of runs: status 0 where a plan keeps its time as applied, else 1.
TEST_F(ProgramRun, AStatusSaysWhetherAPlanIsInTimeAsApplied) {
  int late = 0, in_time = 0;
  for (const std::string& work :
       {std::string("gpt3-xl"),
        "'" + (source_dir() / "docs/examples/run.pt.trace.json.gz").string() + "'",
        std::string("gpt3-xl --stages 2 --microbatches 2")}) {
    for (const char* per : {"run", "kernel"}) {
      for (const char* slack : {"0", "-40"}) {
        const Outcome found =
            run("explore " + work + " --odds 0 --json --per " + per + " --slack " + slack);
        const auto plans = nlohmann::json::parse(found.text.substr(found.text.find('{')))["plans"];
        ASSERT_EQ(plans.size(), 2U) << found.text;
        const bool holds = plans[1]["in_time"] == true;
        EXPECT_EQ(found.status, holds ? 0 : 1) << work << " per " << per << ", " << slack;
        ++(holds ? in_time : late);
      }
    }
  }
  EXPECT_GE(late, 4);
  EXPECT_GE(in_time, 3);
  expect("explore gpt3-xl --per kernel", 1, "as applied, every plan is late");
}

TEST_F(ProgramRun, JsonIsForPrograms) {
  const auto found = nlohmann::json::parse(
      run("explore --per kernel --goal energy,edp --list kernels --json").text);
  EXPECT_EQ(found["kernels"].size(), 2U * 46U);
  const auto& plans = found["plans"];
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0]["goal"], "default");
  EXPECT_LT(plans[1]["energy_change_pct"].get<double>(), -10.0);
}

}  // namespace
}  // namespace rubato
