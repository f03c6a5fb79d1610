#include "models/gpu/device.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/gpu/clock_grid.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

using Names = std::vector<std::string>;

// Every shipped spec is found by the name of its card.
TEST(Device, EveryShippedSpecIsFoundByTheNameOfItsCard) {
  const std::vector<std::pair<const char*, Names>> cards{
      {"NVIDIA A100-PCIE-80GB", {"a100-pcie-80gb"}},
      {"NVIDIA A100-SXM4-80GB", {"a100-sxm4-80gb"}},
      {"NVIDIA A40", {"a40"}},
      {"NVIDIA B300 SXM6 AC", {"b300-sxm6"}},
      {"NVIDIA GeForce GTX 1080 Ti", {"gtx-1080-ti"}},
      {"NVIDIA GeForce GTX TITAN X", {"gtx-titan-x"}},
      {"NVIDIA H100 80GB HBM3", {"h100-sxm5"}},
      {"NVIDIA H200", {"h200-sxm5"}},
      {"NVIDIA GeForce RTX 2070 SUPER", {"rtx-2070-super"}},
      {"NVIDIA GeForce RTX 3080 Ti",
       {"rtx-3080-ti", "rtx-3080-ti-2", "rtx-3080-ti-without-table1"}},
      {"NVIDIA GeForce RTX 4050 Laptop GPU", {"rtx-4050-laptop"}},
      {"NVIDIA GeForce RTX 5090", {"rtx-5090"}},
      {"Quadro RTX 8000", {"rtx-8000"}},
      {"NVIDIA RTX A4000", {"rtx-a4000"}},
      {"NVIDIA RTX PRO 6000 Blackwell", {"rtx-pro-6000"}},
      {"NVIDIA TITAN V", {"titan-v"}},
      {"NVIDIA TITAN Xp", {"titan-xp"}},
      {"Tesla V100-PCIE-16GB", {"v100-pcie"}},
      {"Tesla V100-SXM2-32GB", {"v100-sxm2"}},
      {"NVIDIA A100-PCIE-40GB", {"a100-pcie-40gb"}},
      {"NVIDIA A100-SXM4-40GB", {"a100-sxm4-40gb"}},
      {"NVIDIA A10", {"a10"}},
      {"NVIDIA B200", {"b200-sxm6"}},
      {"NVIDIA GB200", {"gb200"}},
      {"NVIDIA H100 NVL", {"h100-nvl"}},
      {"NVIDIA H100 PCIe", {"h100-pcie"}},
      {"NVIDIA H20", {"h20"}},
      {"NVIDIA H800", {"h800-sxm5"}},
      {"NVIDIA L4", {"l4"}},
      {"NVIDIA L40S", {"l40s"}},
      {"AMD Instinct MI300X", {"mi300x"}},
      {"NVIDIA GeForce RTX 4090", {"rtx-4090"}},
      {"NVIDIA RTX 5000 Ada Generation", {"rtx-5000-ada"}},
      {"NVIDIA RTX 6000 Ada Generation", {"rtx-6000-ada"}}};
  std::set<std::string> found;
  for (const auto& [device, specs] : cards) {
    EXPECT_EQ(specs_matching(device, DeviceMatch::same), specs) << device;
    found.insert(specs.begin(), specs.end());
  }
  const Names shipped = shipped_gpu_specs();
  EXPECT_EQ(found, std::set<std::string>(shipped.begin(), shipped.end()));
}

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
       {"", "NVIDIA", "NVIDIA A100-PG509-200", "NVIDIA GeForce RTX 3080",
        "NVIDIA GeForce RTX 3080 Ti Laptop GPU", "NVIDIA H200 NVL", "NVIDIA GeForce RTX 4050",
        "NVIDIA GeForce RTX 5090 Laptop GPU", "NVIDIA GeForce RTX 5090 D",
        "NVIDIA RTX A4000 Laptop GPU", "Quadro RTX 8000 with Max-Q Design",
        "NVIDIA TITAN X (Pascal)", "NVIDIA TITAN RTX", "NVIDIA GeForce RTX 2070",
        "Tesla V100-SXM3-32GB", "Tesla V100S-PCIE-32GB", "NVIDIA B300", "NVIDIA GH200 480GB"})
    EXPECT_TRUE(same(other).empty()) << other;
}

TEST(Device, FindsTheSpecsOfItsChip) {
  const auto near = [](const char* device) { return specs_matching(device, DeviceMatch::near); };
  EXPECT_EQ(near("NVIDIA A100-PG509-200"),
            (Names{"a100-pcie-80gb", "a100-sxm4-80gb", "a100-pcie-40gb", "a100-sxm4-40gb"}));
  EXPECT_EQ(near("Tesla V100-SXM3-32GB"), Names{"v100-sxm2"});
  EXPECT_EQ(near("Tesla V100-DGXS-32GB"), (Names{"v100-pcie", "v100-sxm2"}));
  EXPECT_EQ(near("NVIDIA A100-SXM-64GB"), (Names{"a100-sxm4-80gb", "a100-sxm4-40gb"}));
  EXPECT_EQ(near("NVIDIA B300"), Names{"b300-sxm6"});
  EXPECT_EQ(near("NVIDIA RTX PRO 6000 Blackwell Server Edition"), Names{"rtx-pro-6000"});
  for (const char* other :
       {"NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 Ti Laptop GPU", "NVIDIA A10G",
        "AMD Instinct MI250X", "NVIDIA B100", "NVIDIA", "Tesla V100S-PCIE-32GB",
        "NVIDIA GeForce RTX 4050", "NVIDIA GeForce RTX 5090 Laptop GPU", "NVIDIA GH200 480GB"})
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
  EXPECT_EQ(label("5001/2103"), "5001/2100");
  for (const char* bad : {"", "1470", "9501/", "fast/1470", "9501/-3", "9501/1470/2"}) {
    expect_error<UsageError>([&] { (void)captured_clock(spec, bad); }, "is no captured clock");
  }
}

TEST(CapturedClock, RefusesWhatTheGpuDoesNotHave) {
  const GpuSpec a100 = load_gpu_spec("a100-sxm4-80gb");
  expect_error<UsageError>([&] { (void)captured_clock(a100, "1410/1593"); },
                           "no memory clock is near 1410");
  expect_error<UsageError>([&] { (void)captured_clock(a100, "1593/2000"); },
                           "no core clock is near 2000");
  expect_error<UsageError>([&] { (void)captured_clock(a100, "auto/100"); }, "it has core 210 to");
}

}  // namespace
}  // namespace rubato
