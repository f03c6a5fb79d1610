#pragma once
// The cheapest way through a sequence of launches at a price of time (Lagrange multiplier): dynamic
// programs with clocks as states.

#include <cstdint>
#include <span>
#include <vector>

#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// What is minimised: energy_weight x energy + time_w x time. With weights 1 and 0 that is the
/// energy, with 0 and 1 the time.
struct Price {
  double energy_weight = 1.0;
  double time_w = 0.0;  ///< price of time: joules for each second, >= 0

  [[nodiscard]] double of(const Cost& cost) const noexcept {
    return energy_weight * cost.energy_j + time_w * cost.time_s;
  }
};

/// A launch sequence at one price, perhaps without some clocks. Immutable. Rows have shape
/// [clocks].
class PricedSequence {
 public:
  /// All clocks.
  PricedSequence(const LaunchSequence& sequence, Price price);
  /// @param clocks  in ascending order, at least one
  PricedSequence(const LaunchSequence& sequence, Price price, std::vector<std::uint32_t> clocks);
  /// All clocks, with a price of time of its own for each launch. Of the sequence's table only the
  /// times are used, for the lengths of runs.
  /// @param launch_costs  energy + priced time, J, shape [table rows x clocks]
  /// @param change_w      price of the stall of a change before each launch, W, shape [launches]
  PricedSequence(const LaunchSequence& sequence, std::vector<double> launch_costs,
                 std::vector<double> change_w);

  [[nodiscard]] const LaunchSequence& sequence() const noexcept { return *sequence_; }
  [[nodiscard]] Price price() const noexcept { return price_; }
  /// The clocks as the sequence numbers them. Everywhere else here a clock is a position in this.
  [[nodiscard]] std::span<const std::uint32_t> clocks() const noexcept { return clocks_; }
  /// Priced launch of a table row at every clock.
  [[nodiscard]] std::span<const double> row(std::size_t row) const noexcept {
    return {rows_.data() + row * clocks_.size(), clocks_.size()};
  }
  /// Time of a launch of a table row at every clock, s.
  [[nodiscard]] std::span<const double> times_s(std::size_t row) const noexcept {
    return times_s_.empty() ? sequence_->problem().per_launch.times_s(row)
                            : std::span(times_s_).subspan(row * clocks_.size(), clocks_.size());
  }
  /// Priced changes of one kind to every clock.
  [[nodiscard]] std::span<const double> into(std::size_t kind) const noexcept {
    return {into_.data() + kind * clocks_.size(), clocks_.size()};
  }
  /// What a change of a kind before a launch costs beyond into(), the same for all clocks.
  [[nodiscard]] double before(std::size_t kind, std::size_t launch) const noexcept {
    return change_w_.empty() ? 0.0 : change_w_[launch] * sequence_->kinds()[kind].into[0].time_s;
  }
  /// Groups of ChangeKind at every clock, shape [clocks].
  [[nodiscard]] std::span<const std::uint32_t> groups(std::size_t kind) const noexcept {
    return {groups_.data() + kind * clocks_.size(), clocks_.size()};
  }

 private:
  void price_changes();

  const LaunchSequence* sequence_;
  Price price_;
  std::vector<std::uint32_t> clocks_;
  std::vector<double> rows_;           ///< [table rows x clocks]
  std::vector<double> times_s_;        ///< [table rows x clocks], or empty: those of the sequence
  std::vector<double> into_;           ///< [kinds x clocks]
  std::vector<std::uint32_t> groups_;  ///< [kinds x clocks]
  std::vector<double> change_w_;       ///< [launches], or empty: as price_
};

/// Clocks that are enough for a cheapest plan at this price. A clock is left out if another one
/// could stand in for it in any plan: no launch costs less at it, with or without the change to it.
/// Where runs have a least length, no launch may be longer at it either. Where changes are not all
/// alike, no clock is left out.
[[nodiscard]] std::vector<std::uint32_t> useful_clocks(const LaunchSequence& sequence, Price price);

/// The clocks of an iteration's launches and what they cost at a price.
struct PricedRuns {
  double value = 0.0;  ///< infinity: there are none
  std::vector<ClockRun> runs;
};

/// The cheapest plan, which need not change back for the next iteration. So its value is a lower
/// bound for all plans.
/// @param first_of_any_length  the first run may be shorter than changes allow
/// O(launches x clocks) time, O(launches x groups of clocks) memory.
[[nodiscard]] PricedRuns cheapest_open(const PricedSequence& priced,
                                       bool first_of_any_length = false);

/// Runs whose last one may be too short for the change back to the first clock: its launches then
/// get the clock of the run before, until it is long enough.
[[nodiscard]] std::vector<ClockRun> closed(const LaunchSequence& sequence,
                                           std::vector<ClockRun> runs);

}  // namespace rubato
