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
  return fmt::format(
      "{}/{}{}", spec.mem_states[index(pair.mem)].name,
      pair.core_mhz ? format_number(*pair.core_mhz) : "auto",
      pair.power_limit_w ? fmt::format(", {} W", format_number(*pair.power_limit_w)) : "");
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

// FIRST:LAST:STEP
struct Steps {
  double first, last, step;
};

// @param what  e.g. "core clocks"
Steps parse_range(std::string_view item, std::string_view what, std::string_view unit) {
  const std::vector<std::string_view> parts = split(item, ':');
  const auto step = parts.size() == 3 ? parse_number(parts[2]) : std::nullopt;
  const auto first = parse_number(parts[0]);
  const auto last = parts.size() > 1 ? parse_number(parts[1]) : std::nullopt;
  if (step && first && last && *step > 0.0) return {*first, *last, *step};
  throw UsageError(
      fmt::format("'{}' is not a range of {}; expected FIRST:LAST:STEP in {}", item, what, unit));
}

// "auto" or "1470" or "210:2100:210" (first:last:step).
void append_core_clocks(const GpuSpec& spec, std::string_view item,
                        std::vector<std::optional<double>>& clocks) {
  if (item.find(':') == std::string_view::npos) {
    clocks.push_back(parse_core(spec, item));
    return;
  }
  const Steps range = parse_range(item, "core clocks", "MHz");
  const double from_mhz = supported_core_mhz(spec, range.first);
  for (int i = 0; std::floor(from_mhz + i * range.step) <= range.last; ++i)
    clocks.emplace_back(supported_core_mhz(spec, from_mhz + i * range.step));
}

// "300" or "200:400:25", W. The spec's own limit is no setting. A limit given twice counts once.
void append_power_limits(const GpuSpec& spec, std::string_view item,
                         std::vector<std::optional<double>>& limits_w) {
  std::vector<double> given_w;
  if (item.find(':') != std::string_view::npos) {
    const Steps range = parse_range(item, "power limits", "W");
    for (int i = 0; range.first + i * range.step <= range.last; ++i) {
      given_w.push_back(accepted_power_limit_w(spec, range.first + i * range.step));
    }
    if (given_w.empty())
      throw UsageError(
          fmt::format("'{}' holds no power limit; its end lies below its begin", item));
  } else {
    const auto limit_w = parse_number(item);
    if (!limit_w) throw UsageError(fmt::format("'{}' is not a power limit; expected W", item));
    given_w.push_back(accepted_power_limit_w(spec, *limit_w));
  }
  for (const double limit_w : given_w) {
    const auto setting =
        limit_w == spec.power_limit.limit_w ? std::nullopt : std::optional(limit_w);
    if (std::ranges::find(limits_w, setting) == limits_w.end()) limits_w.push_back(setting);
  }
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

// The clocks of a named grid, or of a list; power limits are left to the run.
std::vector<ClockPair> pairs_of(const GpuSpec& spec, std::string_view selection) {
  const std::string name = grid_name(spec, selection);
  for (const NamedGrid& grid : spec.grids) {
    if (grid.name != name) continue;
    std::vector<MemStateId> mems;
    for (const std::string& name : grid.mem_states) mems.push_back(parse_mem_state(spec, name));
    return cross(mems, grid.core_mhz);
  }
  return parse_selection(spec, selection);
}

}  // namespace

double accepted_power_limit_w(const GpuSpec& spec, std::optional<double> asked_w) {
  const PowerLimit& limit = spec.power_limit;
  const double power_limit_w = asked_w.value_or(limit.limit_w);
  if (power_limit_w >= limit.min_w && power_limit_w <= limit.max_w) return power_limit_w;
  throw UsageError(
      fmt::format("a power limit of {} W is outside what {} accepts; expected {} to {} W",
                  format_number(power_limit_w), spec.name, format_number(limit.min_w),
                  format_number(limit.max_w)));
}

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
    (void)accepted_power_limit_w(spec, pairs_[i].power_limit_w);
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
  constexpr std::string_view limit = "limit=";
  std::vector<std::optional<double>> limits_w;
  std::vector<std::string_view> clocks;
  for (const std::string_view part : split(selection, ' ')) {
    if (!part.starts_with(limit)) {
      clocks.push_back(part);
      continue;
    }
    for (const auto item : split(part.substr(limit.size()), ','))
      append_power_limits(spec, item, limits_w);
  }
  if (limits_w.empty()) return {spec, pairs_of(spec, selection)};
  std::vector<ClockPair> pairs;
  for (ClockPair pair : clocks.empty()
                            ? std::vector{spec.default_clock}
                            : pairs_of(spec, fmt::format("{}", fmt::join(clocks, " ")))) {
    for (const auto& limit_w : limits_w) {
      pair.power_limit_w = limit_w;
      pairs.push_back(pair);
    }
  }
  std::ranges::stable_sort(pairs, {}, &ClockPair::power_limit_w);  // tables are filled by limit
  return {spec, std::move(pairs)};
}

std::string grid_name(const GpuSpec& spec, std::string_view selection) {
  if (!selection.empty()) return std::string(selection);
  const auto clocks = [](const NamedGrid& grid) {
    return grid.mem_states.size() * grid.core_mhz.size();
  };
  const auto largest = std::ranges::max_element(spec.grids, {}, clocks);
  return largest == spec.grids.end() ? "" : largest->name;
}

ClockPair parse_clock_pair(const GpuSpec& spec, std::string_view label) {
  const std::size_t comma = label.find(", ");
  const std::vector<std::string_view> parts = split(label.substr(0, comma), '/');
  std::optional<double> limit_w;
  if (comma != std::string_view::npos && label.ends_with(" W"))
    limit_w = parse_number(label.substr(comma + 2, label.size() - comma - 4));
  if (parts.size() != 2 || (comma != std::string_view::npos && !limit_w)) {
    throw UsageError(fmt::format(
        "'{}' is not a clock pair; expected MEMORY/CORE, e.g. 5001/1470 or auto/auto", label));
  }
  return {parse_mem_state(spec, parts[0]), parse_core(spec, parts[1]), limit_w};
}

}  // namespace rubato
