#pragma once
// Prices of progress on one GPU, for given prices of time. contended_bound.hpp says what for.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "explorer/graph/contention/arc_flow.hpp"
#include "explorer/graph/contention/gpu_lanes.hpp"
#include "explorer/graph/contention/pair_costs.hpp"
#include "explorer/graph/launch_units.hpp"

namespace rubato {

/// What one GPU's main launches and side activities are paid. A side activity has a price for its
/// progress. A main launch is paid what it costs at its cheapest clock, alone or beside a side
/// activity, less that one's price meanwhile. Prices of side activities rise as long as that raises
/// the sum of payments: one after the other, or, where nothing but collectives runs beside the main
/// stream, those of one kernel together.
class PaidGpu {
 public:
  /// All must outlive this, `pairs` and what it has answered too.
  /// @param least_hold_s  least time of collectives from arrival to departure, shape [activities]
  PaidGpu(const LaunchCosts& costs, const GpuLanes& lanes, PairCosts& pairs,
          std::span<const double> least_hold_s);

  /// Finds payments for these prices of time.
  void pay(const ArcFlow& flow);

  /// How often pay() looks at a launch, alone or beside something, at all clocks: how long it
  /// takes. Each meeting is looked at once, then twice in each of three passes (paid_meetings.cpp).
  [[nodiscard]] std::size_t looked_at() const noexcept {
    return lanes_.main.size() * (1 + 2 * alike_.size()) + 7 * meetings_.size();
  }

  /// What a main launch is paid if it runs at a clock. @param position  in GpuLanes::main
  [[nodiscard]] double paid_j(std::size_t position, std::size_t clock) const;
  /// The least over clocks, known since pay().
  [[nodiscard]] double least_paid_j(std::size_t position) const;

  /// Adds by clock what main launches cost beside what they ran beside in a replay, and what side
  /// launches cost alone.
  /// @param of_unit_j  shape [units x clocks]
  void add_costs_j(const ActivityTimes& times, const LaunchUnits& units,
                   std::span<double> of_unit_j) const;

  /// The most by which others beside a main launch and a collective lower the collective's power,
  /// by clock, W; empty unless others pay for it (GpuLanes::others_pay).
  [[nodiscard]] std::vector<double> lost_w() const { return lost_w_; }

  /// Payments of side activities, less what they may be paid for nothing in gaps between main
  /// launches and in pauses of the side stream.
  [[nodiscard]] double side_j() const;

  /// How long main launches take at the clock and beside the activity of least_paid_j.
  /// @param duration_s  shape [activities], written for main launches of this GPU
  void durations_s(std::span<double> duration_s) const;

 private:
  static constexpr double no_price_j = std::numeric_limits<double>::infinity();
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
  // A main launch, alone or beside a side activity, at its clock of least cost.
  struct Meeting {
    double least_j = 0.0;
    double wall_s = 0.0;  // time of the launch there
  };
  // The two cheapest ways to run a main launch, beside different side activities or alone.
  struct Cheapest {
    Meeting first, second;
    std::size_t first_side, second_side;  // nobody: alone
  };
  // Room for a side activity beside a main launch. From a price on it is cheaper to run the launch
  // beside it.
  struct Offer {
    double price_j;   // that price, for one launch of it or one second of a collective
    double progress;  // launches of it, or seconds, that fit
  };

  // Collectives of one kernel.
  struct Alike {
    std::vector<std::size_t> sides;
    std::vector<std::span<const PairCost>> pair;  // shape [main], by clock; empty: none meets it
    std::vector<double> price_w;                  // shape [main]: highest of those that meet it
  };

