#pragma once
// Options that say what a change of clock takes.

#include <optional>
#include <string>

#include "sim/switch_model.hpp"

namespace rubato {

class CommandLine;

struct SwitchOptions {
  std::string source = {};  ///< none or spec; the options below replace its values. Empty: none
  std::optional<double> latency_us, stall_us, energy_j, dwell_us;
  std::optional<double> mem_latency_us, mem_stall_us, mem_energy_j;
};

void add_switch_options(CommandLine& app, SwitchOptions& options);

/// Whether any option is given.
[[nodiscard]] bool is_given(const SwitchOptions& options);

/// Whether the line has an option about what a change of clock takes.
[[nodiscard]] bool gives_switching(const CommandLine& line);

/// What the options say. A stall that is given without a latency is the latency too.
/// @throws UsageError naming the wrong option
[[nodiscard]] SwitchModel switch_model(const SwitchOptions& options, const GpuSpec& spec);

}  // namespace rubato
