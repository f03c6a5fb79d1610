#include "explorer/report/setting_lines.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace rubato {
namespace {

MemStateId memory(const GpuSpec& spec, const std::string& name) {
  const auto found = std::ranges::find(spec.mem_states, name, &MemState::name);
  return id_at<MemStateId>(static_cast<std::size_t>(found - spec.mem_states.begin()));
}

TEST(SettingLines, CoreClockAloneWhereMemoryStays) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  EXPECT_EQ(one_clock_line(spec, {spec.default_clock.mem, 1305.0}),
            "To set: sudo nvidia-smi -lgc 1305,1305; back: sudo nvidia-smi -rgc\n");
  EXPECT_EQ(one_clock_line(spec, spec.default_clock),
            "To set: nothing, these are the default clocks.\n");
}

TEST(SettingLines, MemoryTooWhereItIsNotTheDefault) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  EXPECT_EQ(one_clock_line(spec, {memory(spec, "5001"), 1470.0}),
            "To set: sudo nvidia-smi -lgc 1470,1470 && sudo nvidia-smi -lmc 5001,5001; back: sudo "
            "nvidia-smi -rgc && sudo nvidia-smi -rmc\n");
}

TEST(SettingLines, WholeMegahertz) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  EXPECT_EQ(one_clock_line(spec, {spec.default_clock.mem, 277.5}),
            "To set: sudo nvidia-smi -lgc 278,278; back: sudo nvidia-smi -rgc\n");
}

TEST(SettingLines, AmdByItsOwnTool) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  spec.title = "AMD Instinct MI300X";
  EXPECT_EQ(one_clock_line(spec, {spec.default_clock.mem, 1305.0}),
            "To set: sudo rocm-smi --setperfdeterminism 1305; back: sudo rocm-smi "
            "--resetperfdeterminism\n");
}

TEST(SettingLines, PathsAreOneWordToAShell) {
  EXPECT_EQ(
      play_command("graph:2", 7, "a b.db"),
      "rubato export --plan graph:2 --plan-id 7 --db 'a b.db' -o plan.json && sudo -E python3 "
      "-m rubato apply plan.json -- python3 train.py");
  EXPECT_NE(play_lines("kernel", "a b.db").find("--db 'a b.db' -o"), std::string::npos);
}

}  // namespace
}  // namespace rubato
