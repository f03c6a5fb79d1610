// Rates of concurrent kernels against sums by hand.

#include "sim/sharing/shared_gpu.hpp"

#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/gpu/clock_grid.hpp"

namespace rubato {
namespace {

RC_GTEST_PROP(Stretch, GrantsAllThereIsAndNoMore, ()) {
  std::vector<double> uses;
  const int users = *rc::gen::inRange(2, 7);
  for (int i = 0; i < users; ++i) uses.push_back(0.01 * *rc::gen::inRange(0, 101));
  const double factor = stretch(uses);
  double granted = 0.0;
  for (const double use : uses) granted += use / (1.0 - use + use * factor);
  const double wanted = std::accumulate(uses.begin(), uses.end(), 0.0);
  RC_ASSERT(factor >= 1.0);
  RC_ASSERT(std::abs(granted - std::min(wanted, 1.0)) <= 1e-9);
}

struct SharedKernels {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  ClockPair clock = parse_clock_pair(spec, "1593/1410");
  KernelCoefficients core{.core_cycles = 1.41e6, .dram_bytes = 1.0, .fixed_s = 1e-9, .core_j = 0.1};
  KernelCoefficients dram{.core_cycles = 1.0, .dram_bytes = 1e9, .fixed_s = 1e-9, .core_j = 0.01};
  KernelCoefficients wire{.core_cycles = 1.0, .dram_bytes = 1.0, .fixed_s = 1e-3, .core_j = 0.01};

