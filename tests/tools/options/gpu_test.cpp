#include "tools/options/gpu.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

// Names as drivers say them.
TEST(GpuOption, FindsTheSpecOfADevice) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(specs_of_device("NVIDIA A100-SXM4-80GB"), Names{"a100-sxm4-80gb"});
  EXPECT_EQ(specs_of_device("NVIDIA A100 80GB PCIe"), Names{"a100-pcie-80gb"});
  EXPECT_EQ(specs_of_device("NVIDIA H100 80GB HBM3"), Names{"h100-sxm5"});
  EXPECT_EQ(specs_of_device("NVIDIA H200"), Names{"h200-sxm5"});
  EXPECT_EQ(specs_of_device("Tesla V100-PCIE-16GB"), Names{"v100-pcie"});
  EXPECT_EQ(specs_of_device("NVIDIA TITAN Xp"), Names{"titan-xp"});
  EXPECT_EQ(specs_of_device("GeForce GTX TITAN X"), Names{"gtx-titan-x"});
  EXPECT_EQ(specs_of_device("NVIDIA GeForce RTX 3080 Ti"), (Names{"rtx-3080-ti", "rtx-3080-ti-2"}));
  // Like, but not the same card.
  for (const char* other :
       {"", "NVIDIA", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-PG509-200", "NVIDIA H100 PCIe",
        "NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 Ti Laptop GPU", "NVIDIA H200 NVL"})
    EXPECT_TRUE(specs_of_device(other).empty()) << other;
}

TEST(GpuOption, DevicesMustBeOfOneKind) {
  const std::vector<std::string> same{"NVIDIA A40", "NVIDIA A40"},
      mixed{"NVIDIA A40", "NVIDIA H200"}, partly{"NVIDIA A40", ""};
  EXPECT_EQ(load_gpu_of_devices(same, "x.json").name, "a40");
  expect_error<UsageError>([&] { (void)load_gpu_of_devices(mixed, "x.json"); },
                           "x.json: it is of different GPUs: NVIDIA A40, NVIDIA H200", "--gpu");
  expect_error<UsageError>([&] { (void)load_gpu_of_devices(partly, "x.json"); },
                           "it is of different GPUs");
  expect_error<UsageError>([&] { (void)load_gpu_of_devices({}, "x.json"); },
                           "does not say on which GPU");
}

}  // namespace
}  // namespace rubato
