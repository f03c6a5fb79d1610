#include "sim/switch_model.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"

namespace rubato {

SwitchCost SwitchModel::change(const ClockPair& from, const ClockPair& to) const noexcept {
  return change(from.core_mhz != to.core_mhz, from.mem != to.mem);
}

SwitchCost SwitchModel::change(bool core_changes, bool mem_changes) const noexcept {
  if (!mem || !mem_changes) return core;
  if (!core_changes) return *mem;
  return {.stall_s = core.stall_s + mem->stall_s,
          .energy_j = core.energy_j + mem->energy_j,
          .lead_s = core.lead_s + mem->lead_s};
}

SwitchModel switch_model(const GpuSpec& spec) {
  const SwitchLatency& known = spec.switching;
  if (!known.core_s) {
    throw UsageError(fmt::format("nothing is known of changes of clock on {}: {}", spec.name,
                                 spec.sources.at("switching")),
                     {.in = {}, .hint = "give --switch-latency-us or --switch-stall-us"});
  }
  const auto cost = [](double latency_s, double stall_s, double energy_j) {
    return SwitchCost{.stall_s = stall_s, .energy_j = energy_j, .lead_s = latency_s - stall_s};
  };
  SwitchModel model{.core = cost(*known.core_s, known.core_stall_s, known.core_j),
                    .mem = {},
                    .dwell_s = known.dwell_s};
  if (known.mem_s) model.mem = cost(*known.mem_s, known.mem_stall_s, known.mem_j);
  return model;
}

void validate(const SwitchModel& model) {
  const auto check = [](const char* what, double value) {
    if (std::isfinite(value) && value >= 0.0) return;
    throw UsageError(
        fmt::format("switching: {} is {}; expected a number >= 0", what, format_number(value)));
  };
  const auto check_cost = [&](const char* clock, const SwitchCost& cost) {
    check(fmt::format("{} stall_s", clock).c_str(), cost.stall_s);
    check(fmt::format("{} energy_j", clock).c_str(), cost.energy_j);
    check(fmt::format("{} latency beyond its stall, s,", clock).c_str(), cost.lead_s);
  };
  check_cost("core", model.core);
  if (model.mem) check_cost("memory", *model.mem);
  check("dwell_s", model.dwell_s);
}

}  // namespace rubato
