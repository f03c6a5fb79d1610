#include "models/gpu/spec_laws.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

namespace {

constexpr double rounding = 1e-9;  // relative

void check_crossbar(const JsonNode& memory, const CrossbarCurve& curve) {
  for (std::size_t i = 1; i < curve.core_mhz.size(); ++i) {
    const double before = curve.relative[i - 1] * curve.core_mhz[i - 1];
    if (curve.relative[i] * curve.core_mhz[i] >= before * (1.0 - rounding)) continue;
    memory.at("crossbar_relative")
        .fail(fmt::format("is {:.4g} at {} MHz, so bandwidth falls as the core clock rises from {} "
                          "MHz; expected at least {:.4g}",
                          curve.relative[i], format_number(curve.core_mhz[i]),
                          format_number(curve.core_mhz[i - 1]), before / curve.core_mhz[i]),
              "the value times its clock must not fall; specs fitted by an earlier version are "
              "mended by fitting them again (rubato calibrate)");
  }
}

void check_bandwidths(const JsonNode& memory, const std::vector<MemState>& states) {
  const std::vector<JsonNode> nodes = memory.at("states").items();
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (const MemState& slower : states) {
      if (slower.mem_mhz >= states[i].mem_mhz ||
          states[i].bandwidth_gbs >= slower.bandwidth_gbs * (1.0 - rounding))
        continue;
      nodes[i]
          .at("bandwidth_gbs")
          .fail(fmt::format("is {:.5g} GB/s at a memory clock of {} MHz; expected at least the "
                            "{:.5g} GB/s of state '{}', whose memory clock is lower",
                            states[i].bandwidth_gbs, format_number(states[i].mem_mhz),
                            slower.bandwidth_gbs, slower.name),
                "bandwidth must not fall as the memory clock rises; specs fitted by an earlier "
                "version are mended by fitting them again (rubato calibrate)");
    }
  }
}

void check_clocks_in_effect(const JsonNode& clocks, const CoreClocks& core) {
  if (core.effective_mhz.empty()) return;
  const JsonNode effective = clocks.at("effective_mhz");
  const char* const hint = "a request for a higher core clock must not give a lower one";
  for (std::size_t i = 1; i < core.effective_mhz.size(); ++i) {
    if (core.effective_mhz[i] < core.effective_mhz[i - 1])
      effective.fail(fmt::format("falls from {} to {} MHz; expected values that do not fall",
                                 format_number(core.effective_mhz[i - 1]),
                                 format_number(core.effective_mhz[i])),
                     hint);
  }
  if (core.effective_mhz.back() > core.requested_mhz.back())
    effective.fail(fmt::format("ends at {} MHz, above the last request of {} MHz; expected at most "
                               "that, since higher requests act as they are",
                               format_number(core.effective_mhz.back()),
                               format_number(core.requested_mhz.back())),
                   hint);
}

void check_ceilings(const JsonNode& memory, const GpuSpec& spec) {
  const std::vector<JsonNode> nodes = memory.at("states").items();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const char* key : {"boost_mhz", "max_core_mhz"}) {
      const auto ceiling = nodes[i].optional_number(key);
      if (ceiling && *ceiling < spec.core.min_mhz)
        nodes[i].at(key).fail(
            fmt::format("is {} MHz; expected at least the lowest core clock, {} "
                        "MHz (core_clocks.min_mhz)",
                        format_number(*ceiling), format_number(spec.core.min_mhz)));
    }
  }
}

// Squared, a voltage below zero would fall as the clock rises.
void check_voltage(const JsonNode& power, const GpuSpec& spec) {
  for (const MemState& state : spec.mem_states) {
    const double lowest = 1.0 + (spec.voltage.relative_v.front() - 1.0) * state.voltage_scale;
    if (lowest <= 0.0)
      power.at("relative_v")
          .fail(fmt::format("starts at {}, which voltage_scale {} of memory state '{}' makes {:.3g}"
                            "; expected a voltage > 0",
                            format_number(spec.voltage.relative_v.front()),
                            format_number(state.voltage_scale), state.name, lowest),
                "voltages are relative to the lowest: the first one is 1");
  }
}

}  // namespace

void check_laws(const JsonNode& root, const GpuSpec& spec) {
  check_crossbar(root.at("memory"), spec.crossbar);
  check_bandwidths(root.at("memory"), spec.mem_states);
  check_ceilings(root.at("memory"), spec);
  check_clocks_in_effect(root.at("core_clocks"), spec.core);
  check_voltage(root.at("core_power"), spec);
}

}  // namespace rubato
