#pragma once
// The lines to type that set a plan on a GPU: docs/apply.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/plan/plan_file.hpp"
#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// What to type to set a clock pair and its power limit with the tool of the GPU's maker, and to go
/// back to the default clocks and the spec's limit. Both are empty where nothing is to do, or the
/// tool cannot set the clock. NVIDIA's driver locks core clocks from Volta on and memory clocks
/// from Ampere on. Older GPUs get application clocks, which are ceilings too; where the generation
/// is not known, the one command is tried after the other.
struct SettingCommands {
  std::string set, back;
};
[[nodiscard]] SettingCommands setting_commands(const GpuSpec& spec, const ClockPair& clock);

/// A GPU or stage that is told one clock.
struct TargetClock {
  std::string_view kind = "GPU";   ///< what it is called: "GPU", "rank", "stage"
  std::int64_t number = 0;         ///< of its kind
  std::vector<std::int64_t> gpus;  ///< indices of nvidia-smi; empty: they lie on several nodes
  ClockPair clock = {};
};

/// Most GPUs that are taken to be in one node, and numbered as its ranks are.
inline constexpr std::int64_t most_gpus_of_node = 16;

/// GPUs of a run with this number of GPUs that a rank or stage has.
/// @param of_each  GPUs of each rank or stage
/// @return empty if there are more than one node has
[[nodiscard]] std::vector<std::int64_t> gpus_of_target(std::int64_t number, std::int64_t of_each,
                                                       std::int64_t all);

/// The clock of each GPU or stage of a plan, where each has one. Of a plan for one GPU it is that
/// of every GPU.
/// @return empty if clocks change within a step, or the GPU is not known
[[nodiscard]] std::vector<TargetClock> clock_of_each_target(const PlanFile& file,
                                                            const PlanFilePlan& plan);

/// "GPU 0 to 2: 1200 MHz; GPU 3: 1410 MHz". Those of one clock are named together.
[[nodiscard]] std::string clocks_by_target_text(const GpuSpec& spec,
                                                std::span<const TargetClock> targets);

/// What sets each of them, "nvidia-smi -i 0,1,2 -lgc 1200,1200" and so on, and what gives all of
/// them back. Where their GPUs are on several nodes, a line for each, to be typed there.
[[nodiscard]] std::string clocks_by_target_lines(const GpuSpec& spec,
                                                 std::span<const TargetClock> targets);

/// What sets the clocks of one target, a line for each of its GPUs, for a shell with the rights to:
/// "nvidia-smi -i 0 -lgc 1200,1200". The default clocks too.
[[nodiscard]] std::string setting_lines_of(const GpuSpec& spec, const TargetClock& target);

/// The line that sets one clock pair with the tool of the GPU's maker. For the default clocks it
/// says that nothing is to do.
[[nodiscard]] std::string one_clock_line(const GpuSpec& spec, const ClockPair& clock);

/// The line that plays one stored plan.
/// @param run  as `rubato export --plan` names it, "3"
/// @param db   the database that holds it
[[nodiscard]] std::string play_command(std::string_view run, std::int64_t plan_id,
                                       std::string_view db);

}  // namespace rubato
