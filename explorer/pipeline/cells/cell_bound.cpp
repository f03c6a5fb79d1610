#include "explorer/pipeline/cells/cell_bound.hpp"

#include <algorithm>
#include <limits>

#include "explorer/pipeline/cells/cell_ascent.hpp"

namespace rubato {

namespace {

// Rounds with all clocks, after the rounds with few.
constexpr int full_rounds = 8, full_rounds_of_very_many = 2;

constexpr auto none = std::numeric_limits<std::uint32_t>::max();

}  // namespace

CellBound::CellBound(const PipelineWork& work, const ClockRounder& rounder)
    : work_(work),
      rounder_(rounder),
      next_(work.schedule.passes.size(), none),
      leave_(work.schedule.passes.size()) {
  for (const std::vector<PassId>& row : work.schedule.rows())
    for (std::size_t i = 0; i + 1 < row.size(); ++i) next_[index(row[i])] = row[i + 1].value;
  const std::vector<Dependency>& arcs = work.schedule.dependencies;
  for (std::uint32_t a = 0; a < arcs.size(); ++a) leave_[index(arcs[a].from)].push_back(a);
  find_cells();
  find_crossings();
}

// A cell lies between the end of a pass and the start of the third pass after it in its row. It has
// the two passes between them in the row, and two of another row that lead from that end to that
// start.
void CellBound::find_cells() {
  const std::vector<Dependency>& arcs = work_.schedule.dependencies;
  const auto arc = [&](std::uint32_t from, std::uint32_t to) {
    for (const std::uint32_t a : leave_[from])
      if (arcs[a].to.value == to) return a;
    return none;
  };
  for (std::uint32_t pass = 0; pass < next_.size(); ++pass) {
    std::array<std::uint32_t, 3> then{none, none, none};
    for (std::uint32_t i = 0, at = pass; i < 3 && at != none; ++i) then[i] = at = next_[at];
    if (then[2] == none) continue;
    for (const std::uint32_t out : leave_[pass]) {
      const std::uint32_t first = arcs[out].to.value, second = next_[first];
      if (first == then[0] || second == none || second == then[0]) continue;
      const PassCell cell{{then[0], then[1], first, second},
                          {arc(pass, then[0]), arc(then[0], then[1]), arc(then[1], then[2]), out,
                           arc(first, second), arc(second, then[2])}};
      if (std::ranges::find(cell.arc, none) == cell.arc.end()) cells_.push_back(cell);
    }
  }
}

void CellBound::find_crossings() {
  const std::vector<Dependency>& arcs = work_.schedule.dependencies;
  const auto is_along = [&](std::uint32_t a) {
    return next_[index(arcs[a].from)] == arcs[a].to.value;
  };
  std::vector<std::vector<std::uint32_t>> enter(next_.size());
  for (std::uint32_t a = 0; a < arcs.size(); ++a) enter[index(arcs[a].to)].push_back(a);
  for (std::uint32_t along = 0; along < arcs.size(); ++along) {
    if (!is_along(along)) continue;
    for (const std::uint32_t across : leave_[index(arcs[along].from)]) {
      if (is_along(across)) continue;
      for (const std::uint32_t other : enter[index(arcs[across].to)]) {
        if (!is_along(other) || other < along) continue;
        for (const std::uint32_t back : leave_[index(arcs[other].from)]) {
          if (arcs[back].to != arcs[along].to || is_along(back)) continue;
          if (arcs[along].lag_s + arcs[other].lag_s == arcs[across].lag_s + arcs[back].lag_s)
            crossings_.push_back({{along, other}, {across, back}});
        }
      }
    }
  }
}

std::optional<PriceLine> CellBound::line(const FrontierPlan& prices, double wanted_j) const {
  CellAscent ascent(*this, prices);
  if (!ascent.run(wanted_j + prices.price_w * prices.time_s)) return std::nullopt;
  ascent.take_all_clocks();
  const int count = cells_.size() > very_many_cells ? full_rounds_of_very_many : full_rounds;
  for (int round = 0; round < count; ++round) ascent.sweep(round % 2 == 1);
  return ascent.line();
}

}  // namespace rubato
