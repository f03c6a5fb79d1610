// Plans as a user asks for, keeps and sees them.

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "tests/paths.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

TEST_F(ProgramRun, ASavingWithinALimitThatNothingEnforcesSaysSo) {
  expect("explore gpt3-xl --gpu a40 --power-limit 100 --db r.db", 0, "limit not reached: 100 %");
  expect(
      "query --db r.db --csv \"SELECT count(*), sum(caveats LIKE '%limit not reached%') FROM "
      "v_plans\"",
      0, "4,4");
}

TEST_F(ProgramRun, WhatIsLeftOnceChangesAreCountedIsShownOnNarrowTerminals) {
  ::setenv("COLUMNS", "100", 1);
  expect("explore gpt3-xl --gpu rtx-3080-ti", 0, "cannot be set\n");
  expect("explore gpt3-xl --gpu rtx-3080-ti", 0, "if changes of clock were free; with what they");
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
  expect("explore t.json --granularity segment --switching stall=1ms --odds 0 --db r.db", 0,
         "\nsegment ");
  expect(
      "explore t.json --granularity segment --switching latency=100ms,dwell=10us --list segments",
      0, "clock mem/core");
  expect("explore t.json --granularity segment --list segments --csv --switching mem.stall=5ms", 0,
         "goal,slack_pct,first_kernel,last_kernel,repeats");
  expect("explore --switching latency=10us,stall=20us", 2,
         "stall is 20 us and latency is 10 us; the stall is part of the latency");
  expect("explore --switching dwell=-1ms", 2, "dwell is '-1ms'; expected a number from 0 to");
  expect("explore t.json --granularity segment --switching spec", 0, "changes/s");
  expect("explore t.json --gpu h200-sxm5 --switching spec --granularity segment", 0, "changes/s");
  expect("explore --granularity segment --goal edp", 2,
         "granularity 'segment' plans for goal 'strict_waste'");
  expect("sweep-latency t.json --latencies-us 1000", 0, "Ascend NPU");
  expect("sweep-latency t.json --latencies-us -1", 2, "--latencies-us is -1; expected numbers > 0");
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
                              "' --captured-clock 1593/1410 --slack 5 --granularity ";
  const Outcome late = run(explore + "launch");
  EXPECT_EQ(late.status, 0) << late.text;
  EXPECT_NE(late.text.find("nothing: keep the default clocks; "), std::string::npos) << late.text;
  EXPECT_EQ(late.text.find("rubato apply plan.json"), std::string::npos) << late.text;
  expect(explore + "pass", 0, "rubato apply plan.json");
}

TEST_F(ProgramRun, JsonIsForPrograms) {
  const auto found = nlohmann::json::parse(
      run("explore --granularity kernel --goal energy,edp --list kernels --json").text);
  EXPECT_EQ(found["kernels"].size(), 2U * 46U);
  const auto& plans = found["plans"];
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0]["goal"], "default");
  EXPECT_LT(plans[1]["energy_change_pct"].get<double>(), -10.0);
}

}  // namespace
}  // namespace rubato
