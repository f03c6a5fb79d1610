#include "sim/switch_model.hpp"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(SwitchModel, OfASpecIsWhatItKnows) {
  GpuSpec spec = load_gpu_spec("a40");
  spec.switching = {
      .core_s = 0.010, .mem_s = 0.5, .core_stall_s = 0.002, .mem_stall_s = 0.5, .dwell_s = 0.1};
  const SwitchModel model = switch_model(spec);
  EXPECT_EQ(model.guess, "");
  EXPECT_DOUBLE_EQ(model.core.latency_s(), 0.010);
  EXPECT_DOUBLE_EQ(model.core.stall_s, 0.002);
  EXPECT_DOUBLE_EQ(model.change(true, true).latency_s(), 0.510);
  EXPECT_EQ(
      change_text(model),
      "10 ms (2 ms of it a stall), of the memory clock 500 ms (500 ms of it a stall), the next one "
      "100 ms later");
}

TEST(SwitchModel, AsStallsWaitsOutWholeLatencies) {
  const SwitchModel model = as_stalls({.core = {.stall_s = 0.1, .energy_j = 2.0, .lead_s = 0.4},
                                       .mem = SwitchCost{.lead_s = 0.3},
                                       .dwell_s = 0.2});
  EXPECT_DOUBLE_EQ(model.core.stall_s, 0.5);
  EXPECT_EQ(model.core.lead_s, 0.0);
  EXPECT_EQ(model.core.energy_j, 2.0);
  EXPECT_EQ(model.mem.value().stall_s, 0.3);
  EXPECT_EQ(model.dwell_s, 0.2);
}

// Three of four chips that are known change their clock as quickly or quicker.
TEST(SwitchModel, IsGuessedWhereNobodyMeasured) {
  GpuSpec spec = load_gpu_spec("a40");
  spec.switching = {};
  const SwitchModel model = switch_model(spec);
  EXPECT_FALSE(model.is_free());
  EXPECT_EQ(change_text(model), "22 ms (a guess: nobody measured this GPU)");
  int as_quick = 0, slower = 0;
  for (const char* known : {"v100-pcie", "h200-sxm5", "a100-sxm4-80gb", "rtx-8000"}) {
    const double latency_s = switch_model(load_gpu_spec(known)).core.latency_s();
    as_quick += latency_s <= model.core.latency_s();
    slower += latency_s > model.core.latency_s();
  }
  EXPECT_EQ(as_quick, 3);
  EXPECT_EQ(slower, 1);
}

// What was measured on another card, or never verified, is a guess for this one.
TEST(SwitchModel, SaysWhyALatencyIsAGuess) {
  const auto text = [](const char* gpu) { return change_text(switch_model(load_gpu_spec(gpu))); };
  EXPECT_EQ(text("h200-sxm5"), "6 ms");
  EXPECT_EQ(text("v100-sxm2"), "4.14 ms");
  EXPECT_EQ(text("h100-sxm5"), "6 ms (a guess: measured on the H200, the same chip)");
  EXPECT_EQ(text("v100-pcie"), "4.14 ms (a guess: measured on the V100-SXM2)");
  EXPECT_EQ(text("rtx-8000"), "150 ms (a guess: measured on the Quadro RTX 6000, the same chip)");
  for (const char* recalled : {"a100-sxm4-80gb", "a100-pcie-80gb"})
    EXPECT_EQ(text(recalled), "22 ms (a guess: recalled, not verified)");
}

}  // namespace
}  // namespace rubato
