#include "models/gpu/family.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/gpu/device.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {
namespace {

// The names say what the specs hold: NVIDIA's compute capability, and the SMs of the card.
TEST(GpuFamily, OfEveryShippedSpecIsThatOfTheSpec) {
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    const auto family = family_of(spec.title);
    if (vendor_of(spec.title) != GpuVendor::nvidia) continue;
    ASSERT_TRUE(family) << spec.title;
    EXPECT_EQ(family->compute_capability, spec.compute_capability) << spec.title;
    const GpuSpec nearest = load_gpu_spec(nearest_specs(spec.title).front());
    EXPECT_EQ(nearest.compute_capability, spec.compute_capability) << spec.title;
    EXPECT_EQ(nearest.sm_count, spec.sm_count) << spec.title;
  }
}

// Compute capabilities from NVIDIA's table, names as drivers say them.
TEST(GpuFamily, IsReadFromTheName) {
  const std::vector<std::pair<const char*, double>> known{
      {"Tesla T4", 7.5},
      {"NVIDIA L4", 8.9},
      {"NVIDIA L40S", 8.9},
      {"NVIDIA A10G", 8.6},
      {"NVIDIA A10", 8.6},
      {"NVIDIA A30", 8.0},
      {"NVIDIA A800-SXM4-80GB", 8.0},
      {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", 8.0},
      {"NVIDIA H20", 9.0},
      {"NVIDIA GH200 480GB", 9.0},
      {"NVIDIA B100", 10.0},
      {"NVIDIA GB200", 10.0},
      {"NVIDIA GB300", 10.3},
      {"NVIDIA GB10", 12.1},
      {"NVIDIA GeForce RTX 5080", 12.0},
      {"NVIDIA GeForce RTX 4090 Laptop GPU", 8.9},
      {"NVIDIA GeForce RTX 3090", 8.6},
      {"NVIDIA GeForce GTX 1660 Ti", 7.5},
      {"NVIDIA GeForce GTX 1650", 7.5},
      {"NVIDIA GeForce GTX 1060 6GB", 6.1},
      {"NVIDIA GeForce GTX 970", 5.2},
      {"NVIDIA RTX 6000 Ada Generation", 8.9},
      {"NVIDIA RTX 5000 Ada Generation", 8.9},
      {"NVIDIA RTX A6000", 8.6},
      {"NVIDIA RTX PRO 4500 Blackwell", 12.0},
      {"Quadro RTX 6000", 7.5},
      {"Quadro P4000", 6.1},
      {"Quadro GV100", 7.0},
      {"NVIDIA T1000", 7.5},
      {"NVIDIA TITAN RTX", 7.5},
      {"NVIDIA TITAN X (Pascal)", 6.1},
      {"Tesla P100-PCIE-16GB", 6.0},
      {"Tesla P40", 6.1},
      {"Tesla V100S-PCIE-32GB", 7.0},
      {"Tesla M60", 5.2},
      {"Tesla K80", 3.7},
      {"Orin", 8.7},
      {"Xavier", 7.2}};
  for (const auto& [device, capability] : known) {
    const auto family = family_of(device);
    ASSERT_TRUE(family) << device;
    EXPECT_EQ(family->compute_capability, capability) << device;
  }
  for (const char* other : {"", "NVIDIA", "NVIDIA Graphics Device", "AMD Instinct MI300X",
                            "AMD Radeon RX 7900 XTX", "Intel(R) Arc(TM) A770 Graphics", "Apple M4"})
    EXPECT_FALSE(family_of(other)) << other;
}

// The same chip on another card, else the next chip of its line: HBM and not are two lines.
TEST(GpuFamily, NearestSpecIsOfTheSameOrTheNextChip) {
  const std::vector<std::pair<const char*, const char*>> nearest{
      {"NVIDIA B200", "b200-sxm6"},
      {"NVIDIA B100", "b200-sxm6"},
      {"NVIDIA GB200", "b200-sxm6"},
      {"NVIDIA H800", "h100-sxm5"},
      {"NVIDIA H20", "h20"},
      {"NVIDIA GH200 480GB", "h100-sxm5"},
      {"NVIDIA A800-SXM4-80GB", "a100-sxm4-80gb"},
      {"NVIDIA A800 80GB PCIe", "a100-pcie-80gb"},
      {"NVIDIA A30", "a100-pcie-80gb"},
      {"Tesla V100S-PCIE-32GB", "v100-pcie"},
      {"Tesla P100-SXM2-16GB", "v100-sxm2"},
      {"Tesla P100-PCIE-16GB", "v100-pcie"},
      {"Tesla T4", "rtx-2070-super"},              // TU104 with 40 SMs, both
      {"Quadro RTX 6000", "rtx-8000"},             // TU102, both
      {"NVIDIA GeForce RTX 2080 Ti", "rtx-8000"},  // TU102, both
      {"NVIDIA A10", "a10"},                       // GA102, both
      {"NVIDIA A10G", "a40"},
      {"NVIDIA RTX A6000", "a40"},
      {"NVIDIA RTX A5000", "a10"},
      {"NVIDIA GeForce RTX 3090", "rtx-3080-ti"},
      {"NVIDIA L4", "l4"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA RTX 6000 Ada Generation", "l40s"},
      {"NVIDIA GeForce RTX 5080", "rtx-5090"},
      {"NVIDIA RTX PRO 4500 Blackwell", "rtx-pro-6000"},
      {"NVIDIA GB10", "rtx-pro-6000"},
      {"NVIDIA GeForce GTX 1080", "gtx-1080-ti"},
      {"Tesla M40", "gtx-titan-x"},
      {"Tesla K80", "gtx-titan-x"},
      {"Orin", "rtx-a4000"}};
  for (const auto& [device, spec] : nearest) {
    const std::vector<std::string> found = nearest_specs(device);
    ASSERT_FALSE(found.empty()) << device;
    EXPECT_EQ(found.front(), spec) << device;
  }
  EXPECT_TRUE(nearest_specs("AMD Instinct MI300X").empty());
  EXPECT_TRUE(nearest_specs("Intel(R) Data Center GPU Max 1550").empty());
  EXPECT_TRUE(nearest_specs("NVIDIA Graphics Device").empty());
  // What a file says of the chip, where the name tells nothing of it.
  EXPECT_EQ(nearest_specs("Graphics Device (compute capability 9.0, 132 SMs)").front(),
            "h100-sxm5");
  EXPECT_EQ(nearest_specs("GPU (compute capability 8.0)").front().substr(0, 4), "a100");
  EXPECT_EQ(nearest_specs("NVIDIA T4 (compute capability 9.0, 132 SMs)"),
            nearest_specs("NVIDIA T4"));
  for (const char* odd :
       {"X (compute capability", "X (compute capability nine)", "X (compute capability -9.0)",
        "X (compute capability )", "X (compute capability ,"})
    EXPECT_TRUE(nearest_specs(odd).empty()) << odd;
  EXPECT_FALSE(family_of("X (compute capability 9.0,").value().sm_count);
  EXPECT_FALSE(family_of("X (compute capability 9.0, -3 SMs)").value().sm_count);
}

}  // namespace
}  // namespace rubato
