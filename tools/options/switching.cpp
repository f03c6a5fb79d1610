#include "tools/options/switching.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "tools/command_line.hpp"

namespace rubato {

namespace {

// 100 s and a megajoule: more is a slip of units.
constexpr double most_us = 1e8, most_j = 1e6;

std::optional<double> checked(const char* option, std::optional<double> value, double most) {
  if (value && !(*value >= 0.0 && *value <= most)) {
    throw UsageError(fmt::format("{} is {}; expected a number from 0 to {}", option,
                                 format_number(*value), format_number(most)));
  }
  return value;
}

// The cost of a change of one clock: what is known already, replaced by its options.
SwitchCost cost(const SwitchCost& known, const std::string& prefix,
                std::optional<double> latency_us, std::optional<double> stall_us,
                std::optional<double> energy_j) {
  const std::string latency = prefix + "switch-latency-us", stall = prefix + "switch-stall-us";
  checked(latency.c_str(), latency_us, most_us);
  checked(stall.c_str(), stall_us, most_us);
  checked((prefix + "switch-energy-j").c_str(), energy_j, most_j);
  const double known_latency_s = latency_us || !stall_us ? known.latency_s() : 0.0;
  const double stall_s = stall_us ? *stall_us / us_per_s : latency_us ? 0.0 : known.stall_s;
  const double latency_s = latency_us ? *latency_us / us_per_s : std::max(known_latency_s, stall_s);
  if (stall_s > latency_s) {
    throw UsageError(fmt::format("{} is {} and {} is {}; the stall is part of the latency", stall,
                                 format_number(us_per_s * stall_s), latency,
                                 format_number(us_per_s * latency_s)));
  }
  return {.stall_s = stall_s,
          .energy_j = energy_j.value_or(known.energy_j),
          .lead_s = latency_s - stall_s};
}

}  // namespace

void add_switch_options(CommandLine& app, SwitchOptions& o) {
  app.add_option("--switching", o.source,
                 "Changes of clock: none (they cost nothing) or spec (as the GPU spec knows them); "
                 "the options below replace single values [spec; without it what is given below]")
      ->one_of({"none", "spec"});
  app.add_option("--switch-latency-us", o.latency_us,
                 "Time from the request of a change of clock to its effect, us");
  app.add_option(
      "--switch-stall-us", o.stall_us,
      "Part of that at its end during which the GPU waits, us; alone, it is the latency");
  app.add_option("--switch-energy-j", o.energy_j,
                 "Energy of each change of clock beyond idle power, J");
  app.add_option("--switch-dwell-us", o.dwell_us,
                 "Time from an effect to the next request at least, us");
  app.add_option("--mem-switch-latency-us", o.mem_latency_us,
                 "The same for the memory clock [any change is like one of the core clock]");
  app.add_option("--mem-switch-stall-us", o.mem_stall_us, "The same for the memory clock");
  app.add_option("--mem-switch-energy-j", o.mem_energy_j, "The same for the memory clock");
}

bool gives_switching(const CommandLine& line) {
  return std::ranges::any_of(
      std::array{"--switching", "--switch-latency-us", "--switch-stall-us", "--switch-energy-j",
                 "--switch-dwell-us", "--mem-switch-latency-us", "--mem-switch-stall-us",
                 "--mem-switch-energy-j"},
      [&](const char* option) { return line.has(option); });
}

bool is_given(const SwitchOptions& o) {
  return !o.source.empty() || o.latency_us || o.stall_us || o.energy_j || o.dwell_us ||
         o.mem_latency_us || o.mem_stall_us || o.mem_energy_j;
}

SwitchModel switch_model(const SwitchOptions& o, const GpuSpec& spec) {
  SwitchModel model;
  if (o.source == "spec") model = switch_model(spec);
  model.core = cost(model.core, "--", o.latency_us, o.stall_us, o.energy_j);
  if (o.latency_us || o.stall_us) model.guess.clear();
  if (o.mem_latency_us || o.mem_stall_us || o.mem_energy_j) {
    model.mem = cost(model.mem.value_or(SwitchCost{}), "--mem-", o.mem_latency_us, o.mem_stall_us,
                     o.mem_energy_j);
    model.knows_memory = true;
  }
  if (checked("--switch-dwell-us", o.dwell_us, most_us)) model.dwell_s = *o.dwell_us / us_per_s;
  return model;
}

}  // namespace rubato
