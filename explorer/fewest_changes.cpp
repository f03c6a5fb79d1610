#include "explorer/fewest_changes.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace rubato {

namespace {

// For pairs of units, the smaller one first: how often a launch of one comes right after a launch
// of the other. The first launch comes after the last of the iteration before.
using Neighbours = std::map<std::pair<std::size_t, std::size_t>, std::uint64_t>;

Neighbours neighbours_of(const Trace& trace, const ChoiceUnits& units) {
  Neighbours neighbours;
  const auto unit = [&](KernelId kernel) { return index(units.unit_of_kernel[index(kernel)]); };
  const auto add = [&](KernelId from, KernelId to, std::uint64_t times) {
    if (unit(from) != unit(to) && times > 0) neighbours[std::minmax(unit(from), unit(to))] += times;
  };
  KernelId before = trace.segments.back().launches.back();
  for (const Segment& segment : trace.segments) {
    add(before, segment.launches.front(), 1);
    for (std::size_t i = 1; i < segment.launches.size(); ++i)
      add(segment.launches[i - 1], segment.launches[i], segment.repeat);
    add(segment.launches.back(), segment.launches.front(), segment.repeat - 1);
    before = segment.launches.back();
  }
  return neighbours;
}

std::uint64_t count_changes(const Neighbours& neighbours, const std::vector<ClockId>& clocks) {
  std::uint64_t changes = 0;
  for (const auto& [pair, times] : neighbours)
    changes += clocks[pair.first] == clocks[pair.second] ? 0 : times;
  return changes;
}

// Which clocks take no more time and energy of a unit than the chosen one, to rounding.
class EqualClocks {
 public:
  EqualClocks(const ProfileTable& table, const std::vector<ClockId>& chosen)
      : clocks_(table.clocks()), equal_(table.rows() * table.clocks()) {
    constexpr double rounding = 1e-12;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const Cost best = table.cost(row, chosen[row]);
      for (std::size_t c = 0; c < clocks_; ++c) {
        const Cost cost = table.cost(row, id_at<ClockId>(c));
        const bool equal = cost.time_s <= best.time_s * (1.0 + rounding) &&
                           cost.energy_j <= best.energy_j * (1.0 + rounding);
        equal_[row * clocks_ + c] = equal ? 1 : 0;
      }
    }
  }

  [[nodiscard]] bool allow(std::size_t unit, ClockId clock) const {
    return equal_[unit * clocks_ + index(clock)] != 0;
  }

  // The clock that most of `units` may take; of equals the default one.
  [[nodiscard]] ClockId most_common(const std::vector<std::size_t>& units,
                                    ClockId default_clock) const {
    std::vector<std::uint32_t> takers(clocks_);
    for (const std::size_t unit : units) {
      for (std::size_t c = 0; c < clocks_; ++c) takers[c] += equal_[unit * clocks_ + c];
    }
    std::size_t best = index(default_clock);
    for (std::size_t c = 0; c < clocks_; ++c) {
      if (takers[c] > takers[best]) best = c;
    }
    return id_at<ClockId>(best);
  }

 private:
  std::size_t clocks_;
  std::vector<std::uint8_t> equal_;  ///< 1 or 0, shape [units x clocks]
};

// Moves each unit to the clock of a neighbour, while that leaves fewer changes.
void settle(const Neighbours& neighbours, const EqualClocks& equal, std::vector<ClockId>& clocks) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t unit = 0; unit < clocks.size(); ++unit) {
      std::map<ClockId, std::uint64_t> kept;
      for (const auto& [pair, times] : neighbours) {
        if (pair.first == unit) kept[clocks[pair.second]] += times;
        if (pair.second == unit) kept[clocks[pair.first]] += times;
      }
      std::uint64_t most = kept[clocks[unit]];
      for (const auto& [clock, times] : kept) {
        if (times <= most || !equal.allow(unit, clock)) continue;
        most = times;
        clocks[unit] = clock;
        moved = true;
      }
    }
  }
}

}  // namespace

std::uint64_t changes_of_clock(const Trace& trace, const ChoiceUnits& units,
                               const std::vector<ClockId>& clock_of_unit) {
  return count_changes(neighbours_of(trace, units), clock_of_unit);
}

std::vector<ClockId> with_few_changes(const Trace& trace, const ChoiceUnits& units,
                                      const ProfileTable& table,
                                      const std::vector<ClockId>& clock_of_unit,
                                      ClockId default_clock) {
  const EqualClocks equal(table, clock_of_unit);
  std::vector<ClockId> clocks = clock_of_unit;
  std::vector<std::size_t> open(clocks.size());
  for (std::size_t unit = 0; unit < open.size(); ++unit) open[unit] = unit;
  while (!open.empty()) {
    const ClockId common = equal.most_common(open, default_clock);
    std::erase_if(open, [&](std::size_t unit) {
      if (!equal.allow(unit, common)) return false;
      clocks[unit] = common;
      return true;
    });
  }
  const Neighbours neighbours = neighbours_of(trace, units);
  settle(neighbours, equal, clocks);
  std::vector<ClockId> settled = clock_of_unit;
  settle(neighbours, equal, settled);
  return count_changes(neighbours, clocks) <= count_changes(neighbours, settled) ? clocks : settled;
}

}  // namespace rubato
