#pragma once
// The lines to type that set a plan on a GPU: docs/apply.md.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// What to type to set a clock pair with the tool of the GPU's maker, and to go back to the default
/// clocks. Both are empty where nothing is to do, or the tool cannot set the clock. NVIDIA's driver
/// locks core clocks from Volta on and memory clocks from Ampere on. Older GPUs get application
/// clocks, which are ceilings too; where the generation is not known, the one command is tried
/// after the other.
struct SettingCommands {
  std::string set, back;
};
[[nodiscard]] SettingCommands setting_commands(const GpuSpec& spec, const ClockPair& clock);

/// The line that sets one clock pair with the tool of the GPU's maker. For the default clocks it
/// says that nothing is to do.
[[nodiscard]] std::string one_clock_line(const GpuSpec& spec, const ClockPair& clock);

/// The line that plays one stored plan.
/// @param run  as `rubato export --plan` names it, "run:3" or "graph:3"
/// @param db   the database that holds it
[[nodiscard]] std::string play_command(std::string_view run, std::int64_t plan_id,
                                       std::string_view db);

/// The lines that play the newest stored plan of several clocks.
/// @param db        the database that holds it; empty: it is not stored, which the line says
/// @param cheapest  the plan of least cost, where there may be others
[[nodiscard]] std::string play_lines(std::string_view granularity, std::string_view db,
                                     bool cheapest = false);

}  // namespace rubato
