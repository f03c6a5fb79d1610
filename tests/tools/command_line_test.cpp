// The program as a user runs it: output, messages and exit statuses.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "explorer/results/store.hpp"
#include "models/gpu/spec.hpp"
#include "tests/paths.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

TEST_F(ProgramRun, HelpsAndCorrects) {
  expect("--version", 0, "rubato 0.1.0");
  expect("--help", 0, "reproduce");
  expect("explore --help", 0, "--power-limit");
  expect("", 2, "see 'rubato --help'");
  expect("explor", 2, "unknown word 'explor'; did you mean 'explore'?");
  expect("explore --slak 2", 2, "unknown option '--slak'; did you mean '--slack'?");
  expect("explore --goal strict_wast", 2,
         "--goal 'strict_wast' is not known; did you mean 'strict_waste'?");
  expect("explore --slack -100", 2, "--slack is -100; expected a number above -100");
  expect("explore --slack -1", 0, "time -1.00 %");
  expect("explore --slack -90", 1, "infeasible");
  expect("explore --slack -90 --granularity auto --switch-stall-us 10", 1, "infeasible");
  expect("explore --goal time", 2, "needs either --energy-budget or --power-budget");
  expect("explore --csv --per-pass --per-kernel", 2, "--csv holds one table");
  expect("explore --gpu rtx-3080", 2, "there is no GPU spec 'rtx-3080'");
  expect("explore --clocks mem=5001,auto", 2, "expected both mem=... and core=...");
  expect("completion bash", 0, "-F _rubato rubato");
  expect("completion tcsh", 2, "no completion for shell 'tcsh'");
  expect("man explore", 0, "\\fB\\-\\-slack\\fR \\fIFLOAT\\fR...\n");
  expect("man exlpore", 2, "no command 'exlpore'; did you mean 'explore'?");
}

TEST_F(ProgramRun, MakesStepsOfModelsFromTheirShapes) {
  expect("trace gen --model llama3-8b --batch 1 --seq 2048 -o l.json", 0,
         "8.03 B parameters; each GPU holds 138.2 GB: 16.1 GB of weights, 16.1 GB of gradients, "
         "96.4 GB of optimizer state, 9.7 GB of activations");
  expect("explore l.json --gpu a100-sxm4-80gb", 0, "optimizer state and activations are 138 GB");
  expect("trace gen gpt3-small --kernels fused --recompute full --seq 256", 0, "full: 193.4 GFLOP");
  std::ofstream(folder_ / "mine.json") << R"({"schema": 1, "name": "mine"})";
  expect("trace gen mine.json", 3, "mine.json: key 'source' is missing");
  expect("trace gen llama3-8b --kernels llm.c", 2, "model 'llama3-8b' is not a GPT");
  expect("trace gen llama3-8b --hidden 64", 2, "--hidden is for GPT models");
  expect("trace gen gpt3-xl --recompute full", 2, "--recompute is for --kernels fused");
  expect("trace gen gpt3-xl --seq 4096", 2, "model 'gpt3-xl' has a context of 2048 tokens");
}

TEST_F(ProgramRun, ExitStatusTellsWhatIsWrong) {
  std::ofstream(folder_ / "bad.json") << "{\"schema\": 1";
  expect("trace show bad.json", 3, "error: bad.json:1:13: not valid JSON");
  expect("trace show missing.json", 4, "missing.json: cannot open");
  expect("query --db missing.db 'SELECT 1'", 4, "cannot open the database");
  std::ofstream(folder_ / "text.db") << std::string(8192, 'x');
  expect("explore --db text.db", 4, "not an SQLite database");
  expect("explore --goal time --energy-budget 1 --granularity kernel", 1, "infeasible");
}

// Whenever Ctrl-C comes, in the fit or in its validation, no half of a fit is left.
TEST_F(ProgramRun, AnInterruptedCalibrationWritesNothing) {
  const std::string sweep = source_dir() / "models/data/measured/rtx4050laptop_kernels/kernels.csv";
  for (const char* seconds : {"0.2", "1", "3"}) {
    const Outcome outcome =
        run("calibrate '" + sweep + "' --gpu rtx-4050-laptop -o spec.json",
            std::string("timeout --preserve-status -s INT --foreground ") + seconds);
    EXPECT_EQ(outcome.status, 130) << "after " << seconds << " s:\n" << outcome.text;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "spec.json")) << seconds << outcome.text;
  }
}

