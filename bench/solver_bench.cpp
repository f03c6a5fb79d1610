// Exact global plans. Each run checks that its answer is proven.

#include <benchmark/benchmark.h>

#include "explorer/choice.hpp"
#include "explorer/solver.hpp"
#include "models/table/fill.hpp"
#include "models/table/gpu_model.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

struct Instance {
  ProfileTable table;
  ClockId default_clock;
};

Instance instance(const char* grid_name) {
  const Trace trace = load_trace("gpt3-xl");
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), trace);
  const ClockGrid grid = make_clock_grid(model.spec(), grid_name);
  const ProfileTable per_launch = fill_profile_table(model, grid);
  return {unit_table(per_launch, trace, choice_units(trace, Granularity::kernel)),
          grid.default_clock()};
}

// 46 kernels, one budget.
void global_optimum(benchmark::State& state, const char* grid_name, double slack_frac) {
  const Instance problem = instance(grid_name);
  std::uint64_t states = 0;
  for (auto _ : state) {
    const Solution solution =
        solve_global(problem.table, LeastWaste{slack_frac, 0.0}, problem.default_clock);
    if (solution.status != SolveStatus::optimal) state.SkipWithError("not proven");
    states = solution.nodes;
  }
  state.counters["states"] = static_cast<double>(states);
}
BENCHMARK_CAPTURE(global_optimum, k46_c66_slack0, "paper", 0.0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(global_optimum, k46_c66_slack5, "paper", 0.05)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(global_optimum, k46_c763_slack0, "full", 0.0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(global_optimum, k46_c763_slack5, "full", 0.05)->Unit(benchmark::kMillisecond);

// The slack decides how hard the last step is. Argument: slack in tenths of a percent.
void global_optimum_at(benchmark::State& state) {
  global_optimum(state, "full", 1e-3 * static_cast<double>(state.range(0)));
}
BENCHMARK(global_optimum_at)
    ->ArgsProduct({{5, 10, 15, 20, 25, 30, 40, 70, 100, 150, 200, 300}})
    ->Unit(benchmark::kMillisecond);

void whole_front(benchmark::State& state, const char* grid_name) {
  const Instance problem = instance(grid_name);
  std::size_t points = 0;
  for (auto _ : state) points = supported_front(problem.table).size();
  state.counters["points"] = static_cast<double>(points);
}
BENCHMARK_CAPTURE(whole_front, k46_c66, "paper")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_front, k46_c763, "full")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