  [[nodiscard]] SharedGpu gpu(std::vector<SmDemand> demands, double limit_w = 1e4,
                              const CollectiveSharing& collectives = {}) const {
    return {spec, {core, dram, wire}, std::move(demands), clock, limit_w, collectives};
  }
};

std::vector<double> rates(SharedGpu& gpu, std::vector<std::uint32_t> running) {
  return gpu.at(running).launches_per_s;
}

TEST(SharedGpu, ComputeHasTheSmsACollectiveLeaves) {
  const SharedKernels made;
  SharedGpu gpu = made.gpu({{1.0, 0.0}, {1.0, 0.0}, {0.25, 27.0}});  // 27 of 108 SMs
  EXPECT_NEAR(rates(gpu, {0})[0], 1e3, 1.0);  // 1.41 million cycles at 1410 MHz
  EXPECT_NEAR(rates(gpu, {0, 2})[0] / rates(gpu, {0})[0], 0.75, 1e-5);
  // DRAM-bound work does not need all SMs.
  EXPECT_NEAR(rates(gpu, {1, 2})[0] / rates(gpu, {1})[0], 1.0, 1e-3);
  // A grid that fits beside the collective is not slowed down.
  SharedGpu small = made.gpu({{0.5, 0.0}, {1.0, 0.0}, {0.25, 27.0}});
  EXPECT_NEAR(rates(small, {0, 2})[0] / rates(small, {0})[0], 1.0, 1e-5);
}

TEST(SharedGpu, ACollectiveIsSlowerBesideLoad) {
  const SharedKernels made;
  CollectiveSharing collectives;
  collectives.load_slowdown = 0.5;
  SharedGpu gpu = made.gpu({{1.0, 0.0}, {1.0, 0.0}, {0.25, 27.0}}, 1e4, collectives);
  EXPECT_NEAR(rates(gpu, {2})[0], 1e3, 1.0);
  EXPECT_NEAR(rates(gpu, {0, 2})[1] / rates(gpu, {2})[0], 1.0 / 1.5, 1e-4);
  EXPECT_NEAR(rates(gpu, {0, 1, 2})[2] / rates(gpu, {2})[0], 1.0 / 1.5, 1e-4);  // busy is busy
  EXPECT_NEAR(rates(gpu, {2, 2})[0] / rates(gpu, {2})[0], 1.0, 1e-4);  // collectives only wait
}

// What was measured of a GPU that waits is what it draws while nothing runs, and of nothing else.
TEST(SharedGpu, WaitsAtTheMeasuredPower) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const KernelCoefficients kernel{
      .core_cycles = 1e6, .dram_bytes = 1e8, .fixed_s = 1e-6, .core_j = 0.1};
  const auto power_w = [&](std::span<const std::uint32_t> running) {
    SharedGpu gpu(spec, {kernel}, {SmDemand{}}, spec.default_clock, spec.power_limit.limit_w);
    return gpu.at(running).power_w();
  };
  const std::array<std::uint32_t, 1> one{0};
  const double busy_w = power_w(one);
  spec.waiting = WaitingPower{{510.0, 1410.0}, {50.0, 60.0}};
  EXPECT_DOUBLE_EQ(power_w({}), 60.0);
  EXPECT_DOUBLE_EQ(power_w(one), busy_w);
}

TEST(SharedGpu, PowerEndsAtTheLimit) {
  const SharedKernels made;
  SharedGpu free = made.gpu({{1.0, 0.0}, {1.0, 0.0}, {0.25, 27.0}});
  const Sharing& wide = free.at(std::vector<std::uint32_t>{0, 1, 2});
  EXPECT_FALSE(wide.power_limited);
  for (const double share : {0.95, 0.8}) {
    const double limit_w = share * wide.power_w() / made.spec.power_limit.regulated_frac;
    SharedGpu capped = made.gpu({{1.0, 0.0}, {1.0, 0.0}, {0.25, 27.0}}, limit_w);
    const Sharing& tight = capped.at(std::vector<std::uint32_t>{0, 1, 2});
    EXPECT_TRUE(tight.power_limited);
    EXPECT_LT(tight.core_mhz, 1410.0);
    EXPECT_LE(tight.power_w(), share * wide.power_w());
    EXPECT_NEAR(tight.power_w(), share * wide.power_w(), 1e-4);
  }
  // A limit that no clock meets: the lowest clock there is.
  SharedGpu frozen = made.gpu({{1.0, 0.0}, {1.0, 0.0}, {0.25, 27.0}}, 1.0);
  EXPECT_EQ(frozen.at(std::vector<std::uint32_t>{0, 1}).core_mhz, made.spec.core.min_mhz);
}

// Answers are kept in a table that grows: each is that of a fresh object, and stays where it is.
RC_GTEST_PROP(SharedGpu, KeptAnswersAreThoseOfAFreshOne, ()) {
  static const SharedKernels made;
  const std::vector<SmDemand> demands{{1.0, 0.0}, {0.3, 0.0}, {0.25, 27.0}};
  SharedGpu kept = made.gpu(demands, 250.0);
  std::vector<std::pair<std::vector<std::uint32_t>, const Sharing*>> asked;
  for (int i = 0; i < 120; ++i) {
    std::vector<std::uint32_t> set(static_cast<std::size_t>(*rc::gen::inRange(0, 6)));
    for (std::uint32_t& kernel : set) kernel = *rc::gen::inRange<std::uint32_t>(0, 3);
    const Sharing* sharing = &kept.at(set);
    asked.emplace_back(std::move(set), sharing);
  }
  for (std::size_t i = 0; i < asked.size(); i += 10) {
    SharedGpu fresh = made.gpu(demands, 250.0);
    const Sharing& expected = fresh.at(asked[i].first);
    RC_ASSERT(asked[i].second == &kept.at(asked[i].first));
    RC_ASSERT(asked[i].second->launches_per_s == expected.launches_per_s);
    RC_ASSERT(asked[i].second->power_w() == expected.power_w());
  }
}

TEST(SmDemand, BlocksOfACollectiveHoldSms) {
  Kernel kernel;
  kernel.kind = KernelClass::gemm;
  EXPECT_EQ(sm_demand(kernel, 108.0).share, 1.0);
  EXPECT_EQ(sm_demand(kernel, 108.0).held, 0.0);
  kernel.launch = LaunchShape{.grid = {9, 6, 1}, .block = {256, 1, 1}};
  EXPECT_EQ(sm_demand(kernel, 108.0).share, 0.5);
  kernel.kind = KernelClass::communication;
  kernel.launch = LaunchShape{.grid = {24, 1, 1}, .block = {512, 1, 1}};
  EXPECT_EQ(sm_demand(kernel, 108.0).held, 24.0);
  kernel.launch = LaunchShape{.grid = {500, 1, 1}, .block = {512, 1, 1}};
  EXPECT_EQ(sm_demand(kernel, 108.0).held, 108.0);
}

TEST(Collective, ItsCopyTimeFallsWithItsSms) {
  const SharedKernels made;
  const CollectiveSharing sharing;
  const ClockState top = clock_state(made.spec, made.clock, false);
  const auto time_s = [&](double sms, double threads) {
    return unlimited_point(top, collective_on_sms(sharing, 20e-6, 1e8, sms, threads)).time_s;
  };
  // 100 MB at 6.85 GB/s and SM.
  EXPECT_NEAR(time_s(1, 1024), 20e-6 + 1e8 / 6.85e9, 1e-6);
  EXPECT_NEAR(time_s(4, 1024), 20e-6 + 1e8 / 6.85e9 / 4.0, 1e-5);
  EXPECT_NEAR((time_s(1, 512) - 20e-6) / (time_s(1, 1024) - 20e-6), std::pow(2.0, 0.854), 1e-4);
}

TEST(Collective, CopyingLongerIsWhatFewerSmsTakeAndBack) {
  const CollectiveSharing sharing;
  const auto copying_s = [&](double sms) { return copy_time_s(sharing, 1e8, sms, 640); };
  const KernelCoefficients known = collective_on_sms(sharing, 20e-6, 1e8, 16, 640);
  const KernelCoefficients moved = copying_longer(sharing, known, copying_s(6) - copying_s(16));
  const KernelCoefficients expected = collective_on_sms(sharing, 20e-6, 1e8, 6, 640);
  EXPECT_NEAR(moved.core_cycles / expected.core_cycles, 1.0, 1e-12);
  EXPECT_NEAR(moved.fixed_s / expected.fixed_s, 1.0, 1e-12);
  const KernelCoefficients back = copying_longer(sharing, moved, copying_s(16) - copying_s(6));
  EXPECT_NEAR(back.core_cycles / known.core_cycles, 1.0, 1e-12);
  EXPECT_NEAR(back.fixed_s / known.fixed_s, 1.0, 1e-12);
}

}  // namespace
}  // namespace rubato
