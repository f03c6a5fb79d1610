#include "tools/options/switching.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/command_line.hpp"
#include "tools/options/values.hpp"

namespace rubato {

namespace {

constexpr const char* option = "--switching";

// 100 s and a megajoule: more is a slip of units.
constexpr double most_s = 100.0, most_j = 1e6;

using Values = std::map<std::string, std::string>;

std::optional<double> seconds(const Values& values, const std::string& name) {
  const auto value = values.find(name);
  if (value == values.end()) return std::nullopt;
  return seconds_of(option, name, value->second, most_s);
}

// The cost of a change of one clock: what is known already, replaced by what is given.
SwitchCost cost(const SwitchCost& known, const Values& values, const std::string& prefix) {
  const auto latency = seconds(values, prefix + "latency"),
             stall = seconds(values, prefix + "stall");
  const auto energy = values.find(prefix + "energy");
  const double known_latency_s = latency || !stall ? known.latency_s() : 0.0;
  const double stall_s = stall ? *stall : latency ? 0.0 : known.stall_s;
  const double latency_s = latency ? *latency : std::max(known_latency_s, stall_s);
  if (stall_s > latency_s) {
    throw UsageError(
        fmt::format("{}: {}stall is {} and {}latency is {}; the stall is part of the "
                    "latency",
                    option, prefix, time_text(stall_s), prefix, time_text(latency_s)));
  }
  return {.stall_s = stall_s,
          .energy_j = energy == values.end()
                          ? known.energy_j
                          : number_of(option, energy->first, energy->second, 0.0, most_j),
          .lead_s = latency_s - stall_s};
}

}  // namespace

void add_switching_option(CommandLine& app, std::string& text, const std::string& fallback) {
  app.add_option(fmt::format("{} MODEL", option), text,
                 fmt::format("What one switch costs: spec, free, or values: latency=22ms (from the "
                             "request to its effect), stall=1ms (part of it in which the GPU "
                             "waits), energy=0.05 (J), dwell=22ms (least time between switches), "
                             "mem.latency=..., mem.stall, mem.energy [{}]",
                             fallback));
}

bool asks_for_spec(const std::string& text) { return text == "spec" || text.starts_with("spec,"); }

SwitchModel switch_model(const std::string& text, const GpuSpec& spec) {
  SwitchModel model;
  if (text.empty() || text == "free") return model;
  if (asks_for_spec(text)) model = switch_model(spec);
  if (text == "spec") return model;
  const std::string given = asks_for_spec(text) ? text.substr(std::string("spec,").size()) : text;
  if (given.find('=') == std::string::npos)
    throw UsageError(fmt::format("{} is '{}'; expected spec, free, or values such as latency=22ms",
                                 option, printable(text)));
  const Values values = named_values(
      option, given,
      {"latency", "stall", "energy", "dwell", "mem.latency", "mem.stall", "mem.energy"});
  model.core = cost(model.core, values, "");
  if (values.contains("latency") || values.contains("stall")) model.guess.clear();
  if (std::ranges::any_of(values, [](const auto& v) { return v.first.starts_with("mem."); })) {
    model.mem = cost(model.mem.value_or(SwitchCost{}), values, "mem.");
    model.knows_memory = true;
  }
  if (const auto dwell_s = seconds(values, "dwell")) model.dwell_s = *dwell_s;
  return model;
}

}  // namespace rubato