TEST_F(ProgramRun, ValidatesPowersOfUnitsIntoDatabaseAndPage) {
  std::ofstream(folder_ / "units.csv") << "kernel,core_mhz,mem_mhz,power_w,u_sp,u_dram\n"
                                          "a,1164,3505,150,0.5,0.2\na,975,3505,130,0.5,0.2\n"
                                          "b,1164,3505,180,0.2,0.8\n";
  expect("validate units.csv --gpu gtx-titan-x --db v.db --page v.html", 0, "power");
  expect("query --db v.db 'SELECT count(*) AS n FROM validation_points' --csv", 0, "n\n3\n");
  EXPECT_NE(read_file(folder_ / "v.html").find("units.csv"), std::string::npos);
}

TEST_F(ProgramRun, SaysWhichKernelsTheSpecDoesNotKnow) {
  const std::string known = load_gpu_spec("v100-sxm2").kernels.front().name;
  std::ofstream(folder_ / "s.csv")
      << "kernel,core_mhz,time_s,power_w\nmine,1530,1,200\n" + known + ",1530,1,200\n";
  expect("validate s.csv --gpu v100-sxm2 --known", 0,
         "note: 1 of 2 kernels are not in v100-sxm2 and were left out: 'mine'");
}

TEST_F(ProgramRun, ValidatesEachPointWithItsInterval) {
  const std::string table = (source_dir() / "docs/examples/a100-sweep.csv").string();
  const std::string validate = "validate '" + table + "' --gpu a100-sxm4-80gb";
  expect(validate + " --each-point --csv", 0,
         "kernel,mem,core_mhz,power_cap_w,time_s,predicted_time_s,time_low_s,time_high_s,energy_j,"
         "predicted_energy_j,energy_low_j,energy_high_j\n");
  expect(validate + " --each-point --intervals", 2, "--each-point does nothing with --intervals");
}

TEST_F(ProgramRun, ASavingWithinALimitThatNothingEnforcesSaysSo) {
  expect("explore gpt3-xl --gpu a40 --power-limit 100 --db r.db", 0, "limit not reached: 100 %");
  expect(
      "query --db r.db --csv \"SELECT count(*), sum(notes LIKE '%limit not reached%') FROM "
      "v_plans\"",
      0, "4,4");
}

TEST_F(ProgramRun, ComparesModelsAndPlansWithThem) {
  const std::string table = (source_dir() / "docs/examples/a100-sweep.csv").string();
  const std::string validate = "validate '" + table + "' --gpu a100-sxm4-80gb";
  expect(validate + " --model measured,linear --slack 0,5 --db m.db --page m.html", 0,
         "stored linear as validation 2");
  EXPECT_NE(read_file(folder_.path() / "m.html").find("Energy, linear"), std::string::npos);
  // Three kinds of plans at two slacks, of each model; planning on what was measured costs nothing.
  expect(
      "query --db m.db --csv \"SELECT model, count(*), max(regret_pct) < 1e-9, max(late) FROM "
      "validations JOIN validation_regrets USING (validation_id) GROUP BY model ORDER BY model\"",
      0, "measured,6,1,0");
  expect(
      "query --db m.db --csv \"SELECT count(*), min(regret_pct) > -1e-9 FROM "
      "validation_regrets\"",
      0, "12,1");
  expect(validate + " --known --model linear", 2, "--known");
  expect(validate + " --slack 5", 2, "give --model");
  expect(validate + " --model lineer", 2, "did you mean 'linear'?");
  const std::string explore = "explore --table '" + table + "' --gpu a100-sxm4-80gb --slack 5";
  expect(explore + " --model cmos", 0, "cells are what model 'cmos' says");
  expect(explore + " --model '" + table + "'", 2, "is a table itself; give it or --table");
  expect("explore --model linear", 2, "give them with --table");
  expect("explore gpt3-xl --model '" + table + "' --gpu a100-sxm4-80gb --granularity iteration", 3,
         "46 of 46 kernels of the trace were not measured");
}

