// Steps generated and traces imported, as a user makes them.

#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

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

TEST_F(ProgramRun, MakesStepsInEveryTypeAndStyle) {
  const auto products = [&](const std::string& options, std::string_view dtype) {
    expect("trace gen " + options + " --layers 2 --seq 256 -o -", 0,
           fmt::format(R"("class":"gemm","pass":"forward","dtype":"{}")", dtype));
  };
  products("gpt3-small --kernels fused --dtype fp32", "fp32");
  products("gpt3-small --kernels fused --dtype fp32 --matmul-precision medium", "tf32");
  products("gpt3-small --kernels eager --dtype fp32", "fp32");
  products("gpt3-small --dtype fp32", "tf32");  // as llm.c
  products("gpt3-small --dtype fp32 --matmul-precision highest", "fp32");
  products("llama3-8b --dtype fp8", "fp8");
  products("llama3-8b --dtype nvfp4", "nvfp4");
  expect("trace gen gpt3-small --kernels eager --seq 256 -o -", 0, "fwd_dropout_scores");
  expect("trace gen gpt3-small", 0, "To keep it: -o step.json");
  expect("trace gen llama3-8b --layers 2 --seq 512 --kernels eager --graph --tp 2 -o l.json", 0,
         "at default clocks");
  expect("trace gen llama3-8b --layers 2 --seq 512 --dtype fp8 --graph --tp 2 -o l.json", 0,
         "at default clocks");
  expect("trace gen gpt3-small --matmul-precision high", 2,
         "--matmul-precision is for --dtype fp32, not for bf16");
  expect("trace gen gpt3-small --dtype tf32", 2, "--dtype");
  expect("trace gen gpt3-small --dtype fp8", 2, "dtype fp8: only fused kernels");
  expect("trace gen gpt3-small --no-dropout", 2, "--no-dropout is for --kernels eager");
  expect("trace gen mixtral-8x7b --kernels eager", 2, "not of 'mixtral-8x7b'");
}

TEST_F(ProgramRun, MakesStepsOfParallelTraining) {
  const std::string gen = "trace gen gpt3-small --layers 4 --tp 2 --pp 2 --batch 1 -o s.json";
  expect(gen, 2, "--pp is for --graph");
  expect(gen + " --graph --cp 3", 2, "cp 3 does not divide seq 1024");
  expect(gen + " --graph --microbatches 2", 0, "waiting for other stages (means over 2 stages)");
  const std::string explore = "explore s-stage0.json s-stage1.json --per gpu";
  expect(explore + " --disturb 2:kernels*1.5", 0, "the default clocks take");
  // What was planned beside a slow rank is kept and written, and says so.
  expect(explore + " --slack 20 --odds 0 --disturb 2:kernels*1.5 --db r.db --plan-file p.json", 0,
         "stored as run 1 in r.db");
  expect("query --db r.db --csv 'SELECT disturbance FROM v_runs'", 0, "\n2:kernels*1.5\n");
  const auto written = nlohmann::json::parse(read_file(folder_ / "p.json"))["run"];
  expect(explore + " --slack 20 --odds 0 --db r.db", 0, "stored as run 2 in r.db");
  expect(fmt::format("query --db r.db --csv 'SELECT count(*) FROM v_runs WHERE (disturbance IS "
                     "NULL) = (default_time_s < 0.999 * {})'",
                     written["default_time_s"].get<double>()),
         0, "\n2\n");
  expect(explore + " --disturb x", 2, "--disturb 'x'; expected e.g. 3:kernels*1.2");
  expect("trace scale gpt3-small --tp 1,2 --dp 2 --csv", 0, "tp,pp,dp,gpus,step_ms,");
  expect("trace scale gpt3-small --pp 2 --dp 2 --disturb 2:kernels*1.1 --no-plans --csv", 0,
         "tp,pp,dp,gpus,step_ms,energy_kj");
  expect("trace scale gpt3-small --pp 2 --dp 2 --disturb 2:1110MHz,0:250W --no-plans --csv", 0,
         "2,2,4");
  expect("trace scale gpt3-small --disturb 0:1110", 2, "expected e.g.");
  expect("trace scale gpt3-small --disturb 0:20W", 2, "a power limit of 20 W is outside");
  expect("network capture s-stage0.json", 2, "--cluster is required");
  expect("network capture s-stage0.json --cluster hgx-h100 -o mine.json", 0,
         "Inside nodes: 227 GB/s (frame 365)");
  expect("network time mine.json --ranks 2 --bytes 1e6", 0, "ring");
  expect("trace scale gpt3-small --layers 2 --tp 1,8 --no-plans", 0,
         "Left out as impossible: 1, the\n  first because tp 8 does not divide heads 12");
  expect("trace scale gpt3-small --layers 2 --tp 8 --no-plans", 2, "tp 8 does not divide heads 12");
  const std::string times = "trace scale gpt3-small --layers 2 --dp 2 --no-plans";
  expect(
      times, 0,
      "gpt3-small, 16 microbatches of 1 sequence in each replica; a100-sxm4-80gb, links guessed\n\n"
      "tp ");
  expect(times, 0, "--cluster names a cluster");
  expect(times + " --cluster dgx-a100", 0, "; dgx-a100, a100-sxm4-80gb\n\ntp ");
  expect("trace scale gpt3-small --optimizer --no-optimizer", 2, "--no-optimizer is for --kernels");
  expect("trace scale llama3-8b --optimizer --no-optimizer", 2, "exclude each other");
  expect("trace scale gpt3-small --dp 2 --zero 3 --buckets megatron", 2, "no buckets");
  expect("trace scale gpt3-small --tp 4..1", 2, "--tp '4..1'; expected numbers from 1 to");
  expect("trace scale gpt3-small --dp 0", 2, "--dp '0'; expected numbers from 1 to");
  expect("trace scale gpt3-small --dp 2 --no-plans --page steps.png", 2, "--page");
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

}  // namespace
}  // namespace rubato
