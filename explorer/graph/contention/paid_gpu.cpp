#include "explorer/graph/contention/paid_gpu.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "common/numbers.hpp"

namespace rubato {

PaidGpu::PaidGpu(const LaunchCosts& costs, const GpuLanes& lanes, PairCosts& pairs,
                 std::span<const double> least_hold_s)
    : costs_(costs), lanes_(lanes) {
  for (const std::uint32_t launch : lanes.main)
    alone_.push_back(pairs.alone(costs.kernel_of(launch)));
  for (std::size_t c = 0; c < costs.clocks() && !lanes.main.empty(); ++c)
    surplus_w_.push_back(pairs.surplus_w(costs.kernel_of(lanes.main.front()), c));
  gap_is_held_.assign(lanes.main.size() + 1, lanes.gaps_hold);
  gap_w_.resize(lanes.main.size() + 1);
  alone_w_.resize(lanes.main.size(), 0.0);
  const CompanyId company = pairs.company(lanes.others, lanes.others_pay);
  std::vector<std::size_t> met(lanes.main.size() + 1, 0);
  first_meeting_.push_back(0);
  for (const SideActivity& side : lanes.side) {
    side_.push_back(pairs.side(costs.kernel_of(side.activity), side.holds, company));
    needed_.push_back(side.holds ? least_hold_s[side.activity] : costs.amount(side.activity));
    double& gaps_s = gaps_s_.emplace_back(0.0);
    for (std::uint32_t gap = side.first; gap <= side.last; ++gap) {
      gaps_s += lanes.lag_before_s[gap];
      if (!side.holds) gap_is_held_[gap] = false;
    }
    for (std::uint32_t p = side.first; p < side.last; ++p) ++met[p + 1];
    first_meeting_.push_back(first_meeting_.back() + side.last - side.first);
  }
  for (std::size_t p = 0; p < lanes.main.size(); ++p) met[p + 1] += met[p];
  first_at_ = met;
  side_at_.resize(first_meeting_.back());
  for (std::uint32_t s = 0; s < lanes.side.size(); ++s) {
    for (std::uint32_t p = lanes.side[s].first; p < lanes.side[s].last; ++p) side_at_[met[p]++] = s;
  }
  alone_least_.resize(lanes.main.size());
  least_.resize(lanes.main.size());
  if (std::ranges::all_of(lanes_.side, &SideActivity::holds)) {
    find_alike(pairs, company);
  } else {
    find_pairs(pairs, company);
  }
  find_hold_base();
  find_paid_pauses();
  if (lanes.others_pay) find_lost(pairs, company);
}

void PaidGpu::find_lost(PairCosts& pairs, CompanyId company) {
  lost_w_.assign(costs_.clocks(), 0.0);
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  const auto add = [&](const std::vector<double>& lost) {
    for (std::size_t c = 0; c < lost.size(); ++c) lost_w_[c] = std::max(lost_w_[c], lost[c]);
  };
  for (const SideActivity& side : lanes_.side) {
    if (!side.holds) continue;
    const std::uint32_t kernel = costs_.kernel_of(side.activity);
    add(pairs.lost_w({}, kernel, company));
    for (std::uint32_t p = side.first; p < side.last; ++p) {
      const std::uint32_t main = costs_.kernel_of(lanes_.main[p]);
      if (known.emplace(main, kernel).second) add(pairs.lost_w(main, kernel, company));
    }
  }
}

void PaidGpu::find_pairs(PairCosts& pairs, CompanyId company) {
  for (const SideActivity& side : lanes_.side) {
    const std::uint32_t kernel = costs_.kernel_of(side.activity);
    for (std::uint32_t p = side.first; p < side.last; ++p)
      pair_.push_back(pairs.pair(costs_.kernel_of(lanes_.main[p]), kernel, side.holds, company));
  }
  meetings_.resize(pair_.size());
}

// The least that a collective draws whatever it runs beside: its first price.
void PaidGpu::find_hold_base() {
  const auto least_w = [](double least, std::span<const PairCost> cells) {
    for (const PairCost& cell : cells) least = std::min(least, cell.side_w);
    return least;
  };
  for (std::size_t s = 0; s < lanes_.side.size(); ++s) {
    const SideActivity& of = lanes_.side[s];
    double least = least_w(no_price_j, side_[s]);
    for (std::uint32_t p = of.first; of.holds && alike_.empty() && p < of.last; ++p)
      least = least_w(least, together(p, s));
    hold_base_.push_back(least);
  }
  for (const Alike& alike : alike_) {
    double least = no_price_j;
    for (const std::span<const PairCost> cells : alike.pair) least = least_w(least, cells);
    for (const std::size_t s : alike.sides) hold_base_[s] = std::min(hold_base_[s], least);
  }
}

// How long the clock of a launch is held behind it, since nothing else can ask for another.
double PaidGpu::held_after_s(std::size_t position) const {
  const std::size_t gap = position + 1;
  return gap_is_held_[gap] ? lanes_.lag_before_s[gap] : 0.0;
}

// Idle power of the clock held through the gap behind a launch.
double PaidGpu::held_j(std::size_t position, std::size_t clock) const {
  return held_after_s(position) * surplus_w_[clock];
}

double PaidGpu::gap_price_w(std::size_t gap) const {
  if (gap == 0) return 0.0;
  if (gap == lanes_.main.size()) return flow_->to_end_w[lanes_.main.back()];
  const auto& arc = lanes_.arc_before[gap];
  return arc ? flow_->arc_w[*arc] : 0.0;
}

// Price of a side activity's own time; 0 for a collective, since that is on what it waits for.
double PaidGpu::side_flow_w(std::size_t side) const {
  const SideActivity& of = lanes_.side[side];
  return of.holds ? 0.0 : flow_->node_w[of.activity];
}

double PaidGpu::alone_j(std::size_t position, std::size_t clock) const {
  const std::uint32_t launch = lanes_.main[position];
  const PairCost& cell = alone_[position][clock];
  return costs_.amount(launch) * cell.time_s *
             (flow_->node_w[launch] + alone_w_[position] + cell.power_w) +
         held_j(position, clock);
}

// Cost of both, less what the side activity is paid meanwhile.
double PaidGpu::together_j(std::size_t position, std::size_t side, std::size_t clock) const {
  const std::uint32_t launch = lanes_.main[position];
  const PairCost& cell = together(position, side)[clock];
  return costs_.amount(launch) * cell.time_s *
             (flow_->node_w[launch] + side_flow_w(side) + cell.power_w -
              price_[side] * cell.side_per_s) +
         held_j(position, clock);
}

// First prices: what a side activity costs whatever it runs beside, of its own power and time.
void PaidGpu::find_base() {
  base_ = hold_base_;
  for (std::size_t s = 0; s < lanes_.side.size(); ++s) {
    if (lanes_.side[s].holds) continue;
    base_[s] = no_price_j;
    for (const PairCost& cell : side_[s])
      base_[s] = std::min(base_[s], (side_flow_w(s) + cell.side_w) * cell.time_s);
  }
}

// The most that a side activity may be paid in a gap whose time has this price.
double PaidGpu::in_gap_j(std::size_t side, double gap_w) const {
  double least = no_price_j;
  for (const PairCost& cell : side_[side]) {
    const double time_s = lanes_.side[side].holds ? 1.0 : cell.time_s;
    least = std::min(least, (gap_w + side_flow_w(side) + cell.power_w) * time_s);
  }
  return least;
}

// The highest price of a side activity that all gaps it may lie in allow.
double PaidGpu::most_price(std::size_t side) const {
  const SideActivity& of = lanes_.side[side];
  return in_gap_j(side, *std::min_element(gap_w_.begin() + of.first, gap_w_.begin() + of.last + 1));
}

PaidGpu::Offer PaidGpu::gap_offer(std::size_t side) const {
  double progress = 0.0;
  for (const PairCost& cell : side_[side])
    progress = std::max(progress, gaps_s_[side] / (lanes_.side[side].holds ? 1.0 : cell.time_s));
  return {in_gap_j(side, 0.0), progress};
}

// Finds the pauses worth a price: main launches that may run in them take longer than the part in
// which nobody waits.
void PaidGpu::find_paid_pauses() {
  std::vector<double> end_s{0.0};  // of main launches one after the other at their fastest
  for (std::size_t p = 0; p < lanes_.main.size(); ++p) {
    const auto& cells = alone_[p];
    const double least_s = std::ranges::min(cells, {}, &PairCost::time_s).time_s;
    end_s.push_back(end_s.back() + costs_.amount(lanes_.main[p]) * least_s);
  }
  for (const SidePause& pause : lanes_.pauses)
    pause_is_paid_.push_back(pause.lag_s < end_s[pause.last] - end_s[pause.first]);
}

// Prices of the side stream's pauses: while a main launch runs alone, the next side activity waits.
// A launch that may lie in several pauses gets the least price of them.
void PaidGpu::find_pause_prices() {
  free_pauses_j_ = 0.0;
  if (lanes_.pauses.empty()) return;
  std::ranges::fill(alone_w_, no_price_j);
  for (std::size_t k = 0; k < lanes_.pauses.size(); ++k) {
    const SidePause& pause = lanes_.pauses[k];
    double w = pause.waits_for_end ? flow_->to_end_w[lanes_.side.back().departure] : 0.0;
    for (const std::uint32_t arc : pause.arcs) w += flow_->arc_w[arc];
    if (!pause_is_paid_[k]) w = 0.0;
    for (std::uint32_t p = pause.first; p < pause.last; ++p) alone_w_[p] = std::min(alone_w_[p], w);
  }
  for (const SidePause& pause : lanes_.pauses) {
    double most_w = 0.0;
    for (std::uint32_t p = pause.first; p < pause.last; ++p) most_w = std::max(most_w, alone_w_[p]);
    free_pauses_j_ += most_w * pause.lag_s;
  }
}

void PaidGpu::pay_alone() {
  for (std::size_t p = 0; p < lanes_.main.size(); ++p) {
    const std::uint32_t launch = lanes_.main[p];
    const double work = costs_.amount(launch);
    alone_least_[p] = {no_price_j, 0.0};
    for (std::size_t c = 0; c < alone_[p].size(); ++c) {
      const PairCost& cell = alone_[p][c];
      const double wall_s = work * cell.time_s;
      const double j = wall_s * (flow_->node_w[launch] + alone_w_[p] + cell.power_w) + held_j(p, c);
      if (j < alone_least_[p].least_j) alone_least_[p] = {j, wall_s};
    }
  }
}

void PaidGpu::pay(const ArcFlow& flow) {
  flow_ = &flow;
  for (std::size_t gap = 0; gap < gap_w_.size(); ++gap) gap_w_[gap] = gap_price_w(gap);
  find_pause_prices();
  pay_alone();
  find_base();
  price_ = base_;
  least_ = alone_least_;
  for (Alike& alike : alike_) raise(alike);
  if (alike_.empty()) raise_each();
}

double PaidGpu::paid_j(std::size_t position, std::size_t clock) const {
  double least = alone_j(position, clock);
  if (!alike_.empty()) {
    const std::uint32_t launch = lanes_.main[position];
    for (const Alike& alike : alike_) {
      if (alike.pair[position].empty()) continue;
      const PairCost& cell = alike.pair[position][clock];
      const double w = flow_->node_w[launch] + cell.power_w - alike.price_w[position];
      least = std::min(least, costs_.amount(launch) * cell.time_s * w + held_j(position, clock));
    }
    return least;
  }
  for (std::size_t k = first_at_[position]; k < first_at_[position + 1]; ++k)
    least = std::min(least, together_j(position, side_at_[k], clock));
  return least;
}

// For each main launch the side activity beside it for more than half of its time, or nobody.
std::vector<std::size_t> PaidGpu::beside(const ActivityTimes& times) const {
  std::vector<std::size_t> most(lanes_.main.size(), nobody);
  for (std::size_t p = 0; p < most.size(); ++p) {
    const double start_s = times.start_s[lanes_.main[p]], end_s = times.end_s[lanes_.main[p]];
    double most_s = 0.5 * (end_s - start_s);
    for (std::size_t k = first_at_[p]; k < first_at_[p + 1]; ++k) {
      const SideActivity& side = lanes_.side[side_at_[k]];
      const double both_s = std::min(end_s, times.end_s[side.departure]) -
                            std::max(start_s, times.start_s[side.activity]);
      if (both_s <= most_s) continue;
      most_s = both_s;
      most[p] = side_at_[k];
    }
  }
  return most;
}

void PaidGpu::add_costs_j(const ActivityTimes& times, const LaunchUnits& units,
                          std::span<double> of_unit_j) const {
  const std::vector<std::size_t> side_of = beside(times);
  for (std::size_t p = 0; p < lanes_.main.size(); ++p) {
    double* of_clock_j = &of_unit_j[units.unit_of(lanes_.main[p]) * costs_.clocks()];
    for (std::size_t c = 0; c < costs_.clocks(); ++c)
      of_clock_j[c] += side_of[p] == nobody ? alone_j(p, c) : together_j(p, side_of[p], c);
  }
  for (std::size_t s = 0; s < lanes_.side.size(); ++s) {
    if (lanes_.side[s].holds) continue;
    double* of_clock_j = &of_unit_j[units.unit_of(lanes_.side[s].activity) * costs_.clocks()];
    for (std::size_t c = 0; c < costs_.clocks(); ++c)
      of_clock_j[c] += needed_[s] * side_[s][c].time_s * (side_flow_w(s) + side_[s][c].side_w);
  }
}

double PaidGpu::least_paid_j(std::size_t position) const { return least_[position].least_j; }

double PaidGpu::side_j() const {
  CompensatedSum sum_j;
  sum_j.add(-free_pauses_j_);
  std::vector<double> lost_w(lanes_.main.size() + 1, 0.0);
  for (std::size_t s = 0; s < lanes_.side.size(); ++s) {
    const SideActivity& of = lanes_.side[s];
    sum_j.add(price_[s] * needed_[s]);
    double most_w = 0.0, most_beyond_w = 0.0;  // if it must pay idle power too; if not
    for (std::size_t c = 0; c < side_[s].size(); ++c) {
      const PairCost& cell = side_[s][c];
      const double paid_w = price_[s] / (of.holds ? 1.0 : cell.time_s) - side_flow_w(s);
      most_w = std::max(most_w, paid_w - cell.power_w);
      most_beyond_w = std::max(most_beyond_w, paid_w - cell.side_w);
    }
    for (std::uint32_t gap = of.first; gap <= of.last; ++gap)
      lost_w[gap] = std::max(lost_w[gap], gap_is_held_[gap] ? most_beyond_w : most_w);
  }
  for (std::size_t gap = 0; gap < lost_w.size(); ++gap)
    sum_j.add(-lost_w[gap] * lanes_.lag_before_s[gap]);
  return sum_j.value();
}

void PaidGpu::durations_s(std::span<double> duration_s) const {
  for (std::size_t p = 0; p < lanes_.main.size(); ++p)
    duration_s[lanes_.main[p]] = least_[p].wall_s;
}

}  // namespace rubato
