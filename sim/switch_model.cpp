#include "sim/switch_model.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

std::string text_of(const SwitchCost& cost) {
  std::string text = time_text(cost.latency_s());
  if (cost.stall_s > 0.0) text += fmt::format(" ({} of it a stall)", time_text(cost.stall_s));
  if (cost.energy_j > 0.0) text += fmt::format(" and {} J", format_number(cost.energy_j));
  return text;
}

}  // namespace

SwitchCost SwitchModel::change(const ClockPair& from, const ClockPair& to) const noexcept {
  const bool core_changes = from.core_mhz != to.core_mhz || from.power_limit_w != to.power_limit_w;
  return change(core_changes, from.mem != to.mem);
}

SwitchCost SwitchModel::change(bool core_changes, bool mem_changes) const noexcept {
  if (!mem || !mem_changes) return core;
  if (!core_changes) return *mem;
  return {.stall_s = core.stall_s + mem->stall_s,
          .energy_j = core.energy_j + mem->energy_j,
          .lead_s = core.lead_s + mem->lead_s};
}

SwitchModel as_stalls(SwitchModel model) {
  const auto wait = [](SwitchCost& cost) {
    cost.stall_s = cost.latency_s();
    cost.lead_s = 0.0;
  };
  wait(model.core);
  if (model.mem) wait(*model.mem);
  return model;
}

SwitchModel switch_model(const GpuSpec& spec) {
  const SwitchLatency& known = spec.switching;
  if (!known.core_s)
    return {.core = {.lead_s = guessed_switch_latency_s},
            .mem = {},
            .guess = "nobody measured this GPU"};
  const auto cost = [](double latency_s, double stall_s, double energy_j) {
    return SwitchCost{.stall_s = stall_s, .energy_j = energy_j, .lead_s = latency_s - stall_s};
  };
  SwitchModel model{.core = cost(*known.core_s, known.core_stall_s, known.core_j),
                    .mem = {},
                    .dwell_s = known.dwell_s,
                    .guess = known.guess,
                    .knows_memory = known.mem_s.has_value()};
  if (known.mem_s) model.mem = cost(*known.mem_s, known.mem_stall_s, known.mem_j);
  return model;
}

std::string change_text(const SwitchModel& model) {
  std::string text = text_of(model.core);
  if (!model.guess.empty()) text += fmt::format(" (a guess: {})", model.guess);
  if (model.mem) text += ", of the memory clock " + text_of(*model.mem);
  if (model.dwell_s > 0.0) text += fmt::format(", the next one {} later", time_text(model.dwell_s));
  return text;
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
