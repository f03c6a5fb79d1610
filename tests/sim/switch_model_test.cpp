#include "sim/switch_model.hpp"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(SwitchModel, OfASpecIsWhatItKnows) {
  GpuSpec spec = load_gpu_spec("a40");
  spec.switching = {
      .core_s = 0.010, .mem_s = 0.5, .core_stall_s = 0.002, .mem_stall_s = 0.5, .dwell_s = 0.1};
  const SwitchModel model = switch_model(spec);
  EXPECT_FALSE(model.guessed);
  EXPECT_DOUBLE_EQ(model.core.latency_s(), 0.010);
  EXPECT_DOUBLE_EQ(model.core.stall_s, 0.002);
  EXPECT_DOUBLE_EQ(model.change(true, true).latency_s(), 0.510);
  EXPECT_EQ(
      change_text(model),
      "10 ms (2 ms of it a stall), of the memory clock 500 ms (500 ms of it a stall), the next one "
      "100 ms later");
}

// Three of four chips that are known change their clock as quickly or quicker.
TEST(SwitchModel, IsGuessedWhereNobodyMeasured) {
  GpuSpec spec = load_gpu_spec("a40");
  spec.switching = {};
  const SwitchModel model = switch_model(spec);
  EXPECT_TRUE(model.guessed);
  EXPECT_FALSE(model.is_free());
  EXPECT_EQ(change_text(model), "22 ms (a guess: nobody measured this GPU)");
  int as_quick = 0, slower = 0;
  for (const char* known : {"v100-pcie", "h200-sxm5", "a100-sxm4-80gb", "rtx-8000"}) {
    const double latency_s = switch_model(load_gpu_spec(known)).core.latency_s();
    EXPECT_FALSE(switch_model(load_gpu_spec(known)).guessed) << known;
    as_quick += latency_s <= model.core.latency_s();
    slower += latency_s > model.core.latency_s();
  }
  EXPECT_EQ(as_quick, 3);
  EXPECT_EQ(slower, 1);
}

}  // namespace
}  // namespace rubato
