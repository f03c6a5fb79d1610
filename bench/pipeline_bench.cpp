// The whole frontier of a pipeline, and plans for one deadline. lowtime 0.3.0 takes 5.3 s for
// 8 stages x 12 microbatches and 2,008 s for 8 x 128 (both published, other machine).

#include <algorithm>
#include <cmath>

#include <benchmark/benchmark.h>

#include "explorer/pipeline/planner.hpp"

namespace rubato {
namespace {

// 38 clocks; time and power much as an A100 shows them: a memory-bound share does not slow down,
// power rises with the cube of the clock, and energies scatter by 1 % from clock to clock, so that
// half of them lie above their hull. Stages are equal but the last one, which has the
// language-model head.
PipelineProfile profile(std::uint32_t stages) {
  PipelineProfile made{"synthetic", {}};
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
      PassType pass{stage, kind, {}};
      const double share = stage + 1 == stages ? 1.07 : 1.0;
      const double work_s = share * (kind == PassKind::forward ? 0.050 : 0.093);
      for (int i = 0; i < 38; ++i) {
        const double mhz = 1410.0 - 15.0 * i, x = mhz / 1410.0;
        const double time_s = work_s * (0.3 + 0.7 / x);
        const double scatter = 1.0 + 0.01 * std::sin(7.3 * i * i + static_cast<double>(kind));
        pass.options.push_back({mhz, time_s, scatter * time_s * (90.0 + 390.0 * x * x * x)});
      }
      made.passes.push_back(std::move(pass));
    }
  }
  return made;
}

PipelineWork work(std::uint32_t stages, std::uint32_t microbatches) {
  return pipeline_work(make_schedule({.stages = stages, .microbatches = microbatches}),
                       profile(stages), 83.64);
}

constexpr double lowtime_s_8_12 = 5.3;
constexpr double lowtime_s_8_128 = 2008.0;

void frontier(benchmark::State& state) {
  const PipelineWork pipeline =
      work(static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1)));
  const CrashProblem problem = crash_problem(pipeline);
  const FrontierOptions options = automatic_sweep(pipeline.schedule.passes.size());
  Frontier found;
  for (auto _ : state) found = sweep_frontier(problem, options);
  double gap = 0.0;
  for (const FrontierVertex& v : found.vertices) {
    const double waiting_j = pipeline.blocked_power_w * pipeline.schedule.shape.stages * v.time_s;
    gap = std::max(gap, (v.cost_j - v.lower_bound_j) / (v.cost_j + waiting_j));
  }
  if (gap > 1e-2) state.SkipWithError("the frontier is far from its bound");
  state.counters["phases"] = static_cast<double>(found.phases);
  state.counters["augmentations"] = static_cast<double>(found.augmentations);
  state.counters["gap"] = gap;
  if (state.range(0) == 8 && state.range(1) == 12) {
    state.counters["lowtime_over_ours"] =
        benchmark::Counter(lowtime_s_8_12, benchmark::Counter::kIsIterationInvariantRate);
  }
  if (state.range(0) == 8 && state.range(1) == 128) {
    state.counters["lowtime_over_ours"] =
        benchmark::Counter(lowtime_s_8_128, benchmark::Counter::kIsIterationInvariantRate);
  }
}
BENCHMARK(frontier)
    ->ArgNames({"stages", "microbatches"})
    ->ArgsProduct({{8}, {12, 24, 48, 96, 128}})
    ->Args({32, 256})
    ->Unit(benchmark::kMillisecond);

void one_plan(benchmark::State& state) {
  const PipelineWork pipeline =
      work(static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1)));
  const PipelinePlanner planner(pipeline);
  const double deadline_s = planner.baseline().time_s;
  std::vector<PipelineResult> plans;
  for (auto _ : state) plans = planner.plan({&deadline_s, 1});
  if (plans.front().run.time_s > deadline_s * (1.0 + 1e-9)) state.SkipWithError("late");
  state.counters["gap"] = plans.front().gap_frac;
}
BENCHMARK(one_plan)
    ->ArgNames({"stages", "microbatches"})
    ->Args({8, 12})
    ->Args({8, 128})
    ->Args({32, 256})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
