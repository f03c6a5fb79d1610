#pragma once
// Launches that share a clock, and what speeding some of them up costs.

#include <cstdint>
#include <span>
#include <vector>

#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// Which launches share a clock: a partition of the activities that have one into units.
class LaunchUnits {
 public:
  /// @param unit_of_activity  shape [activities], each < units; ignored for activities without a
  ///                          clock
  LaunchUnits(const LaunchCosts& costs, std::uint32_t units,
              std::vector<std::uint32_t> unit_of_activity);

  [[nodiscard]] std::uint32_t size() const noexcept { return units_; }
  [[nodiscard]] std::uint32_t unit_of(std::size_t activity) const {
    return unit_of_activity_[activity];
  }

  /// Activities of a unit, ascending.
  [[nodiscard]] std::span<const std::uint32_t> members(std::uint32_t unit) const {
    return {members_.data() + first_[unit], members_.data() + first_[unit + 1]};
  }

  /// Sums over the members, see LaunchCosts.
  [[nodiscard]] double cost_j(const LaunchCosts& costs, std::uint32_t unit, ClockId clock) const;
  [[nodiscard]] double time_s(const LaunchCosts& costs, std::uint32_t unit, ClockId clock) const;

 private:
  std::uint32_t units_;
  std::vector<std::uint32_t> unit_of_activity_, first_, members_;
};

/// When activities ran.
struct ActivityTimes {
  std::span<const double> start_s, end_s;  ///< shape [activities]
};

/// Activities with a clock on the critical path, last one first.
[[nodiscard]] std::vector<std::uint32_t> latest_path(const LaunchCosts& costs,
                                                     const ActivityTimes& times);

/// Speeds up units on the critical path until they save `late_s` there or none can. Each goes to
/// the clock that costs it least for a second saved; units for which that is least go first.
/// @return whether anything was changed
bool speed_up_latest_path(const LaunchCosts& costs, const LaunchUnits& units,
                          const ActivityTimes& times, double late_s,
                          std::vector<ClockId>& clock_of_unit);

}  // namespace rubato
