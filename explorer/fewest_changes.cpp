#include "explorer/fewest_changes.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace rubato {

namespace {

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

}  // namespace

std::vector<ClockId> with_few_changes(const ProfileTable& table,
                                      const std::vector<ClockId>& clock_of_unit,
                                      ClockId default_clock) {
  const EqualClocks equal(table, clock_of_unit);
  std::vector<ClockId> clocks = clock_of_unit;
  std::vector<std::size_t> open(clocks.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  while (!open.empty()) {
    const ClockId common = equal.most_common(open, default_clock);
    std::erase_if(open, [&](std::size_t unit) {
      if (!equal.allow(unit, common)) return false;
      clocks[unit] = common;
      return true;
    });
  }
  return clocks;
}

}  // namespace rubato
