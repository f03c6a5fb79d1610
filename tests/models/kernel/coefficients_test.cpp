// Coefficients from work, by hand on a GPU of round numbers.

#include "models/kernel/coefficients.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "models/kernel/model.hpp"
#include "models/network/collective_time.hpp"
#include "tests/round_gpu.hpp"

namespace rubato {
namespace {

// Products of so many tiles of 128 x 128 each.
GemmShape tiles(std::uint64_t m, std::uint64_t n) { return {.m = 128 * m, .n = 128 * n, .k = 64}; }

TEST(WaveEfficiency, IsTheShareOfTheSmsThatHaveATile) {
  EXPECT_DOUBLE_EQ(wave_efficiency(tiles(8, 8), 100.0), 0.64);
  EXPECT_DOUBLE_EQ(wave_efficiency(tiles(10, 10), 100.0), 1.0);
  EXPECT_DOUBLE_EQ(wave_efficiency(tiles(8, 13), 100.0), 104.0 / 200.0);
  EXPECT_DOUBLE_EQ(wave_efficiency({.m = 1, .n = 129, .k = 1, .batch = 3}, 100.0), 0.06);
}

TEST(CalibratedKernels, AreKnownByNameAndByClassWhereTheSpecTellsIt) {
  GpuSpec gpu = round_gpu();
  gpu.kernels = {{.name = "a",
                  .kind = KernelClass::gelu,
                  .flops = {},
                  .dram_bytes = {},
                  .gemm = {},
                  .coefficients = {}},
                 {.name = "b",
                  .kind = KernelClass::other,
                  .flops = {},
                  .dram_bytes = {},
                  .gemm = {},
                  .coefficients = {}}};
  EXPECT_EQ(calibrated_kernel(gpu, launch_of(KernelClass::gelu, "a")), &gpu.kernels[0]);
  EXPECT_EQ(calibrated_kernel(gpu, launch_of(KernelClass::gemm, "a")), nullptr);
  EXPECT_EQ(calibrated_kernel(gpu, launch_of(KernelClass::gemm, "b")), &gpu.kernels[1]);
  EXPECT_EQ(calibrated_kernel(gpu, launch_of(KernelClass::gelu, "c")), nullptr);
  EXPECT_EQ(calibrated_kernel(gpu, launch_of(KernelClass::other, "a")), &gpu.kernels[0]);
}

// A second wave for four tiles takes as long as the first. What tiles read again grows with the
// work, what they must read with the operands.
TEST(CarriedOver, ProductsTakeWholeWaves) {
  const CalibratedKernel measured{
      .name = "k",
      .kind = KernelClass::gemm,
      .flops = 64e9,
      .dram_bytes = 100e6,
      .gemm = tiles(8, 8),
      .coefficients = {.core_cycles = 1e6, .dram_bytes = 150e6, .fixed_s = 1e-6, .core_j = 0.64}};
  Kernel kernel = launch_of(KernelClass::gemm);
  kernel.flops = 104e9;
  kernel.dram_bytes = 130e6;
  kernel.gemm = tiles(8, 13);
  const KernelCoefficients moved = carried_over(measured, kernel, 100.0);
  EXPECT_NEAR(moved.core_cycles, 2e6, 1e-3);
  EXPECT_NEAR(moved.core_j, 1.04, 1e-12);
  EXPECT_NEAR(moved.dram_bytes, 130e6 + 50e6 * 104.0 / 64.0, 1e-3);
  EXPECT_EQ(moved.fixed_s, 1e-6);
}

TEST(WorkMoved, IsTheLargestRatioOfWhatIsKnownOfBoth) {
  CalibratedKernel measured;
  measured.flops = 8.0;
  measured.gemm = GemmShape{.m = 10, .n = 20, .k = 30};
  Kernel kernel;
  EXPECT_EQ(work_moved(measured, kernel), 0.0);
  kernel.dram_bytes = 7.0;
  EXPECT_EQ(work_moved(measured, kernel), 0.0);
  kernel.flops = 4.0;
  EXPECT_NEAR(work_moved(measured, kernel), std::log(2.0), 1e-12);
  kernel.gemm = GemmShape{.m = 10, .n = 60, .k = 30};
  EXPECT_NEAR(work_moved(measured, kernel), std::log(3.0), 1e-12);
  kernel.gemm = GemmShape{.m = 10, .n = 20, .k = 30, .batch = 4};
  EXPECT_NEAR(work_moved(measured, kernel), std::log(4.0), 1e-12);
}

TEST(Derived, ScalesTheClassByItsWork) {
  GpuSpec gpu = round_gpu();
  gpu.classes = {{.kind = KernelClass::gelu,
                  .cycles_per_unit = 0.5,
                  .dram_factor = 1.25,
                  .core_nj_per_unit = 2.0,
                  .fixed_s = 3e-6,
                  .overlap_scale = 1.5},
                 {.kind = KernelClass::gemm,
                  .cycles_per_unit = 1e-5,
                  .dram_factor = 2.0,
                  .core_nj_per_unit = 1e-3,
                  .fixed_s = 4e-6}};
  Kernel stream = launch_of(KernelClass::gelu);
  EXPECT_FALSE(derived(gpu, stream));
  stream.dram_bytes = 1e6;
  const auto of_stream = derived(gpu, stream);
  ASSERT_TRUE(of_stream);
  EXPECT_DOUBLE_EQ(of_stream->core_cycles, 0.5e6);
  EXPECT_DOUBLE_EQ(of_stream->dram_bytes, 1.25e6);
  EXPECT_DOUBLE_EQ(of_stream->core_j, 2e-3);
  EXPECT_EQ(of_stream->fixed_s, 3e-6);
  EXPECT_EQ(of_stream->overlap_scale, 1.5);
  Kernel product = launch_of(KernelClass::gemm);
  product.dram_bytes = 1e6;
  EXPECT_FALSE(derived(gpu, product));
  product.flops = 1e9;
  product.gemm = tiles(8, 8);
  EXPECT_NEAR(derived(gpu, product)->core_cycles, 1e4 / 0.64, 1e-6);
  EXPECT_DOUBLE_EQ(derived(gpu, product)->dram_bytes, 2e6);
  EXPECT_FALSE(derived(gpu, launch_of(KernelClass::softmax)));
}

// At 80 % of 100 TFLOP/s 8e11 FLOP take 10 ms, in which 0.6 of the limit of 400 W are 2.4 J, at
// twice the voltage of the floor. Of traffic a byte takes 0.07 nJ.
TEST(Guessed, AProductReachesFourFifthsOfThePeak) {
  Kernel product = launch_of(KernelClass::gemm);
  product.flops = 8e11;
  EXPECT_FALSE(guessed(round_gpu(), product));
  product.dram_bytes = 1e6;
  const auto found = guessed(round_gpu(), product);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->core_cycles, 10e-3 * 1e9, 1e-3);
  EXPECT_NEAR(found->core_j, 2.4 / 4.0 + 0.07e-9 * 1e6, 1e-9);
  EXPECT_EQ(found->dram_bytes, 1e6);
}

TEST(Guessed, ACopyOfTheHostTakesTheTimeOfItsLink) {
  const GpuSpec gpu = round_gpu();
  Kernel copy = launch_of(KernelClass::memcpy, "Memcpy HtoD");
  copy.flops = 0.0;
  copy.dram_bytes = 2e9;
  const auto found = guessed(gpu, copy);
  ASSERT_TRUE(found);
  const double time_s = unlimited_point(clock_state(gpu, gpu.default_clock, false), *found).time_s;
  EXPECT_NEAR(found->fixed_s, 0.1 + 10e-6, 1e-12);
  EXPECT_NEAR(time_s, 0.1 + 2e9 / 100e9, 1e-4);  // then it waits for DRAM as well
  EXPECT_NEAR(found->core_j, 0.02, 1e-12);       // 0.01 nJ a byte
}

// 4 GPUs sum 1 GB in a ring: 1.5 GB pass each. At the default clock the links' time is all of it;
// at half of it copying at 1000 bytes per cycle takes 1.5 ms more.
TEST(Guessed, ACollectiveTakesTheTimeOfItsLinksAndCopiesLongerAtLowClocks) {
  GpuSpec gpu = round_gpu();
  gpu.cluster = ClusterSpec{.name = "four",
                            .title = "four",
                            .gpus_per_node = 4,
                            .nodes = 1,
                            .inside = {.kind = LinkKind::pcie, .bus_gbs = 10.0, .source = "made"},
                            .between = {},
                            .in_switch_gbs = {}};
  Kernel sum = launch_of(KernelClass::communication, "ncclDevKernel_AllReduce");
  EXPECT_FALSE(guessed(gpu, sum));
  sum.collective =
      Collective{.kind = CollectiveKind::all_reduce, .message_bytes = 1e9, .group_size = 4};
  EXPECT_DOUBLE_EQ(guessed(gpu, sum)->dram_bytes, 2.0 * 1.5e9);  // read here, written there
  sum.dram_bytes = 1e6;
  const auto found = guessed(gpu, sum);
  ASSERT_TRUE(found);
  const auto time_s = [&](const ClockPair& clock) {
    return unlimited_point(clock_state(gpu, clock, false), *found).time_s;
  };
  const double link_s = collective_time(*gpu.cluster, *sum.collective, network_parameters()).time_s;
  EXPECT_NEAR(link_s, 0.15, 0.001);
  EXPECT_NEAR(time_s(gpu.default_clock), link_s, 1e-9);
  EXPECT_NEAR(time_s({MemStateId{0}, 500.0}) - link_s, 1.5e-3, 1e-6);
  EXPECT_NEAR(found->core_j, 0.015, 1e-12);  // 0.01 nJ a byte
}

}  // namespace
}  // namespace rubato
