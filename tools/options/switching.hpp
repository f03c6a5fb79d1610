#pragma once
// Options that say what a change of clock takes.

#include <optional>
#include <string>

#include "sim/switch_model.hpp"

namespace rubato {

class CommandLine;

struct SwitchOptions {
  std::string source = "none";  ///< none or spec; the options below replace its values
  std::optional<double> latency_us, stall_us, energy_j, dwell_us;
  std::optional<double> mem_latency_us, mem_stall_us, mem_energy_j;
};

void add_switch_options(CommandLine& app, SwitchOptions& options);

/// Whether the line says anything of what a change of clock takes.
[[nodiscard]] bool gives_switching(const CommandLine& line);

/// A stall without a latency is the latency. @throws UsageError naming the wrong option
[[nodiscard]] SwitchModel switch_model(const SwitchOptions& options, const GpuSpec& spec);

}  // namespace rubato
