// Filling the profile table, beside what the machine can do at most: copying
// the table's bytes, and fused multiply-adds on doubles that stay in registers.

#include <cstring>

#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include "models/gpu_model.hpp"
#include "traces/trace_json.hpp"

namespace rubato {
namespace {

void fill_table(benchmark::State& state, const char* grid_name) {
  const Trace trace = load_trace("gpt3-xl");
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), trace);
  const ClockGrid grid = make_clock_grid(model.spec(), grid_name);
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(state.range(0)));
  std::size_t cells = 0;
  for (auto _ : state) {
    const auto table = evaluate_all(model, grid);
    cells = table.size();
    if (table.front().time_s <= 0.0) state.SkipWithError("a cell is wrong");
  }
  state.counters["cells/s"] =
      benchmark::Counter(static_cast<double>(cells), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(fill_table, c66, "paper")
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(fill_table, c763, "full")
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void ceiling_memory_copy(benchmark::State& state) {
  constexpr std::size_t cells = std::size_t{1} << 22;
  std::vector<OperatingPoint> from(cells), to(cells);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), cells * sizeof(OperatingPoint));
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.counters["cells/s"] =
      benchmark::Counter(cells, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(ceiling_memory_copy)->Unit(benchmark::kMicrosecond);

void ceiling_multiply_add(benchmark::State& state) {
  constexpr int chains = 16;  // enough independent ones to fill the pipelines
  double x[chains];
  for (int i = 0; i < chains; ++i) x[i] = 1.0 + 1e-9 * i;
  for (auto _ : state) {
    for (int step = 0; step < 1000; ++step) {
      for (double& value : x) value = value * 0.999999 + 1e-6;
    }
    benchmark::DoNotOptimize(x);
  }
  state.counters["multiply-adds/s"] =
      benchmark::Counter(1000.0 * chains, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(ceiling_multiply_add);

}  // namespace
}  // namespace rubato
