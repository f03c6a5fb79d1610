#include "explorer/report/setting_lines.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "common/ids.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/device.hpp"

namespace rubato {

namespace {

// Drivers take whole MHz.
long whole_mhz(double mhz) { return std::lround(mhz); }

// @param gpus  "-i 0,1 ", or empty: all
void add(SettingCommands& commands, std::string_view gpus, std::string_view set,
         std::string_view back) {
  const std::string_view joint = commands.set.empty() ? "" : " && ";
  commands.set += fmt::format("{}sudo nvidia-smi {}{}", joint, gpus, set);
  commands.back += fmt::format("{}sudo nvidia-smi {}{}", joint, gpus, back);
}

// Application clocks: both clocks at once, on GPUs since Kepler. What is to stay as the driver
// chooses it is asked for at its highest.
SettingCommands application_clocks(const GpuSpec& spec, const ClockPair& clock,
                                   std::string_view gpus) {
  const MemState& memory = spec.mem_states[index(clock.mem)];
  SettingCommands commands;
  add(commands, gpus,
      fmt::format("-ac {},{}", whole_mhz(memory.mem_mhz),
                  whole_mhz(clock.core_mhz.value_or(nearest_step_mhz(spec, memory.boost_mhz)))),
      "-rac");
  return commands;
}

// What sets the clocks alone. @param gpus  as commands_for
SettingCommands clock_commands(const GpuSpec& spec, const ClockPair& clock,
                               std::span<const std::int64_t> indices) {
  if (clock.mem == spec.default_clock.mem && clock.core_mhz == spec.default_clock.core_mhz)
    return {};
  if (vendor_of(spec.title) == GpuVendor::amd) {
    if (!clock.core_mhz) return {};
    const std::string gpus = indices.empty() ? "" : fmt::format("-d {} ", fmt::join(indices, " "));
    return {
        fmt::format("sudo rocm-smi {}--setperfdeterminism {}", gpus, whole_mhz(*clock.core_mhz)),
        fmt::format("sudo rocm-smi {}--resetperfdeterminism", gpus)};
  }
  const std::string gpus = indices.empty() ? "" : fmt::format("-i {} ", fmt::join(indices, ","));
  // The driver locks core clocks from Volta on, and memory clocks from Ampere on.
  constexpr double volta = 7.0, ampere = 8.0;
  const MemState& memory = spec.mem_states[index(clock.mem)];
  const bool memory_changes = clock.mem != spec.default_clock.mem && memory.name != "auto";
  const double needed = memory_changes ? ampere : volta;
  const std::optional<double> generation = compute_capability(spec);
  if (generation && *generation < needed) return application_clocks(spec, clock, gpus);
  SettingCommands commands;
  if (clock.core_mhz)
    add(commands, gpus, fmt::format("-lgc {0},{0}", whole_mhz(*clock.core_mhz)), "-rgc");
  if (memory_changes)
    add(commands, gpus, fmt::format("-lmc {0},{0}", whole_mhz(memory.mem_mhz)), "-rmc");
  if (generation || commands.set.empty()) return commands;
  // One of the two works.
  const SettingCommands older = application_clocks(spec, clock, gpus);
  return {fmt::format("{} || {}", commands.set, older.set),
          fmt::format("{} || {}", commands.back, older.back)};
}

// @param indices  the GPUs of the machine; empty: all of them
SettingCommands commands_for(const GpuSpec& spec, const ClockPair& clock,
                             std::span<const std::int64_t> indices) {
  SettingCommands commands = clock_commands(spec, clock, indices);
  if (!clock.power_limit_w || vendor_of(spec.title) == GpuVendor::amd) return commands;
  const std::string gpus = indices.empty() ? "" : fmt::format("-i {} ", fmt::join(indices, ","));
  add(commands, gpus, fmt::format("-pl {}", format_number(*clock.power_limit_w)),
      fmt::format("-pl {}", format_number(spec.power_limit.limit_w)));
  return commands;
}

/// Targets of one setting.
struct SharedClock {
  const TargetClock* first;
  std::vector<std::int64_t> numbers, gpus;
};

std::vector<SharedClock> by_clock(std::span<const TargetClock> targets) {
  std::vector<SharedClock> shared;
  for (const TargetClock& target : targets) {
    auto same = std::ranges::find_if(
        shared, [&](const SharedClock& one) { return one.first->clock == target.clock; });
    if (same == shared.end()) same = shared.insert(shared.end(), SharedClock{&target, {}, {}});
    same->numbers.push_back(target.number);
    same->gpus.insert(same->gpus.end(), target.gpus.begin(), target.gpus.end());
  }
  return shared;
}

// "0 to 2, 5": ascending numbers, three and more in a row as a range.
std::string ranges_text(std::span<const std::int64_t> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last < i + 2) last = i;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format(" to {}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string clock_text(const GpuSpec& spec, const TargetClock& target) {
  ClockPair clock = target.clock;
  clock.power_limit_w.reset();
  std::string text = clock == spec.default_clock ? "default clocks"
                     : clock.core_mhz            ? fmt::format("{} MHz", whole_mhz(*clock.core_mhz))
                                                 : "core as the driver chooses";
  if (clock.mem != spec.default_clock.mem)
    text += fmt::format(", memory {}", spec.mem_states[index(clock.mem)].name);
  if (target.clock.power_limit_w)
    text += fmt::format(", {} W", format_number(*target.clock.power_limit_w));
  return text;
}

}  // namespace

SettingCommands setting_commands(const GpuSpec& spec, const ClockPair& clock) {
  return commands_for(spec, clock, {});
}

std::vector<std::int64_t> gpus_of_target(std::int64_t number, std::int64_t of_each,
                                         std::int64_t all) {
  if (all > most_gpus_of_node || (number + 1) * of_each > all) return {};
  std::vector<std::int64_t> gpus(static_cast<std::size_t>(of_each));
  std::iota(gpus.begin(), gpus.end(), number * of_each);
  return gpus;
}

std::vector<TargetClock> clock_of_each_target(const PlanFile& file, const PlanFilePlan& plan) {
  if (!file.gpu || !file.gpu->known) return {};
  const GpuSpec& spec = *file.gpu->known;
  const auto all = static_cast<std::int64_t>(plan.gpus.size());
  const std::int64_t of_stage =
      file.run.tensor_parallel.value_or(1) * file.run.data_parallel.value_or(1);
  const bool by_rank =
      std::ranges::adjacent_find(plan.gpus, {}, &PlanFileGpu::rank) == plan.gpus.end() && all > 1;
  std::vector<TargetClock> targets;
  for (const PlanFileGpu& gpu : plan.gpus) {
    const std::optional<std::size_t> told = gpu.segments.front().clock;
    const auto other = [&](const PlanFileSegment& one) { return one.clock != told; };
    if (!told || std::ranges::any_of(gpu.segments, other)) return {};
    const PlanFileClock& clock = file.clocks[*told];
    const auto state = std::ranges::find_if(
        spec.mem_states, [&](const MemState& one) { return clock.mem_mhz == one.mem_mhz; });
    TargetClock& target = targets.emplace_back();
    target.number = static_cast<std::int64_t>(targets.size()) - 1;
    if (by_rank && gpu.rank) target.number = *gpu.rank;
    if (gpu.stage) target.number = *gpu.stage;
    target.gpus =
        gpus_of_target(target.number, gpu.stage ? of_stage : 1, gpu.stage ? all * of_stage : all);
    target.kind = gpu.stage ? "stage" : target.gpus.empty() ? "rank" : "GPU";
    target.clock = {
        .mem = state == spec.mem_states.end()
                   ? spec.default_clock.mem
                   : id_at<MemStateId>(static_cast<std::size_t>(state - spec.mem_states.begin())),
        .core_mhz = clock.core_mhz};
    if (clock.power_limit_w != spec.power_limit.limit_w)
      target.clock.power_limit_w = clock.power_limit_w;
  }
  if (targets.size() == 1) targets.front().gpus.clear();  // of all GPUs that run it
  return targets;
}

std::string clocks_by_target_text(const GpuSpec& spec, std::span<const TargetClock> targets) {
  std::string text;
  for (const SharedClock& shared : by_clock(targets)) {
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", shared.first->kind,
                        ranges_text(shared.numbers), clock_text(spec, *shared.first));
  }
  return text;
}