TEST_F(ProgramRun, FollowsARunFromTraceToReport) {
  expect("trace gen gpt3-xl --batch 8 --tp 2 -o t.json", 0, "");
  expect("trace show t.json", 0, "24 x layer forward");
  expect("trace convert t.json t.csv", 0, "");
  expect("explore t.csv --db r.db --timeline timeline.json --per-kernel", 0,
         "stored as run 1 in r.db");
  expect("explore t.json --db r.db", 0, "stored as run 2 in r.db");
  expect("query --db r.db 'SELECT count(*) AS n FROM runs' --csv", 0, "n\n2\n");
  expect("query --db r.db 'DELETE FROM runs'", 2, "queries can only read");
  expect("compare --db r.db 1 2", 0, "strict_waste");
  expect("compare --db r.db 1 3", 2, "there is no run 3; the latest is 2");
  expect("explore t.json --power-limit 250 --db r.db", 0, "stored as run 3");
  expect("compare --db r.db 1 3", 1, "strict_waste");
  expect("explore t.json --granularity auto --switch-stall-us 1000 --db r.db", 0,
         "auto         0.");
  expect("explore t.json --granularity auto --switch-latency-us 100000 --switch-dwell-us 10", 0,
         "clock mem/core");
  expect("explore t.json --granularity auto --per-segment --csv --mem-switch-stall-us 5000", 0,
         "goal,slack_pct,first_kernel,last_kernel,repeats");
  expect("explore --switch-latency-us 10 --switch-stall-us 20", 2,
         "--switch-stall-us is 20 and --switch-latency-us is 10; the stall is part of the latency");
  expect("explore --switch-dwell-us -1", 2,
         "--switch-dwell-us is -1; expected a number from 0 to 1e+08");
  expect("explore --switching spec", 2, "nothing is known of changes of clock on rtx-3080-ti");
  expect("explore t.json --gpu h200-sxm5 --switching spec --granularity auto", 0, "changes/s");
  expect("explore --granularity auto --goal edp", 2,
         "granularity 'auto' plans for goal 'strict_waste'");
  expect("sweep-latency t.json --latencies-us 1000", 0, "Ascend NPU");
  expect("sweep-latency t.json --latencies-us -1", 2, "--latencies-us is -1; expected numbers > 0");
  expect("transfer t.json --db r.db --batches 1,40 --tp 1,2", 0, "gpt3-xl-b40-s1024-tp2-dp1");
  expect("transfer --db r.db", 2, "no trace to apply the plan to");
  expect("export cells --db r.db --run 1", 0, "kernel,clock,time_s,energy_j");
  expect("export cell --db r.db", 2, "there is no part 'cell'; did you mean 'cells'?");
  expect("report --db r.db -o r.html", 0, "wrote r.html (run 4)");
  EXPECT_TRUE(nlohmann::json::parse(read_file(folder_ / "timeline.json")).contains("traceEvents"));
}

TEST_F(ProgramRun, MakesStepsOfParallelTraining) {
  const std::string gen = "trace gen gpt3-small --layers 4 --tp 2 --pp 2 --batch 1 -o s.json";
  expect(gen, 2, "--pp is for --graph");
  expect(gen + " --graph --cp 3", 2, "cp 3 does not divide seq 1024");
  expect(gen + " --graph --microbatches 2", 0, "waiting for other stages (means over 2 stages)");
  const std::string explore = "explore --ranks s-stage0.json s-stage1.json --granularity gpu";
  expect(explore + " --straggler 2=1.5", 0, "the default clocks take");
  expect(explore + " --straggler x", 2, "--straggler 'x'; expected RANK=FACTOR");
  expect("trace scale gpt3-small --tp 1,2 --dp 2 --csv", 0, "tp,pp,dp,gpus,step_ms,");
  expect("trace scale gpt3-small --pp 2 --dp 2 --straggler 2=1.1 --no-plans --csv", 0,
         "tp,pp,dp,gpus,step_ms,energy_kj");
  expect("trace scale gpt3-small --pp 2 --dp 2 --throttle 2=1110MHz,0=250W --no-plans --csv", 0,
         "2,2,4");
  expect("trace scale gpt3-small --throttle 0=1110", 2, "expected RANK=CLOCK or RANK=POWER");
  expect("trace scale gpt3-small --throttle 0=20W", 2, "a power limit of 20 W is outside");
  expect("network capture s-stage0.json", 2, "--cluster is required");
  expect("network capture s-stage0.json --cluster hgx-h100 -o mine.json", 0,
         "Inside nodes: 227 GB/s (frame 365)");
  expect("network time mine.json --ranks 2 --bytes 1e6", 0, "simple");
  expect("trace scale gpt3-small --layers 2 --tp 1,8 --no-plans", 0,
         "Left out as impossible: 1, the first because tp 8 does not divide heads 12");
  expect("trace scale gpt3-small --layers 2 --tp 8 --no-plans", 2, "tp 8 does not divide heads 12");
  expect("trace scale gpt3-small --optimizer --no-optimizer", 2, "--no-optimizer is for --kernels");
  expect("trace scale llama3-8b --optimizer --no-optimizer", 2, "exclude each other");
  expect("trace scale gpt3-small --dp 2 --zero 3 --buckets megatron", 2, "no buckets");
  expect("trace scale gpt3-small --tp 4..1", 2, "--tp '4..1'; expected numbers from 1 to");
  expect("trace scale gpt3-small --dp 0", 2, "--dp '0'; expected numbers from 1 to");
  expect("trace scale gpt3-small --dp 2 --no-plans --plot steps.png", 2, "--plot");
  expect("trace scale gpt3-small --top-k 3", 2, "--top-k means nothing without --experts");
  const std::string llama = "trace gen llama3-8b --layers 2 --seq 512 --graph -o l.json";
  expect(llama + " --tp 2 --recompute full --buckets megatron --fp32-gradients", 0,
         "llama3-8b-b1-s512-tp2-dp1-recompute-full-ddp: ");
  expect(llama + " --tp 3", 2, "tp 3 does not divide heads 32");
  expect(llama + " --ep 2 --dp 2", 2, "ep 2: model 'llama3-8b' has no experts");
  expect("trace gen gpt3-small --graph --experts 4 --ep 2 --dp 2 -o e.json", 0, "dp2-ep2-ddp: ");
  expect("trace gen gpt3-small --graph --recompute full", 2, "--recompute is for --kernels fused");
  expect("trace scale llama3-8b --layers 2 --seq 512 --tp 2 --no-plans --csv", 0, "tp,pp,dp,gpus");
}

