#include "tools/options/gpu.hpp"
#include "models/validation/logged_power.hpp"

#include <array>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tools/options/captured.hpp"

namespace rubato {
namespace {

using Names = std::vector<std::string>;

TEST(GpuOption, DevicesMustBeOfOneKind) {
  const Names same{"NVIDIA A40", "NVIDIA A40"}, mixed{"NVIDIA A40", "NVIDIA H200"},
      partly{"NVIDIA A40", ""};
  EXPECT_EQ(load_gpu_of_devices(same, "x.json").name, "a40");
  expect_error<UsageError>([&] { (void)load_gpu_of_devices(mixed, "x.json"); },
                           "x.json: it is of different GPUs: NVIDIA A40, NVIDIA H200", "--gpu");
  // Of one run: what has no name is of the only kind that is named.
  EXPECT_EQ(load_gpu_of_devices(partly, "x.json").name, "a40");
  expect_error<UsageError>([&] { (void)load_gpu_of_devices({}, "x.json"); },
                           "does not say on which GPU");
}

TEST(GpuOption, TakesNamesThatDriversPrint) {
  EXPECT_EQ(load_gpu("NVIDIA H100 80GB HBM3").name, "h100-sxm5");
  EXPECT_EQ(load_gpu("NVIDIA GeForce RTX 3080 Ti").name, "rtx-3080-ti");  // of three, the usual one
  // Whatever a title calls the GPU alone means its spec.
  for (const std::string& name : shipped_gpu_specs()) {
    const std::string title = load_gpu_spec(name).title;
    if (title.find(' ') != std::string::npos && title.find_first_of(",(") == std::string::npos) {
      EXPECT_EQ(load_gpu_spec(title).name, name);
    }
  }
  expect_error<UsageError>([] { (void)load_gpu("NVIDIA B100"); },
                           "there is no GPU spec of 'NVIDIA B100'", "rubato gpus");
}

TEST(GpuOption, TakesTheSameChipOrListsTheNearest) {
  const auto of = [](const char* device) {
    return load_gpu_of_devices(std::array{std::string(device)}, "x.json").name;
  };
  EXPECT_EQ(of("NVIDIA A100-SXM4-80GB"), "a100-sxm4-80gb");
  EXPECT_EQ(of("Tesla V100-SXM3-32GB"), "v100-sxm2");
  EXPECT_EQ(of("Tesla V100-SXM2-32GB"), "v100-sxm2");
  // Of three, the one that is not of a particular card or fit.
  EXPECT_EQ(of("NVIDIA GeForce RTX 3080 Ti"), "rtx-3080-ti");
  const auto refused = [&](const char* device, std::string_view what, std::string_view hint) {
    expect_error<UsageError>([&] { (void)of(device); }, what, hint);
  };
  refused("NVIDIA A100-PG509-200", "NVIDIA A100-PG509-200; 4 are of the same chip",
          "a100-pcie-80gb, a100-sxm4-80gb");
  refused("NVIDIA A10G", "no shipped spec is of its GPU, NVIDIA A10G; those of the nearest chips",
          "a40");
  refused("AMD Instinct MI250X",
          "its GPU is AMD Instinct MI250X; no spec of it is shipped, and none of NVIDIA's is near",
          "add-a-gpu.md");
}

TEST(GpuOption, AChipIsToldWhereTheNameTellsNone) {
  Capture capture;
  capture.devices = {{0, "", 9.0, 132U}, {1, "NVIDIA A40", 8.6, 84U}, {2, "Graphics Device", 8.0}};
  EXPECT_EQ(device_names(std::span(&capture, 1)),
            (Names{"GPU (compute capability 9.0, 132 SMs)", "NVIDIA A40",
                   "Graphics Device (compute capability 8.0)"}));
}

TEST(GpuOption, AGeneratedRunNamesItsSpec) {
  const Names device{"NVIDIA GeForce RTX 3080 Ti"}, other{"NVIDIA A40"};
  const Provenance made{"rubato 0.1.0", "", "gpu=rtx-3080-ti-2 cluster= dp=1"};
  EXPECT_EQ(spec_of_generator(made, device), "rtx-3080-ti-2");
  EXPECT_EQ(load_gpu_for_devices("", device, made, "x.json").name, "rtx-3080-ti-2");
  EXPECT_EQ(load_gpu_for_devices("a40", device, made, "x.json").name, "a40");
  EXPECT_FALSE(spec_of_generator(made, other));
  EXPECT_FALSE(spec_of_generator({"PyTorch profiler (Kineto)", "", made.options}, device));
  EXPECT_FALSE(spec_of_generator({made.generator, "", "gpu=my-own-spec"}, device));
}

TEST(GpuOption, AnotherVendorsSpecIsRefusedAnotherChipsIsNot) {
  const Names amd{"AMD Instinct MI300X"}, hopper{"NVIDIA H100 80GB HBM3"};
  expect_error<UsageError>([&] { (void)load_gpu_for_devices("h100-sxm5", amd, {}, "x.json"); },
                           "h100-sxm5 is another vendor's");
  EXPECT_EQ(load_gpu_for_devices("a100-sxm4-80gb", hopper, {}, "x.json").name, "a100-sxm4-80gb");
}

TEST(CapturedOptions, TheLogsClockIsThatOfTheBusyGpu) {
  PowerLog log;
  const auto add = [&](double power_w, double core_mhz, std::optional<double> mem_mhz) {
    log.samples.push_back({static_cast<double>(log.samples.size()), power_w, core_mhz, mem_mhz});
  };
  EXPECT_FALSE(logged_clock(log));
  for (int i = 0; i < 5; ++i) add(60.0, 210.0, 1215.0);
  for (int i = 0; i < 3; ++i) add(300.0, 1110.0, 1593.0);
  EXPECT_EQ(logged_clock(log), "1593/1110");
  for (PowerSample& sample : log.samples) sample.mem_mhz.reset();
  EXPECT_EQ(logged_clock(log), "auto/1110");
}

}  // namespace
}  // namespace rubato
