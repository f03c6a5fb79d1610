// How fast concurrent kernels are looked up: sets that were seen, in a table or a map as before,
// and sets that are new.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "models/gpu/clock_grid.hpp"
#include "sim/sharing/shared_gpu.hpp"

namespace rubato {
namespace {

using Set = std::vector<std::uint32_t>;

// A captured step: 400 kernels, of which every tenth is a collective; two or three run at a time.
struct Step {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  ClockPair clock = parse_clock_pair(spec, "1593/1410");
  std::vector<KernelCoefficients> kernels;
  std::vector<SmDemand> demands;
  std::vector<Set> sets;

  explicit Step(std::size_t count) {
    constexpr std::uint32_t kernel_count = 400;
    std::mt19937_64 random(7);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (std::uint32_t k = 0; k < kernel_count; ++k) {
      const double size = 1.0 + below(100);
      const bool collective = k % 10 == 0;
      kernels.push_back({.core_cycles = 1e4 * size,
                         .dram_bytes = 1e5 * (1.0 + below(100)),
                         .fixed_s = 2e-6,
                         .core_j = 1e-3 * size});
      demands.push_back({.share = collective ? 0.15 : 1.0, .held = collective ? 16.0 : 0.0});
    }
    for (std::size_t i = 0; i < count; ++i) {
      Set set{below(kernel_count), below(kernel_count)};
      if (i % 4 == 0) set.push_back(below(kernel_count));
      std::ranges::sort(set);
      sets.push_back(std::move(set));
    }
  }

  [[nodiscard]] SharedGpu gpu(double limit_w) const {
    return {spec, kernels, demands, clock, limit_w};
  }
};

void known_sets(benchmark::State& state) {
  const Step step(static_cast<std::size_t>(state.range(0)));
  SharedGpu gpu = step.gpu(1e4);
  for (const Set& set : step.sets) (void)gpu.at(set);
  double sum = 0.0;
  for (auto _ : state) {
    for (const Set& set : step.sets) sum += gpu.at(set).launches_per_s[0];
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void known_sets_in_a_map(benchmark::State& state) {
  const Step step(static_cast<std::size_t>(state.range(0)));
  SharedGpu gpu = step.gpu(1e4);
  std::map<Set, Sharing> known;
  for (const Set& set : step.sets) known.emplace(set, gpu.at(set));
  double sum = 0.0;
  for (auto _ : state) {
    for (const Set& set : step.sets) sum += known.find(set)->second.launches_per_s[0];
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void new_sets(benchmark::State& state, double limit_w) {
  const Step step(static_cast<std::size_t>(state.range(0)));
  std::size_t limited = 0;
  for (auto _ : state) {
    SharedGpu gpu = step.gpu(limit_w);
    limited = 0;
    for (const Set& set : step.sets) limited += gpu.at(set).power_limited ? 1U : 0U;
  }
  state.counters["limited"] = static_cast<double>(limited) / static_cast<double>(step.sets.size());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(known_sets)->Name("sharing/known")->Arg(1000)->Arg(10000);
BENCHMARK(known_sets_in_a_map)->Name("sharing/known_in_a_map")->Arg(1000)->Arg(10000);
BENCHMARK_CAPTURE(new_sets, free, 1e4)->Name("sharing/new")->Arg(1000)->Arg(10000);
BENCHMARK_CAPTURE(new_sets, limited, 300.0)->Name("sharing/new_power_limited")->Arg(1000);

}  // namespace
}  // namespace rubato
