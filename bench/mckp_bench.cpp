// The multiple-choice knapsack on tables like those of real kernels, from a
// training step's size to far beyond. Each run checks that its answer is proven.

#include <cmath>
#include <cstdint>
#include <random>

#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include "explorer/mckp.hpp"

namespace rubato {
namespace {

struct Instance {
  std::vector<double> time_s;
  std::vector<double> energy_j;
  double budget_s = 0.0;
  std::size_t rows = 0;
  std::size_t items = 0;

  [[nodiscard]] MckpProblem problem() const { return {rows, items, energy_j, time_s, budget_s}; }
};

/// Kernels of all sizes, bound by core or memory, on a grid of core x memory clocks;
/// 1 % of noise in time and energy. The budget is 2 % above the fastest clocks' time.
Instance instance(std::size_t rows, std::size_t items) {
  std::mt19937_64 random(20260113);
  const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Instance made{.time_s = {}, .energy_j = {}, .budget_s = 0.0, .rows = rows, .items = items};
  made.time_s.reserve(rows * items);
  made.energy_j.reserve(rows * items);
  constexpr std::size_t memory_clocks = 6;
  for (std::size_t row = 0; row < rows; ++row) {
    const double size_s = 1e-4 * std::exp(6.0 * uniform());
    const double core_share = uniform();
    double fastest_s = 1e300;
    for (std::size_t item = 0; item < items; ++item) {
      const double memory =
          0.5 + 0.5 * static_cast<double>(item % memory_clocks + 1) / memory_clocks;
      const double core = 0.2 + 0.8 * static_cast<double>(item / memory_clocks + 1) /
                                    static_cast<double>((items - 1) / memory_clocks + 1);
      const double core_s = core_share / core, memory_s = (1.0 - core_share) / memory;
      const double time_s = size_s *
                            (0.6 * std::max(core_s, memory_s) + 0.4 * (core_s + memory_s)) *
                            (1.0 + 0.01 * uniform());
      const double volts = 0.7 + 0.3 * core * core;
      const double power_w = 60.0 + 40.0 * memory + 250.0 * core * volts * volts;
      made.time_s.push_back(time_s);
      made.energy_j.push_back(power_w * time_s * (1.0 + 0.01 * uniform()));
      fastest_s = std::min(fastest_s, time_s);
    }
    made.budget_s += 1.02 * fastest_s;
  }
  return made;
}

// Arguments: rows, items, threads (0: all).
void mckp(benchmark::State& state) {
  const Instance made =
      instance(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
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
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void front(benchmark::State& state) {
  const Instance made =
      instance(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  std::size_t points = 0;
  for (auto _ : state) points = hull_path(made.problem()).steps.size() + 1;
  state.counters["points"] = static_cast<double>(points);
}
BENCHMARK(front)
    ->ArgNames({"kernels", "clocks"})
    ->Args({46, 762})
    ->Args({1'000, 762})
    ->Args({100'000, 762})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
