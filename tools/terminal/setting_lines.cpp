#include "tools/terminal/setting_lines.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/ids.hpp"
#include "models/gpu/device.hpp"

namespace rubato {

namespace {

// Drivers take whole MHz.
long whole_mhz(double mhz) { return std::lround(mhz); }

}  // namespace

std::string one_clock_line(const GpuSpec& spec, const ClockPair& clock) {
  if (clock == spec.default_clock) return "To set: nothing, these are the default clocks.\n";
  if (vendor_of(spec.title) == GpuVendor::amd) {
    if (!clock.core_mhz) return "";
    return fmt::format(
        "To set: sudo rocm-smi --setperfdeterminism {}; back: sudo rocm-smi "
        "--resetperfdeterminism\n",
        whole_mhz(*clock.core_mhz));
  }
  std::vector<std::string> set, back;
  if (clock.core_mhz) {
    set.push_back(fmt::format("sudo nvidia-smi -lgc {0},{0}", whole_mhz(*clock.core_mhz)));
    back.emplace_back("sudo nvidia-smi -rgc");
  }
  const MemState& memory = spec.mem_states[index(clock.mem)];
  if (clock.mem != spec.default_clock.mem && memory.name != "auto") {
    set.push_back(fmt::format("sudo nvidia-smi -lmc {0},{0}", whole_mhz(memory.mem_mhz)));
    back.emplace_back("sudo nvidia-smi -rmc");
  }
  if (set.empty()) return "";
  return fmt::format("To set: {}; back: {}\n", fmt::join(set, " && "), fmt::join(back, " && "));
}

std::string play_lines(std::string_view granularity, std::string_view db) {
  return fmt::format(
      "To play the plan per {}{}:\n  rubato export --plan latest --granularity {} --db {} -o "
      "plan.json\n"
      "  sudo -E python3 -m rubato apply plan.json -- python3 train.py\n",
      granularity, db.empty() ? " (store it first, with --db results.db)" : "", granularity,
      db.empty() ? "results.db" : db);
}

}  // namespace rubato