std::string clocks_by_target_lines(const GpuSpec& spec, std::span<const TargetClock> targets) {
  std::string set, back, apart;
  const std::vector<SharedClock> clocks = by_clock(targets);
  for (const SharedClock& shared : clocks) {
    const SettingCommands commands = commands_for(spec, shared.first->clock, shared.gpus);
    if (commands.set.empty()) continue;
    if (shared.gpus.empty() && clocks.size() > 1) {
      apart += fmt::format("  on the GPUs of {} {}: {}; back: {}\n", shared.first->kind,
                           ranges_text(shared.numbers), commands.set, commands.back);
      continue;
    }
    set += fmt::format("{}{}", set.empty() ? "" : " && ", commands.set);
    back += fmt::format("{}{}", back.empty() ? "" : " && ", commands.back);
  }
  if (!apart.empty()) return fmt::format("To set:\n{}", apart);
  return set.empty() ? "" : fmt::format("To set: {}; back: {}\n", set, back);
}

std::string setting_lines_of(const GpuSpec& spec, const TargetClock& target) {
  constexpr std::string_view asking = "sudo ";
  std::string lines;
  std::vector<std::int64_t> gpus = target.gpus;
  if (gpus.empty()) gpus.push_back(-1);  // every GPU of the machine
  for (const std::int64_t gpu : gpus) {
    const std::vector<std::int64_t> alone(gpu < 0 ? 0 : 1, gpu);
    const SettingCommands commands = commands_for(spec, target.clock, alone);
    std::string line = commands.set;
    if (line.empty() && vendor_of(spec.title) == GpuVendor::nvidia)
      line = gpu < 0 ? "nvidia-smi -rgc" : fmt::format("nvidia-smi -i {} -rgc", gpu);
    for (std::size_t at = line.find(asking); at != std::string::npos; at = line.find(asking))
      line.erase(at, asking.size());
    if (!line.empty()) lines += line + '\n';
  }
  return lines;
}

std::string one_clock_line(const GpuSpec& spec, const ClockPair& clock) {
  if (clock == spec.default_clock) return "To set: nothing, these are the default clocks.\n";
  const SettingCommands commands = setting_commands(spec, clock);
  return commands.set.empty() ? ""
                              : fmt::format("To set: {}; back: {}\n", commands.set, commands.back);
}

std::string play_command(std::string_view run, std::int64_t plan_id, std::string_view db) {
  return fmt::format(
      "rubato export --plan {} --plan-id {} --db {} -o plan.json && sudo -E rubato "
      "apply plan.json -- python3 train.py",
      run, plan_id, shell_word(db));
}

}  // namespace rubato