  [[nodiscard]] double alone_j(std::size_t position, std::size_t clock) const;
  [[nodiscard]] double together_j(std::size_t position, std::size_t side, std::size_t clock) const;
  [[nodiscard]] std::vector<std::size_t> beside(const ActivityTimes& times) const;
  [[nodiscard]] double held_after_s(std::size_t position) const;
  [[nodiscard]] double held_j(std::size_t position, std::size_t clock) const;
  [[nodiscard]] Meeting meeting(std::size_t position, std::size_t side) const {
    return meeting(position, together(position, side), side_flow_w(side), price_[side]);
  }
  [[nodiscard]] Meeting meeting(std::size_t position, std::span<const PairCost> cells,
                                double side_w, double price) const;
  [[nodiscard]] Offer offer(std::size_t position, std::span<const PairCost> cells, double side_w,
                            double other_j) const;
  [[nodiscard]] const Meeting& cheapest_without(std::size_t side, std::size_t position) const;
  void find_cheapest(std::size_t position);
  void meet(std::size_t position, std::size_t side);
  // Position of a side activity and a main launch in meetings_ and pair_.
  [[nodiscard]] std::size_t place(std::size_t side, std::size_t position) const {
    return first_meeting_[side] + position - lanes_.side[side].first;
  }
  // What a main launch and a side activity take beside each other, by clock.
  [[nodiscard]] std::span<const PairCost> together(std::size_t position, std::size_t side) const {
    return alike_.empty() ? pair_[place(side, position)] : alike_[alike_of_[side]].pair[position];
  }
  [[nodiscard]] double gap_price_w(std::size_t gap) const;
  void find_alike(PairCosts& pairs, CompanyId company);
  void find_pairs(PairCosts& pairs, CompanyId company);
  void find_hold_base();
  void find_lost(PairCosts& pairs, CompanyId company);
  void find_paid_pauses();
  void find_pause_prices();
  void pay_alone();
  void find_base();
  [[nodiscard]] double most_price(std::size_t side) const;
  [[nodiscard]] double price_for(double needed, std::vector<Offer>& offers, double most) const;
  [[nodiscard]] double price_for(const Alike& alike, std::vector<Offer> offers,
                                 std::span<const double> most) const;
  [[nodiscard]] Offer gap_offer(std::size_t side) const;
  void raise(std::size_t side);
  void raise_each();
  void raise(Alike& alike);
  [[nodiscard]] double side_flow_w(std::size_t side) const;
  [[nodiscard]] double in_gap_j(std::size_t side, double gap_w) const;

  const LaunchCosts& costs_;
  const GpuLanes& lanes_;
  const ArcFlow* flow_ = nullptr;
  std::vector<std::span<const PairCost>> alone_;  // shape [main], by clock
  std::vector<std::span<const PairCost>> side_;   // shape [side], by clock
  std::vector<std::span<const PairCost>> pair_;   // shape [meetings], by clock; empty: alike
  std::vector<std::size_t> first_meeting_;        // shape [side + 1]
  std::vector<std::size_t> first_at_;             // into side_at_, shape [main + 1]
  std::vector<std::uint32_t> side_at_;            // side activities that each main launch may meet
  std::vector<bool> gap_is_held_;                 // shape [main + 1]: no side launch may lie there
  std::vector<double> surplus_w_;                 // idle power beyond the least, by clock
  std::vector<double> gap_w_;                     // price of each gap, shape [main + 1]
  std::vector<bool> pause_is_paid_;               // shape [pauses]
  std::vector<double> alone_w_;                   // price of the side's pause, shape [main]
  double free_pauses_j_ = 0.0;                    // that alone_w_ counts though nobody waits
  std::vector<double> gaps_s_;                    // least time of all gaps of each side activity
  std::vector<double> needed_;                    // progress that each side activity has to make
  std::vector<double> base_, price_;              // first and present price of each
  std::vector<double> hold_base_;                 // base_ of those that are collectives
  std::vector<double> lost_w_;                    // by clock
  std::vector<Meeting> alone_least_, least_;      // shape [main]
  std::vector<Meeting> meetings_;
  std::vector<Cheapest> cheapest_;     // shape [main], if there are meetings
  std::vector<Alike> alike_;           // empty: some beside the main stream are launches
  std::vector<std::size_t> alike_of_;  // of each side activity there
};

}  // namespace rubato
