// What is assumed of captured kernels, on a GPU whose numbers are round, by hand.

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "models/kernel/anchor.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/kernel/model.hpp"
#include "models/kernel/peaks.hpp"
#include "tests/round_gpu.hpp"

namespace rubato {
namespace {

constexpr double launch_time_s = 10e-3;

// Captured at the default clocks; no power limit binds.
AnchoredKernel captured(const Kernel& kernel, double lean = 0.5) {
  return anchored(round_gpu(), kernel, {{MemStateId{0}, {}}, launch_time_s, 1e4}, lean);
}

// Of the launch above.
double core_over_dram_time(const KernelCoefficients& found) {
  return (found.core_cycles / 1e9) / (found.dram_bytes / 100e9);
}

// Core power at the default clocks over the power limit.
double share_of_limit(const KernelCoefficients& found) {
  const double squared_voltage = 4.0;
  return found.core_j * squared_voltage / launch_time_s / 400.0;
}

TEST(AnchorPriors, WorkIsKeptUpToFivePercentBeyondThePeak) {
  const double most_flops = 1e5 * 1e9 * launch_time_s;
  Kernel product = launch_of(KernelClass::gemm);
  product.flops = 1.049 * most_flops;
  EXPECT_FALSE(captured(product).flops_dropped);
  product.flops = 1.051 * most_flops;
  EXPECT_TRUE(captured(product).flops_dropped);

  const double most_bytes = peak_dram_bytes_per_s(100e9) * launch_time_s;
  Kernel stream = launch_of(KernelClass::elementwise);
  stream.dram_bytes = 1.049 * most_bytes;
  EXPECT_FALSE(captured(stream).bytes_dropped);
  stream.dram_bytes = 1.051 * most_bytes;
  EXPECT_TRUE(captured(stream).bytes_dropped);

  Kernel copy = launch_of(KernelClass::memcpy, "Memcpy HtoD");
  copy.dram_bytes = 1.049 * 20e9 * launch_time_s;
  EXPECT_FALSE(captured(copy).bytes_dropped);
  copy.dram_bytes = 1.051 * 20e9 * launch_time_s;
  EXPECT_TRUE(captured(copy).bytes_dropped);
}

// At half the core clock, the part of the time that follows it takes twice as long.
TEST(AnchorPriors, TwoPercentOfACollectiveFollowTheCoreClockAndFourAtMost) {
  const GpuSpec gpu = round_gpu();
  const auto added = [&](double lean) {
    const Kernel kernel = launch_of(KernelClass::communication, "ncclDevKernel_AllReduce");
    const KernelCoefficients found = captured(kernel, lean).coefficients;
    return operating_point(gpu, found, {MemStateId{0}, 500.0}, 1e4).time_s / launch_time_s - 1.0;
  };
  EXPECT_NEAR(added(0.0), 0.0, 0.002);
  EXPECT_NEAR(added(0.25), 0.01, 0.0005);
  EXPECT_NEAR(added(0.5), 0.02, 0.001);
  EXPECT_NEAR(added(1.0), 0.04, 0.002);
}

// A matrix product at 80 % of the peak of its type draws 0.6 of the limit in the core, one at half
// that rate half of it, whichever the clock; traffic at full bandwidth 0.3.
TEST(AnchorPriors, CorePowerGrowsWithTheWorkDone) {
  Kernel product = launch_of(KernelClass::gemm);
  const double most_flops = 1e5 * 1e9 * launch_time_s;
  product.flops = 0.8 * most_flops;
  const KernelCoefficients fast = captured(product).coefficients;
  const double traffic = 0.3 * fast.dram_bytes / (100e9 * launch_time_s);
  EXPECT_NEAR(share_of_limit(fast) - traffic, 0.6, 1e-6);
  product.flops = 0.4 * most_flops;
  const KernelCoefficients slow = captured(product).coefficients;
  EXPECT_NEAR(share_of_limit(slow) - 0.3 * slow.dram_bytes / (100e9 * launch_time_s), 0.3, 1e-6);

  Kernel stream = launch_of(KernelClass::elementwise);
  stream.dram_bytes = 100e9 * launch_time_s;
  EXPECT_NEAR(share_of_limit(captured(stream).coefficients), 0.3, 0.3 * 1e-3);
}

TEST(AnchorPriors, UnknownWorkDrawsAThirdOfTheLimitAndOfUnknownClassAFifth) {
  EXPECT_NEAR(share_of_limit(captured(launch_of(KernelClass::gemm)).coefficients), 1.0 / 3.0, 1e-6);
  EXPECT_NEAR(share_of_limit(captured(launch_of(KernelClass::gelu)).coefficients), 1.0 / 3.0, 1e-6);
  EXPECT_NEAR(share_of_limit(captured(launch_of(KernelClass::other)).coefficients), 0.2, 1e-6);
  // Captured at half the clock it would take half the time at the highest one: half the energy.
  const GpuSpec gpu = round_gpu();
  const CapturePoint at{{MemStateId{0}, 500.0}, launch_time_s, 1e4};
  EXPECT_NEAR(share_of_limit(anchored(gpu, launch_of(KernelClass::gemm), at).coefficients),
              0.5 / 3.0, 1e-6);
}

TEST(AnchorPriors, LinksDrawATwentiethOfTheLimitAndCopiesAFiftieth) {
  const Kernel reduction = launch_of(KernelClass::communication, "ncclDevKernel_AllReduce");
  EXPECT_NEAR(share_of_limit(captured(reduction, 0.0).coefficients), 0.05, 0.05 * 2e-3);
  const Kernel copy = launch_of(KernelClass::memcpy, "Memcpy HtoD");
  EXPECT_NEAR(share_of_limit(captured(copy).coefficients), 0.02, 0.02 * 2e-3);
}

double guess_of(KernelClass kind) {
  return core_over_dram_time(captured(launch_of(kind)).coefficients);
}

// Where nothing but the class is known: the median of the class on the GPU that was fitted, of the
// classes that wait for both core and DRAM there.
TEST(AnchorPriors, ClassesAreSplitLikeThoseOfTheFittedGpu) {
  const GpuSpec fitted = load_gpu_spec("rtx-3080-ti");
  const ClockState top = clock_state(fitted, fitted.default_clock, false);
  std::map<KernelClass, std::vector<double>> ratios;
  for (const CalibratedKernel& kernel : fitted.kernels) {
    ratios[kernel.kind].push_back(kernel.coefficients.core_cycles * top.s_per_cycle *
                                  top.dram_bytes_per_s / kernel.coefficients.dram_bytes);
  }
  for (const KernelClass kind :
       {KernelClass::gemm, KernelClass::gemm_batched, KernelClass::permute, KernelClass::softmax,
        KernelClass::embedding, KernelClass::layernorm, KernelClass::bias}) {
    std::vector<double>& of_class = ratios.at(kind);
    std::ranges::sort(of_class);
    const std::size_t n = of_class.size();
    const double median = (of_class[(n - 1) / 2] + of_class[n / 2]) / 2.0;
    EXPECT_NEAR(std::log(guess_of(kind) / median), 0.0, std::log(1.5)) << static_cast<int>(kind);
  }
}

TEST(AnchorPriors, ClassesThatWereNotFittedAreTakenLikeTheirNearest) {
  EXPECT_GT(guess_of(KernelClass::attention), 2.0 * guess_of(KernelClass::gemm_batched));
  EXPECT_LT(guess_of(KernelClass::attention), 0.5 * guess_of(KernelClass::gemm));
  for (const KernelClass kind : {KernelClass::reduce, KernelClass::residual_layernorm})
    EXPECT_NEAR(guess_of(kind), guess_of(KernelClass::bias), 1e-9);
  // Element-wise work streams: a tenth of its DRAM time or less is core time.
  for (const KernelClass kind :
       {KernelClass::gelu, KernelClass::elementwise, KernelClass::optimizer})
    EXPECT_NEAR(guess_of(kind), 0.1, 1e-9);
  for (const KernelClass kind : {KernelClass::memcpy, KernelClass::memset})
    EXPECT_LE(captured(launch_of(kind, "Memcpy DtoD")).coefficients.core_cycles,
              1e-3 * 1e9 * launch_time_s);
  for (const KernelClass kind : {KernelClass::bias_reduce, KernelClass::other})
    EXPECT_NEAR(guess_of(kind), 1.0, 1e-9);  // in balance
}

// A tenth of the peak, and nothing said of bytes: the class decides, not the FLOPs alone.
TEST(AnchorPriors, FlopsWithoutBytesLeaveTheSplitToTheClass) {
  Kernel product = launch_of(KernelClass::gemm);
  product.flops = 0.1 * 1e5 * 1e9 * launch_time_s;
  EXPECT_NEAR(core_over_dram_time(captured(product).coefficients), guess_of(KernelClass::gemm),
              1e-9);
}

// Caches and refresh leave 15 % of counted bytes open, to both sides.
TEST(AnchorPriors, CountedBytesAreOpenByFifteenPercent) {
  Kernel counted = launch_of(KernelClass::elementwise);
  counted.dram_bytes = 0.3 * 100e9 * launch_time_s;
  counted.work_source = WorkSource::measured;
  const auto bytes_at = [&](double lean) {
    return captured(counted, lean).coefficients.dram_bytes / *counted.dram_bytes;
  };
  EXPECT_NEAR(bytes_at(0.0), 1.15, 1e-3);
  EXPECT_NEAR(bytes_at(0.5), 1.0, 1e-3);
  EXPECT_NEAR(bytes_at(1.0), 0.85, 1e-3);
}

// What the class was fitted to draw per byte, not what is assumed of traffic.
TEST(AnchorPriors, AFittedClassDrawsWhatItWasFittedTo) {
  GpuSpec gpu = round_gpu();
  gpu.classes = {{.kind = KernelClass::gelu,
                  .cycles_per_unit = 1e-3,
                  .dram_factor = 1.0,
                  .core_nj_per_unit = 0.5,
                  .fixed_s = 1e-6}};
  Kernel stream = launch_of(KernelClass::gelu);
  stream.dram_bytes = 0.5 * 100e9 * launch_time_s;
  const CapturePoint at{gpu.default_clock, launch_time_s, 1e4};
  EXPECT_NEAR(anchored(gpu, stream, at).coefficients.core_j, 0.5e-9 * *stream.dram_bytes, 1e-9);
}

}  // namespace
}  // namespace rubato
