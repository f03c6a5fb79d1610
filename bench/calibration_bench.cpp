// Fitting a sweep: 65 kernels at 66 clock pairs on one thread, the size of a whole
// training step on the paper's clocks.

#include <random>

#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include "models/calibration/sweep_fit.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {
namespace {

// Measurements with 1 % of noise.
Sweep sweep_of(const GpuSpec& spec, std::size_t kernels) {
  std::mt19937_64 random(65);
  std::normal_distribution<double> noise(1.0, 0.01);
  Sweep sweep{.file = "synthetic",
              .gpu = spec.name,
              .applied_clocks = true,
              .kernels = {},
              .idle = {},
              .left_out = {}};
  const ClockGrid grid = make_clock_grid(spec, "paper");
  for (std::size_t k = 0; k < kernels; ++k) {
    SweepKernel& kernel = sweep.kernels.emplace_back();
    kernel.name = std::to_string(k);
    const double share = static_cast<double>(k) / static_cast<double>(kernels);
    const KernelCoefficients c{.core_cycles = 2e6 * (0.1 + share),
                               .dram_bytes = 1e9 * (1.05 - share),
                               .fixed_s = 4e-6,
                               .core_j = 0.1 + 0.2 * share};
    for (const ClockPair& clock : grid.pairs()) {
      SweepPoint point;
      point.clock = clock;
      const OperatingPoint truth = predict(spec, c, point, false);
      point.time_s = truth.time_s * noise(random);
      point.power_w = truth.energy_j / truth.time_s * noise(random);
      kernel.points.push_back(point);
    }
  }
  sweep.applied_clocks = false;
  return sweep;
}

void calibrate_65_x_66(benchmark::State& state) {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 1);
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const Sweep sweep = sweep_of(spec, 65);
  for (auto _ : state) benchmark::DoNotOptimize(calibrate_sweep(spec, sweep, {.ensemble = 0}));
  state.counters["points"] = static_cast<double>(sweep.points());
}
BENCHMARK(calibrate_65_x_66)->Unit(benchmark::kMillisecond)->Iterations(1)->Repetitions(3);

}  // namespace
}  // namespace rubato
