#include "models/gpu/device.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/gpu/clock_grid.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

using Names = std::vector<std::string>;

// Names as drivers say them.
TEST(Device, FindsTheSpecOfACard) {
  const auto same = [](const char* device) { return specs_matching(device, DeviceMatch::same); };
  EXPECT_EQ(same("NVIDIA A100-SXM4-80GB"), Names{"a100-sxm4-80gb"});
  EXPECT_EQ(same("NVIDIA A100 80GB PCIe"), Names{"a100-pcie-80gb"});
  EXPECT_EQ(same("NVIDIA H100 80GB HBM3"), Names{"h100-sxm5"});
  EXPECT_EQ(same("NVIDIA H200"), Names{"h200-sxm5"});
  EXPECT_EQ(same("Tesla V100-PCIE-16GB"), Names{"v100-pcie"});
  EXPECT_EQ(same("NVIDIA TITAN Xp"), Names{"titan-xp"});
  EXPECT_EQ(same("GeForce GTX TITAN X"), Names{"gtx-titan-x"});
  EXPECT_EQ(same("NVIDIA GeForce RTX 3080 Ti"),
            (Names{"rtx-3080-ti", "rtx-3080-ti-2", "rtx-3080-ti-without-table1"}));
  // Like, but not the same card.
  for (const char* other :
       {"", "NVIDIA", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-PG509-200", "NVIDIA H100 PCIe",
        "NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 Ti Laptop GPU", "NVIDIA H200 NVL"})
    EXPECT_TRUE(same(other).empty()) << other;
}

TEST(Device, FindsTheSpecsOfItsChip) {
  const auto near = [](const char* device) { return specs_matching(device, DeviceMatch::near); };
  EXPECT_EQ(near("NVIDIA A100-SXM4-40GB"), Names{"a100-sxm4-80gb"});
  EXPECT_EQ(near("NVIDIA A100-PCIE-40GB"), Names{"a100-pcie-80gb"});
  EXPECT_EQ(near("NVIDIA A100-PG509-200"), (Names{"a100-pcie-80gb", "a100-sxm4-80gb"}));
  EXPECT_EQ(near("Tesla V100-SXM2-32GB"), Names{"v100-pcie"});
  EXPECT_EQ(near("NVIDIA H100 PCIe"), Names{"h100-sxm5"});
  EXPECT_EQ(near("NVIDIA RTX PRO 6000 Blackwell Server Edition"), Names{"rtx-pro-6000"});
  for (const char* other : {"NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 Ti Laptop GPU",
                            "NVIDIA A10", "AMD Instinct MI300X", "NVIDIA B300", "NVIDIA"})
    EXPECT_TRUE(near(other).empty()) << other;
}

TEST(Device, KnowsTheVendor) {
  EXPECT_EQ(vendor_of("AMD Instinct MI300X"), GpuVendor::amd);
  EXPECT_EQ(vendor_of("MI250X"), GpuVendor::amd);
  EXPECT_EQ(vendor_of("gfx942"), GpuVendor::amd);
  EXPECT_EQ(vendor_of("Intel(R) Data Center GPU Max 1550"), GpuVendor::intel);
  EXPECT_EQ(vendor_of("NVIDIA A100-SXM4-80GB"), GpuVendor::nvidia);
  EXPECT_EQ(vendor_of("Tesla V100-SXM2-32GB"), GpuVendor::nvidia);
}

TEST(CapturedClock, TakesTheNearestOfTheSpec) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const auto label = [&](const std::optional<std::string>& clock) {
    const ClockPair pair = captured_clock(spec, clock);
    const ClockGrid grid(spec, {pair});
    return grid.label(*grid.find(pair));
  };
  EXPECT_EQ(label({}), "auto/auto");
  EXPECT_EQ(label("auto/auto"), "auto/auto");
  EXPECT_EQ(label("9501/1470"), "9501/1470");
  EXPECT_EQ(label("9490/1473"), "9501/1470");
  EXPECT_EQ(label("5001/9999"), "5001/2100");
  for (const char* bad : {"", "1470", "9501/", "fast/1470", "9501/-3", "9501/1470/2"}) {
    expect_error<UsageError>([&] { (void)captured_clock(spec, bad); }, "is no captured clock");
  }
}

}  // namespace
}  // namespace rubato
