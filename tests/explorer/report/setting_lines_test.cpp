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

TEST(SettingLines, ClocksByGpu) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const MemStateId usual = spec.default_clock.mem;
  const auto target = [&](std::int64_t number, std::optional<double> core_mhz) {
    return TargetClock{
        .number = number, .gpus = gpus_of_target(number, 1, 5), .clock = {usual, core_mhz}};
  };
  const std::vector<TargetClock> targets{target(0, 1200), target(1, 1200), target(2, 1200),
                                         target(3, 1410), target(4, std::nullopt)};
  EXPECT_EQ(clocks_by_target_text(spec, targets),
            "GPU 0 to 2: 1200 MHz; GPU 3: 1410 MHz; GPU 4: default clocks");
  EXPECT_EQ(clocks_by_target_lines(spec, targets),
            "To set: sudo nvidia-smi -i 0,1,2 -lgc 1200,1200 && sudo nvidia-smi -i 3 -lgc "
            "1410,1410; back: sudo nvidia-smi -i 0,1,2 -rgc && sudo nvidia-smi -i 3 -rgc\n");
  // Those of one clock stand together wherever they are.
  EXPECT_EQ(clocks_by_target_text(
                spec, std::vector{target(0, 900), target(1, 1005), target(2, 900), target(3, 900)}),
            "GPU 0, 2, 3: 900 MHz; GPU 1: 1005 MHz");
}

TEST(SettingLines, ClocksAndLimitsByStage) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const auto stage = [&](std::int64_t number, double core_mhz, double limit_w, std::int64_t all) {
    return TargetClock{.kind = "stage",
                       .number = number,
                       .gpus = gpus_of_target(number, 2, all),
                       .clock = {memory(spec, "5001"), core_mhz, limit_w}};
  };
  const std::vector targets{stage(0, 1470, 300, 4), stage(1, 1470, 250, 4)};
  EXPECT_EQ(clocks_by_target_text(spec, targets),
            "stage 0: 1470 MHz, memory 5001, 300 W; stage 1: 1470 MHz, memory 5001, 250 W");
  const std::string lines = clocks_by_target_lines(spec, targets);
  EXPECT_NE(lines.find("sudo nvidia-smi -i 0,1 -pl 300 && "), std::string::npos) << lines;
  EXPECT_NE(lines.find("sudo nvidia-smi -i 2,3 -lmc 5001,5001 && sudo nvidia-smi -i 2,3 -pl 250;"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find("-i 2,3 -pl 350\n"), std::string::npos) << lines;  // the card's own
  // GPUs of several nodes have numbers of their own on each.
  const std::string nodes =
      clocks_by_target_lines(spec, std::vector{stage(0, 1470, 0, 32), stage(1, 1260, 0, 32)});
  EXPECT_EQ(nodes.find("-i "), std::string::npos) << nodes;
  EXPECT_NE(nodes.find("  on the GPUs of stage 1: sudo nvidia-smi -lgc 1260,1260 && "),
            std::string::npos)
      << nodes;
  // One clock for all of a machine needs no word of which.
  const std::string all =
      clocks_by_target_lines(spec, std::vector{stage(0, 1470, 0, 32), stage(1, 1470, 0, 32)});
  EXPECT_TRUE(all.starts_with("To set: sudo nvidia-smi -lgc 1470,1470 && ")) << all;
}

TEST(SettingLines, WholeMegahertz) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  EXPECT_EQ(one_clock_line(spec, {spec.default_clock.mem, 277.5}),
            "To set: sudo nvidia-smi -lgc 278,278; back: sudo nvidia-smi -rgc\n");
}

// The driver locks core clocks from Volta on and memory clocks from Ampere on.
TEST(SettingLines, EveryShippedGpuGetsWhatItsDriverCanDo) {
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    for (std::uint32_t mem = 0; mem < spec.mem_states.size(); ++mem) {
      const std::string set = setting_commands(spec, {MemStateId{mem}, spec.core.min_mhz}).set;
      EXPECT_TRUE(spec.compute_capability >= 7.0 || set.find("-lgc") == std::string::npos) << set;
      EXPECT_TRUE(spec.compute_capability >= 8.0 || set.find("-lmc") == std::string::npos) << set;
      EXPECT_EQ(set.find("||"), std::string::npos) << set;
    }
  }
}

TEST(SettingLines, ApplicationClocksBeforeLockedOnes) {
  const GpuSpec pascal = load_gpu_spec("gtx-1080-ti");
  const MemStateId other{pascal.default_clock.mem.value == 0 ? 1U : 0U};
  const std::string mem = pascal.mem_states[index(other)].name;
  EXPECT_EQ(one_clock_line(pascal, {other, 1700.0}),
            "To set: sudo nvidia-smi -ac " + mem + ",1700; back: sudo nvidia-smi -rac\n");
  const GpuSpec turing = load_gpu_spec("rtx-2070-super");
  EXPECT_EQ(one_clock_line(turing, {turing.default_clock.mem, 1680.0}),
            "To set: sudo nvidia-smi -lgc 1680,1680; back: sudo nvidia-smi -rgc\n");
  EXPECT_EQ(one_clock_line(turing, {memory(turing, "6800"), 1680.0}),
            "To set: sudo nvidia-smi -ac 6800,1680; back: sudo nvidia-smi -rac\n");
}

// A user's spec without the field is of the generation that its title says; else both ways.
TEST(SettingLines, WithoutAGenerationOneWayAfterTheOther) {
  GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const ClockPair clock{memory(spec, "5001"), 1470.0};
  const std::string known = one_clock_line(spec, clock);
  spec.compute_capability.reset();
  EXPECT_EQ(one_clock_line(spec, clock), known);
  spec.title = "NVIDIA Unheard of";
  EXPECT_EQ(one_clock_line(spec, clock),
            "To set: sudo nvidia-smi -lgc 1470,1470 && sudo nvidia-smi -lmc 5001,5001 || sudo "
            "nvidia-smi -ac 5001,1470; back: sudo nvidia-smi -rgc && sudo nvidia-smi -rmc || sudo "
            "nvidia-smi -rac\n");
}

TEST(SettingLines, AmdByItsOwnTool) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  spec.title = "AMD Instinct MI300X";
  EXPECT_EQ(one_clock_line(spec, {spec.default_clock.mem, 1305.0}),
            "To set: sudo rocm-smi --setperfdeterminism 1305; back: sudo rocm-smi "
            "--resetperfdeterminism\n");
}

TEST(SettingLines, PathsAreOneWordToAShell) {
  EXPECT_EQ(play_command("2", 7, "a b.db"),
            "rubato export --plan 2 --plan-id 7 --db 'a b.db' -o plan.json && sudo -E rubato "
            "apply plan.json -- python3 train.py");
}

}  // namespace
}  // namespace rubato
