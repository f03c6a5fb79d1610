#include "explorer/report/setting_lines.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/ids.hpp"
#include "common/text.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/device.hpp"

namespace rubato {

namespace {

// Drivers take whole MHz.
long whole_mhz(double mhz) { return std::lround(mhz); }

void add(SettingCommands& commands, std::string_view set, std::string_view back) {
  const std::string_view joint = commands.set.empty() ? "" : " && ";
  commands.set += fmt::format("{}sudo nvidia-smi {}", joint, set);
  commands.back += fmt::format("{}sudo nvidia-smi {}", joint, back);
}

// Application clocks: both clocks at once, on GPUs since Kepler. What is to stay as the driver
// chooses it is asked for at its highest.
SettingCommands application_clocks(const GpuSpec& spec, const ClockPair& clock) {
  const MemState& memory = spec.mem_states[index(clock.mem)];
  SettingCommands commands;
  add(commands,
      fmt::format("-ac {},{}", whole_mhz(memory.mem_mhz),
                  whole_mhz(clock.core_mhz.value_or(nearest_step_mhz(spec, memory.boost_mhz)))),
      "-rac");
  return commands;
}

}  // namespace

SettingCommands setting_commands(const GpuSpec& spec, const ClockPair& clock) {
  if (clock == spec.default_clock) return {};
  if (vendor_of(spec.title) == GpuVendor::amd) {
    if (!clock.core_mhz) return {};
    return {fmt::format("sudo rocm-smi --setperfdeterminism {}", whole_mhz(*clock.core_mhz)),
            "sudo rocm-smi --resetperfdeterminism"};
  }
  // The driver locks core clocks from Volta on, and memory clocks from Ampere on.
  constexpr double volta = 7.0, ampere = 8.0;
  const MemState& memory = spec.mem_states[index(clock.mem)];
  const bool memory_changes = clock.mem != spec.default_clock.mem && memory.name != "auto";
  const double needed = memory_changes ? ampere : volta;
  const std::optional<double> generation = compute_capability(spec);
  if (generation && *generation < needed) return application_clocks(spec, clock);
  SettingCommands commands;
  if (clock.core_mhz)
    add(commands, fmt::format("-lgc {0},{0}", whole_mhz(*clock.core_mhz)), "-rgc");
  if (memory_changes) add(commands, fmt::format("-lmc {0},{0}", whole_mhz(memory.mem_mhz)), "-rmc");
  if (generation || commands.set.empty()) return commands;
  // One of the two works.
  const SettingCommands older = application_clocks(spec, clock);
  return {fmt::format("{} || {}", commands.set, older.set),
          fmt::format("{} || {}", commands.back, older.back)};
}

std::string one_clock_line(const GpuSpec& spec, const ClockPair& clock) {
  if (clock == spec.default_clock) return "To set: nothing, these are the default clocks.\n";
  const SettingCommands commands = setting_commands(spec, clock);
  return commands.set.empty() ? ""
                              : fmt::format("To set: {}; back: {}\n", commands.set, commands.back);
}

std::string play_command(std::string_view run, std::int64_t plan_id, std::string_view db) {
  return fmt::format(
      "rubato export --plan {} --plan-id {} --db {} -o plan.json && sudo -E python3 -m rubato "
      "apply plan.json -- python3 train.py",
      run, plan_id, shell_word(db));
}

std::string play_lines(std::string_view granularity, std::string_view db, bool cheapest) {
  return fmt::format(
      "To play the plan per {}{}:\n  rubato export --plan latest --granularity {}{} --db {} -o "
      "plan.json\n"
      "  sudo -E python3 -m rubato apply plan.json -- python3 train.py\n",
      granularity, db.empty() ? " (store it first, with --db results.db)" : "", granularity,
      cheapest ? " --goal cost" : "", db.empty() ? "results.db" : shell_word(db));
}

}  // namespace rubato
