#include "explorer/graph/launch_units.hpp"

#include <algorithm>
#include <map>

#include "common/algorithms/sort_by.hpp"

namespace rubato {

namespace {

// Saving less than this share of a path is rounding.
constexpr double least_saving = 1e-12;

// Another clock for a unit.
struct Move {
  std::uint32_t unit = 0;
  ClockId clock;
  double cost_j = 0.0;   // more than now
  double saved_s = 0.0;  // on the path

  [[nodiscard]] double ratio() const { return cost_j / saved_s; }
};

}  // namespace

LaunchUnits::LaunchUnits(const LaunchCosts& costs, std::uint32_t units,
                         std::vector<std::uint32_t> unit_of_activity)
    : units_(units), unit_of_activity_(std::move(unit_of_activity)), first_(units + 1, 0) {
  for (std::size_t i = 0; i < unit_of_activity_.size(); ++i) {
    if (costs.is_clocked(i)) ++first_[unit_of_activity_[i] + 1];
  }
  for (std::uint32_t u = 0; u < units; ++u) first_[u + 1] += first_[u];
  members_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t i = 0; i < unit_of_activity_.size(); ++i) {
    if (costs.is_clocked(i)) members_[next[unit_of_activity_[i]]++] = i;
  }
}

double LaunchUnits::cost_j(const LaunchCosts& costs, std::uint32_t unit, ClockId clock) const {
  double sum_j = 0.0;
  for (const std::uint32_t i : members(unit)) sum_j += costs.cost_j(i, clock);
  return sum_j;
}

double LaunchUnits::time_s(const LaunchCosts& costs, std::uint32_t unit, ClockId clock) const {
  double sum_s = 0.0;
  for (const std::uint32_t i : members(unit)) sum_s += costs.time_s(i, clock);
  return sum_s;
}

std::vector<std::uint32_t> latest_path(const LaunchCosts& costs, const ActivityTimes& times) {
  const ExecutionGraph& graph = costs.model().graph();
  std::vector<std::uint32_t> path;
  auto at = static_cast<std::uint32_t>(std::ranges::max_element(times.end_s) - times.end_s.begin());
  while (true) {
    if (costs.is_clocked(at)) path.push_back(at);
    const auto arcs = graph.arcs_into(ActivityId{at});
    if (arcs.empty()) return path;
    const auto ready_s = [&](const GraphArc& arc) {
      return times.end_s[index(arc.from)] + arc.lag_s;
    };
    at = std::ranges::max_element(arcs, {}, ready_s)->from.value;
  }
}

bool speed_up_latest_path(const LaunchCosts& costs, const LaunchUnits& units,
                          const ActivityTimes& times, double late_s,
                          std::vector<ClockId>& clock_of_unit) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> on_path;
  for (const std::uint32_t i : latest_path(costs, times)) on_path[units.unit_of(i)].push_back(i);
  std::vector<Move> moves;
  for (const auto& part : on_path) {
    const std::uint32_t unit = part.first;
    const std::vector<std::uint32_t>& launches = part.second;
    const auto path_s = [&](ClockId clock) {
      double sum_s = 0.0;
      for (const std::uint32_t i : launches) sum_s += costs.time_s(i, clock);
      return sum_s;
    };
    const double now_s = path_s(clock_of_unit[unit]);
    const double now_j = units.cost_j(costs, unit, clock_of_unit[unit]);
    Move best;
    for (std::size_t c = 0; c < costs.clocks(); ++c) {
      const auto clock = id_at<ClockId>(c);
      const double saved_s = now_s - path_s(clock);
      if (saved_s <= least_saving * now_s) continue;
      const Move move{unit, clock, units.cost_j(costs, unit, clock) - now_j, saved_s};
      if (best.saved_s == 0.0 || move.ratio() < best.ratio()) best = move;
    }
    if (best.saved_s > 0.0) moves.push_back(best);
  }
  sort_by(moves, &Move::ratio);
  double left_s = late_s;
  for (const Move& move : moves) {
    if (left_s <= 0.0) break;
    clock_of_unit[move.unit] = move.clock;
    left_s -= move.saved_s;
  }
  return !moves.empty();
}

}  // namespace rubato
