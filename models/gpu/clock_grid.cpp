#include "models/gpu/clock_grid.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

namespace {

std::string label_of(const GpuSpec& spec, const ClockPair& pair) {
  return fmt::format("{}/{}", spec.mem_states[index(pair.mem)].name,
                     pair.core_mhz ? format_number(*pair.core_mhz) : "auto");
}

std::vector<std::string> mem_state_names(const GpuSpec& spec) {
  std::vector<std::string> names;
  for (const MemState& state : spec.mem_states) names.push_back(state.name);
  return names;
}

MemStateId parse_mem_state(const GpuSpec& spec, std::string_view name) {
  const std::vector<std::string> names = mem_state_names(spec);
  const auto found = std::ranges::find(names, name);
  if (found != names.end())
    return id_at<MemStateId>(static_cast<std::size_t>(found - names.begin()));
  throw UsageError(
      fmt::format("{} has no memory clock '{}'{}", spec.name, name, did_you_mean(name, names)));
}

// The clock that is meant. Drivers and sweeps cut 1102.5 MHz to 1102.
// @throws UsageError if the GPU has none there
double supported_core_mhz(const GpuSpec& spec, double core_mhz) {
  const double nearest_mhz = nearest_step_mhz(spec, core_mhz);
  constexpr double rounding = 1e-6;
  const bool whole = core_mhz == std::floor(nearest_mhz) || core_mhz == std::ceil(nearest_mhz);
  if (std::abs(core_mhz - nearest_mhz) < rounding * spec.core.step_mhz || whole) return nearest_mhz;
  throw UsageError(
      fmt::format(
          "{} does not support a core clock of {} MHz; expected {} to {} MHz in steps of {}",
          spec.name, format_number(core_mhz), format_number(spec.core.min_mhz),
          format_number(spec.core.max_mhz), format_number(spec.core.step_mhz)),
      {.in = {}, .hint = fmt::format("the nearest one is {}", format_number(nearest_mhz))});
}

std::optional<double> parse_core(const GpuSpec& spec, std::string_view text) {
  if (text == "auto") return std::nullopt;
  const auto core_mhz = parse_number(text);
  if (!core_mhz)
    throw UsageError(fmt::format("'{}' is not a core clock; expected MHz or 'auto'", text));
  return supported_core_mhz(spec, *core_mhz);
}

// "auto" or "1470" or "210:2100:210" (first:last:step).
void append_core_clocks(const GpuSpec& spec, std::string_view item,
                        std::vector<std::optional<double>>& clocks) {
  const std::vector<std::string_view> parts = split(item, ':');
  if (parts.size() == 1) {
    clocks.push_back(parse_core(spec, item));
    return;
  }
  const auto step_mhz = parts.size() == 3 ? parse_number(parts[2]) : std::nullopt;
  const auto first_mhz = parse_number(parts[0]);
  const auto last_mhz = parse_number(parts[1]);
  if (!step_mhz || !first_mhz || !last_mhz || *step_mhz <= 0.0) {
    throw UsageError(
        fmt::format("'{}' is not a range of core clocks; expected FIRST:LAST:STEP in MHz", item));
  }
  const double from_mhz = supported_core_mhz(spec, *first_mhz);
  for (int i = 0; std::floor(from_mhz + i * *step_mhz) <= *last_mhz; ++i)
    clocks.emplace_back(supported_core_mhz(spec, from_mhz + i * *step_mhz));
}

std::vector<ClockPair> cross(const std::vector<MemStateId>& mems,
                             const std::vector<std::optional<double>>& cores) {
  std::vector<ClockPair> pairs;
  for (const MemStateId mem : mems) {
    for (const auto& core_mhz : cores) pairs.push_back({mem, core_mhz});
  }
  return pairs;
}

std::vector<ClockPair> parse_selection(const GpuSpec& spec, std::string_view selection) {
  std::vector<MemStateId> mems;
  std::vector<std::optional<double>> cores;
  for (const std::string_view part : split(selection, ' ')) {
    if (part.starts_with("mem=")) {
      for (const auto name : split(part.substr(4), ','))
        mems.push_back(parse_mem_state(spec, name));
    } else if (part.starts_with("core=")) {
      for (const auto item : split(part.substr(5), ',')) append_core_clocks(spec, item, cores);
    } else {
      std::vector<std::string> names;
      for (const NamedGrid& grid : spec.grids) names.push_back(grid.name);
      throw UsageError(
          fmt::format("{} has no clock grid '{}'{}", spec.name, selection,
                      did_you_mean(selection, names)),
          {.in = {}, .hint = "a grid can also be given as 'mem=5001,auto core=210:2100:210,auto'"});
    }
  }
  if (mems.empty() || cores.empty()) {
    throw UsageError(
        fmt::format("'{}' selects no clocks; expected both mem=... and core=...", selection));
  }
  return cross(mems, cores);
}

}  // namespace

double nearest_step_mhz(const GpuSpec& spec, double core_mhz) {
  const double steps = (core_mhz - spec.core.min_mhz) / spec.core.step_mhz;
  return std::clamp(spec.core.min_mhz + std::round(steps) * spec.core.step_mhz, spec.core.min_mhz,
                    spec.core.max_mhz);
}

ClockGrid::ClockGrid(const GpuSpec& spec, std::vector<ClockPair> pairs) : pairs_(std::move(pairs)) {
  if (pairs_.empty()) throw UsageError("a clock grid needs at least one pair");
  if (std::ranges::find(pairs_, spec.default_clock) == pairs_.end())
    pairs_.push_back(spec.default_clock);
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (pairs_[i].core_mhz) (void)supported_core_mhz(spec, *pairs_[i].core_mhz);
    std::string label = label_of(spec, pairs_[i]);
    if (std::ranges::find(labels_, label) != labels_.end()) {
      throw UsageError(fmt::format("the clock grid holds {} twice", label));
    }
    labels_.push_back(std::move(label));
  }
  default_ = *find(spec.default_clock);
}

std::optional<ClockId> ClockGrid::find(std::string_view label) const {
  const auto found = std::ranges::find(labels_, label);
  if (found == labels_.end()) return std::nullopt;
  return id_at<ClockId>(static_cast<std::size_t>(found - labels_.begin()));
}

std::optional<ClockId> ClockGrid::find(const ClockPair& pair) const {
  const auto found = std::ranges::find(pairs_, pair);
  if (found == pairs_.end()) return std::nullopt;
  return id_at<ClockId>(static_cast<std::size_t>(found - pairs_.begin()));
}

ClockGrid make_clock_grid(const GpuSpec& spec, std::string_view selection) {
  for (const NamedGrid& grid : spec.grids) {
    if (grid.name != selection && !selection.empty()) continue;
    std::vector<MemStateId> mems;
    for (const std::string& name : grid.mem_states) mems.push_back(parse_mem_state(spec, name));
    return {spec, cross(mems, grid.core_mhz)};
  }
  return {spec, parse_selection(spec, selection)};
}

std::string grid_name(const GpuSpec& spec, std::string_view selection) {
  return selection.empty() && !spec.grids.empty() ? spec.grids.front().name
                                                  : std::string(selection);
}

ClockPair parse_clock_pair(const GpuSpec& spec, std::string_view label) {
  const std::vector<std::string_view> parts = split(label, '/');
  if (parts.size() != 2) {
    throw UsageError(fmt::format(
        "'{}' is not a clock pair; expected MEMORY/CORE, e.g. 5001/1470 or auto/auto", label));
  }
  return {parse_mem_state(spec, parts[0]), parse_core(spec, parts[1])};
}

}  // namespace rubato
