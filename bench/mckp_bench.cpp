// The multiple-choice knapsack on tables like those of real kernels, from a
// training step's size to far beyond. Each run checks that its answer is proven.

#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include "bench/mckp_instance.hpp"

namespace rubato {
namespace {

// Arguments: rows, items, threads.
void mckp(benchmark::State& state) {
  const MckpInstance made = mckp_instance(static_cast<std::size_t>(state.range(0)),
                                          static_cast<std::size_t>(state.range(1)));
  const auto threads = static_cast<std::size_t>(state.range(2));
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  MckpResult result;
  for (auto _ : state) {
    result = solve_mckp(made.problem());
    if (!result.proven || result.weight > made.budget_s) state.SkipWithError("not proven");
  }
  state.counters["states"] = static_cast<double>(result.states);
  state.counters["energy_j"] = result.cost;
}
BENCHMARK(mckp)
    ->ArgNames({"kernels", "clocks", "threads"})
    ->ArgsProduct({{46, 1'000}, {66, 762}, {1, 2}})
    ->ArgsProduct({{10'000, 100'000}, {762}, {1, 2}})
    // Between those, for the growth in both.
    ->ArgsProduct({{200, 3'000, 30'000}, {762}, {1}})
    ->ArgsProduct({{46, 1'000}, {200, 2'000, 5'000, 10'000}, {1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// The whole supported front. Arguments: rows, items, threads.
void front(benchmark::State& state) {
  const MckpInstance made = mckp_instance(static_cast<std::size_t>(state.range(0)),
                                          static_cast<std::size_t>(state.range(1)));
  const auto threads = static_cast<std::size_t>(state.range(2));
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  std::size_t points = 0;
  for (auto _ : state) points = hull_path(made.problem()).steps.size() + 1;
  state.counters["points"] = static_cast<double>(points);
}
BENCHMARK(front)
    ->ArgNames({"kernels", "clocks", "threads"})
    ->ArgsProduct({{46, 200, 1'000, 3'000, 10'000, 30'000, 100'000}, {762}, {1}})
    ->ArgsProduct({{46, 1'000, 100'000}, {762}, {2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
