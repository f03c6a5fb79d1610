#include "explorer/experiments/axes.hpp"

#include "common/numbers.hpp"
#include "explorer/plan/answer.hpp"

namespace rubato {

// One list. NOLINTNEXTLINE(readability-function-size)
std::span<const Axis> axes() {
  using enum AxisKind;
  static const std::array<Axis, axis_count> list{{
      {AxisId::gpu, "gpu", text, {}, "shipped name or file of a GPU spec", R"(["rtx-3080-ti"])"},
      {AxisId::trace,
       "trace",
       text,
       {},
       "fixed traces: shipped names or files, .json or .csv",
       R"(["captured.json"])"},
      {AxisId::capture,
       "capture",
       text,
       {},
       "captured runs: files, or patterns for the ranks of one run",
       R"(["rank0.pt.trace.json.gz", "run2/rank*.pt.trace.json.gz"])"},
      {AxisId::captured_clock, "captured_clock", text, std::string("default"),
       "clocks that captures ran at, MEMORY/CORE; \"default\": those of the GPU",
       R"(["1593/1410"])"},
      {AxisId::model,
       "model",
       text,
       {},
       "GPT model whose training step is generated",
       R"(["gpt3-xl"])"},
      {AxisId::batch, "batch", count_from_1, {}, "sequences per GPU and step", "[10, 20, 40]"},
      {AxisId::sequence, "sequence", count_from_1, {}, "tokens per sequence", "[1024]"},
      {AxisId::tensor_parallel, "tensor_parallel", count_from_1, 1.0, "tensor-parallel degree",
       "[1, 2]"},
      {AxisId::data_parallel, "data_parallel", count_from_1, 1.0, "data-parallel replicas", "[1]"},
      {AxisId::pipeline_parallel, "pipeline_parallel", count_from_1, 1.0,
       "pipeline stages; batch is that of the whole pipeline", "[1, 4]"},
      {AxisId::microbatches, "microbatches", count_from_1, 1.0,
       "equal parts of the batch that go through the pipeline", "[8]"},
      {AxisId::schedule, "schedule", text, std::string("1f1b"),
       "of pipelines: gpipe, 1f1b, early-recompute, zb-h1", R"(["1f1b"])"},
      {AxisId::power_limit_w, "power_limit_w", positive_or_spec, std::string("spec"),
       "board power limit, W; \"spec\" is the spec's own", R"(["spec", 300])"},
      {AxisId::clocks, "clocks", text, std::string(all_clocks),
       "clocks to choose from: a grid of the spec, or e.g. \"mem=5001 core=210:2100:105\"; "
       "\"all\" is all clocks of each GPU",
       R"(["all"])"},
      {AxisId::switch_stall_us,
       "switch_stall_us",
       non_negative,
       {},
       "time the GPU waits at each switch, us; without this and the next three keys "
       "changes "
       "take what the GPU spec knows",
       "[0, 1000]"},
      {AxisId::switch_energy_j,
       "switch_energy_j",
       non_negative,
       {},
       "energy of each switch beyond idle power, J",
       "[0]"},
      {AxisId::switch_latency_us,
       "switch_latency_us",
       non_negative,
       {},
       "time from the request of a switch to its effect, us; at least the stall",
       "[0, 6000]"},
      {AxisId::switch_dwell_us,
       "switch_dwell_us",
       non_negative,
       {},
       "time from an effect to the next request at least, us",
       "[0]"},
      {AxisId::granularity, "granularity", text, std::string("kernel"),
       "what gets one clock: iteration, pass, kernel, segment; of captures also gpu, launch",
       R"(["pass", "kernel"])"},
      {AxisId::aggregation, "aggregation", text, std::string("global"),
       "one budget for all (global), or each unit on its own (local)", R"(["global"])"},
      {AxisId::goal, "goal", text, std::string("strict_waste"),
       "strict_waste (where slack_pct is not 0: relaxed_waste), edp, ed2p, energy, time, cost",
       R"(["strict_waste"])"},
      {AxisId::slack_pct, "slack_pct", non_negative, 0.0,
       "goal relaxed_waste: time allowed beyond the default clocks, %", "[0, 2, 5]"},
      {AxisId::tolerance_pct, "tolerance_pct", non_negative, 0.0,
       "goals strict_waste and relaxed_waste: what still counts as no slower, %", "[0]"},
      {AxisId::odds_pct, "odds_pct", non_negative, percent * usual_odds_frac,
       "goals strict_waste and relaxed_waste: odds of being in time that an answer must have, %; "
       "0: "
       "whatever they are",
       "[50, 90]"},
      {AxisId::energy_budget_j,
       "energy_budget_j",
       positive,
       {},
       "goal time: energy of an iteration, J",
       "[1600]"},
      {AxisId::power_budget_w,
       "power_budget_w",
       positive,
       {},
       "goal time: average power over an iteration, W",
       "[280]"},
      {AxisId::host_power_w, "host_power_w", non_negative, 0.0,
       "power of the rest of the node for each GPU, W: counted in every energy", "[0, 200]"},
      {AxisId::price_per_kwh,
       "price_per_kwh",
       positive,
       {},
       "goal cost: price of a kWh that the building takes, in any currency",
       "[0.12]"},
      {AxisId::price_per_gpu_hour, "price_per_gpu_hour", non_negative, 0.0,
       "goal cost: price of an hour of a GPU beside its energy", "[0.05]"},
      {AxisId::pue, "pue", positive, 1.0,
       "goal cost: energy of the building over that of its computers, at least 1", "[1.2]"},
      {AxisId::seed, "seed", count_from_0, 0.0,
       "recorded with the result; this version draws no random numbers", "[0]"},
  }};
  return list;
}

std::string shown(const AxisValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return format_number(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "-";
}

}  // namespace rubato
