#include "explorer/experiments/shards.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// The units of each setting, as ranges of positions.
struct Group {
  std::size_t first = 0, last = 0;  ///< [first, last)
  double estimated_s = 0.0;
};

std::vector<Group> groups_of(const SweepPlan& plan) {
  std::vector<Group> groups;
  for (std::size_t u = 0; u < plan.units.size(); ++u) {
    const std::size_t setting = plan.units[u].setting;
    if (u == 0 || plan.units[u - 1].setting != setting)
      groups.push_back({u, u, plan.settings[setting].estimated_store_s});
    groups.back().last = u + 1;
    groups.back().estimated_s += plan.units[u].estimated_s;
  }
  return groups;
}

}  // namespace

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto index = parse_count(text.substr(0, slash)),
               count = parse_count(text.substr(slash + 1));
    if (index && count && *index >= 1 && *index <= *count) return {*index, *count};
  }
  throw UsageError(
      fmt::format("--shard '{}'; expected i/n with 1 <= i <= n, e.g. 3/8", printable(text)));
}

std::vector<std::size_t> units_of(const SweepPlan& plan, const Shard& shard) {
  std::vector<Group> groups = groups_of(plan);
  double total_s = 0.0;
  for (const Group& group : groups) total_s += group.estimated_s;
  const double fair_s = total_s / static_cast<double>(shard.count);
  // Position in the plan decides between equals.
  sort_down_by(groups, &Group::estimated_s);
  std::vector<double> load_s(shard.count, 0.0);
  std::vector<std::size_t> mine;
  const auto assign = [&](std::size_t first, std::size_t last, double cost_s) {
    const auto least = std::ranges::min_element(load_s);
    *least += cost_s;
    if (static_cast<std::size_t>(least - load_s.begin()) + 1 != shard.index) return;
    for (std::size_t u = first; u < last; ++u) mine.push_back(u);
  };
  for (const Group& group : groups) {
    if (group.estimated_s <= fair_s) {
      assign(group.first, group.last, group.estimated_s);
      continue;
    }
    // Too long for one shard: unit by unit, each storing the profile it needs.
    std::vector<std::size_t> units(group.last - group.first);
    std::iota(units.begin(), units.end(), group.first);
    std::ranges::stable_sort(units, std::ranges::greater{},
                             [&](std::size_t u) { return plan.units[u].estimated_s; });
    const double store_s = plan.settings[plan.units[group.first].setting].estimated_store_s;
    for (const std::size_t u : units) assign(u, u + 1, store_s + plan.units[u].estimated_s);
  }
  std::ranges::sort(mine);
  return mine;
}

double estimated_time_s(const SweepPlan& plan, std::span<const std::size_t> units) {
  double time_s = 0.0;
  std::optional<std::size_t> setting;
  for (const std::size_t u : units) {
    const Unit& unit = plan.units[u];
    if (setting != unit.setting) time_s += plan.settings[unit.setting].estimated_store_s;
    setting = unit.setting;
    time_s += unit.estimated_s;
  }
  return time_s;
}

}  // namespace rubato