TEST_F(ProgramRun, QuestionsAboutSweepsSayThatADatabaseIsOlder) {
  expect("trace gen gpt3-xl --batch 8 --tp 2 -o t.json", 0, "");
  expect("explore t.json --db r.db", 0, "stored as run 1");
  open_result_database(folder_ / "r.db").execute("PRAGMA user_version = 11");
  for (const char* command : {"top --db r.db", "report --db r.db --experiment latest -o r.html",
                              "export best --db r.db --experiment latest"})
    expect(command, 4, "the database has schema 11; expected 14");
  expect("show 1 --db r.db", 0, "");
}

TEST_F(ProgramRun, ImportsItsOwnTraces) {
  expect("trace gen gpt3-xl -o t.json", 0, "");
  expect("trace import t.json -o t.csv", 0,
         "Rubato trace (JSON): 14 distinct kernel names, 46 kernels");
  expect("trace import t.csv", 0, "24 x layer forward: ");
  expect("trace import t.csv", 0, "measured for 0.0 % of launches, derived from shapes 100.0 %");
  expect("trace import t.csv", 0, "left out: times: kernel '");
  expect("replay t.csv", 3, "has no measured_time_s");
  expect("trace import t.csv --capture c.json", 0, "Rubato trace (CSV)");
  expect("replay c.json", 3, "c.json: no launch has a time");
  expect("explore c.json --gpu a100-sxm4-80gb", 3, "no launch has a time");
}

// A plan that keeps its slack only while changes of clock are free is shown, but nobody is told to
// play it.
TEST_F(ProgramRun, PlansThatAreLateAsPlayedAreNotToBeSet) {
  const std::string explore = "explore '" +
                              (source_dir() / "docs/examples/run.pt.trace.json.gz").string() +
                              "' --captured-clock 1593/1410 --slack 1 --granularity ";
  const Outcome late = run(explore + "launch");
  EXPECT_EQ(late.status, 0) << late.text;
  EXPECT_NE(late.text.find(": too late, not to be set"), std::string::npos) << late.text;
  EXPECT_EQ(late.text.find("To play the plan"), std::string::npos) << late.text;
  expect(explore + "pass", 0, "To play the plan per pass");
}

TEST_F(ProgramRun, JsonIsForPrograms) {
  const auto found = nlohmann::json::parse(
      run("explore --granularity kernel --goal strict_waste,edp --per-kernel --json").text);
  EXPECT_EQ(found["kernels"].size(), 2U * 46U);
  const auto& plans = found["plans"];
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0]["goal"], "default");
  EXPECT_LT(plans[1]["energy_change_pct"].get<double>(), -10.0);
}

}  // namespace
}  // namespace rubato
