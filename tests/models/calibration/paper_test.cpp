// Is the model close to what was published? The bars are the project's own.

#include <cmath>

#include <gtest/gtest.h>

#include "models/calibration/paper_fit.hpp"
#include "models/table/gpu_model.hpp"
#include "tests/shared_data.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

struct Paper {
  GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  Trace trace = load_trace("gpt3-xl");
  ClockGrid grid = make_clock_grid(spec, "paper");
  GpuModel model{spec, trace};
  PaperData data = read_paper_data(shared_data("spaan2026"), grid, trace);
};

TEST(SpaanPaper, Table1ChangesAreMet) {
  RUBATO_NEEDS_SHARED("spaan2026");
  const Paper paper;
  double time_points = 0.0, energy_points = 0.0;
  for (const PaperKernel& row : paper.data.kernels) {
    const OperatingPoint base = paper.model.evaluate(row.kernel, paper.spec.default_clock);
    const OperatingPoint best = paper.model.evaluate(row.kernel, paper.grid[row.best_clock]);
    time_points +=
        std::abs(100.0 * (best.time_s / base.time_s - 1.0) - row.best_time_change_pct) / 46.0;
    energy_points +=
        std::abs(100.0 * (best.energy_j / base.energy_j - 1.0) - row.best_energy_change_pct) / 46.0;
  }
  EXPECT_LE(time_points, 0.8);
  EXPECT_LE(energy_points, 1.5);
}

TEST(SpaanPaper, ForwardSweepIsMetAtMemoryClocksFrom810) {
  RUBATO_NEEDS_SHARED("spaan2026");
  const Paper paper;
  const auto sums = [&](const ClockPair& clock) {
    double time_s = 0.0, energy_j = 0.0;
    for (const PaperKernel& row : paper.data.kernels) {
      if (!paper.data.in_forward_pass[index(row.kernel)]) continue;
      const OperatingPoint point = paper.model.evaluate(row.kernel, clock);
      time_s += row.count * point.time_s;
      energy_j += row.count * point.energy_j;
    }
    return std::pair(time_s, energy_j);
  };
  const auto [base_s, base_j] = sums(paper.spec.default_clock);
  double time_pct = 0.0, energy_pct = 0.0;
  int pairs = 0;
  for (const PaperPassPoint& row : paper.data.forward_pass) {
    const ClockPair& clock = paper.grid[row.clock];
    if (paper.spec.mem_states[index(clock.mem)].mem_mhz < 800.0) continue;
    const auto [time_s, energy_j] = sums(clock);
    time_pct += 100.0 * std::abs(time_s / base_s / (1.0 + row.time_change_pct / 100.0) - 1.0);
    energy_pct += 100.0 * std::abs(energy_j / base_j / (1.0 + row.energy_change_pct / 100.0) - 1.0);
    ++pairs;
  }
  ASSERT_EQ(pairs, 55);
  EXPECT_LE(time_pct / pairs, 2.5);
  EXPECT_LE(energy_pct / pairs, 3.0);
}

TEST(SpaanPaper, DefaultTimesAndEnergiesAreMet) {
  RUBATO_NEEDS_SHARED("spaan2026");
  const Paper paper;
  for (const PaperKernel& row : paper.data.kernels) {
    const OperatingPoint base = paper.model.evaluate(row.kernel, paper.spec.default_clock);
    EXPECT_NEAR(base.time_s / row.auto_time_s, 1.0, 0.01) << index(row.kernel);
    EXPECT_NEAR(base.energy_j / row.auto_energy_j, 1.0, 0.03) << index(row.kernel);
  }
}

}  // namespace
}  // namespace rubato
