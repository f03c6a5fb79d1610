// Tables too long for one piece, and launches that draw most at a clock that is not the highest.

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "models/kernel/model.hpp"
#include "models/table/fill.hpp"
#include "tests/round_gpu.hpp"

namespace rubato {
namespace {

// As the clock rises the core side carries less: at 500 MHz all 100 GB/s, at 1 GHz 60. A byte is
// expensive, so a launch that waits for DRAM draws most near 500 MHz.
GpuSpec slower_at_high_clocks() {
  GpuSpec gpu = round_gpu();
  gpu.voltage = {{500.0, 1000.0}, {1.0, 1.0}};
  gpu.shared.dram_nj_per_byte = 2.0;
  gpu.shared.crossbar_bytes_per_cycle = 200.0;
  gpu.crossbar = {{500.0, 1000.0}, {1.0, 0.3}};
  return gpu;
}

const std::vector<KernelCoefficients> three_kernels{
    {.core_cycles = 1e7, .dram_bytes = 1.0, .fixed_s = 1e-9, .core_j = 1.0},
    {.core_cycles = 5e6, .dram_bytes = 5e8, .fixed_s = 1e-3, .core_j = 0.5},
    {.core_cycles = 1.0, .dram_bytes = 1e9, .fixed_s = 1e-9, .core_j = 1e-6}};

TEST(FillCells, LongRowsAreCellsOneByOne) {
  const GpuSpec gpu = slower_at_high_clocks();
  std::vector<ClockPair> clocks;
  for (int i = 0; i < 1500; ++i) clocks.push_back({MemStateId{0}, 100.0 + 0.6 * i});
  for (const double limit_w : {1e4, 210.0, 150.0}) {
    std::vector<double> time_s(three_kernels.size() * clocks.size()), energy_j(time_s);
    EXPECT_TRUE(
        fill_cells({gpu, three_kernels, limit_w}, {clocks}, time_s.data(), energy_j.data()));
    std::size_t wrong = 0, limited = 0;
    for (std::size_t k = 0; k < three_kernels.size(); ++k) {
      for (std::size_t c = 0; c < clocks.size(); ++c) {
        const OperatingPoint one = operating_point(gpu, three_kernels[k], clocks[c], limit_w);
        limited += static_cast<std::size_t>(one.power_limited);
        const std::size_t at = k * clocks.size() + c;
        wrong += static_cast<std::size_t>(time_s[at] != one.time_s || energy_j[at] != one.energy_j);
      }
    }
    EXPECT_EQ(wrong, 0U) << limit_w;
    EXPECT_EQ(limited > 0, limit_w < 1e4);
  }
  const auto power_w = [&](double mhz) {
    const OperatingPoint one = operating_point(gpu, three_kernels[2], {MemStateId{0}, mhz}, 1e4);
    return one.energy_j / one.time_s;
  };
  EXPECT_GT(power_w(500.0), 210.0);
  EXPECT_LT(power_w(1000.0), 210.0);
}

// Of each launch the last clock but one alone is over the limit: it lies in what is left of a row
// after whole vectors, with any number of lanes.
TEST(FillCells, TheLastCellsOfARowAreLookedAtToo) {
  const GpuSpec gpu = slower_at_high_clocks();
  const std::vector<KernelCoefficients> kernels(2, three_kernels[2]);
  for (std::size_t count = 3; count < 20; ++count) {
    std::vector<ClockPair> clocks;
    for (std::size_t i = 2; i < count; ++i)
      clocks.push_back({MemStateId{0}, 100.0 + static_cast<double>(i)});
    clocks.push_back({MemStateId{0}, 500.0});
    clocks.push_back({MemStateId{0}, 1000.0});
    for (const TableCells& loops : table_cells()) {
      std::vector<double> time_s(2 * count), energy_j(time_s);
      EXPECT_TRUE(
          fill_cells({gpu, kernels, 210.0}, {clocks}, time_s.data(), energy_j.data(), loops));
      for (std::size_t at = 0; at < 2 * count; ++at) {
        const OperatingPoint one = operating_point(gpu, kernels[0], clocks[at % count], 210.0);
        EXPECT_EQ(one.power_limited, at % count == count - 2);
        EXPECT_EQ(time_s[at], one.time_s) << loops.name << ' ' << count << ' ' << at;
        EXPECT_EQ(energy_j[at], one.energy_j) << loops.name << ' ' << count << ' ' << at;
      }
    }
  }
}

// One launch among thousands that has no time is told, whichever thread meets it.
TEST(FillCells, SayWhetherAllAreSound) {
  const GpuSpec gpu = round_gpu();
  std::vector<ClockPair> clocks;
  for (int i = 0; i < 40; ++i) clocks.push_back({MemStateId{0}, 200.0 + 20.0 * i});
  std::vector<KernelCoefficients> kernels(2500, three_kernels[1]);
  std::vector<double> time_s(kernels.size() * clocks.size()), energy_j(time_s);
  const auto sound = [&] {
    return fill_cells({gpu, kernels, 300.0}, {clocks}, time_s.data(), energy_j.data());
  };
  EXPECT_TRUE(sound());
  kernels[1234].core_cycles = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(sound());
}

}  // namespace
}  // namespace rubato
