// Side activities priced one by one, each by the main launches it may run beside.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "explorer/graph/contention/paid_gpu.hpp"

namespace rubato {

PaidGpu::Meeting PaidGpu::meeting(std::size_t position, std::span<const PairCost> cells,
                                  double side_w, double price) const {
  const std::uint32_t launch = lanes_.main[position];
  const double time_w = flow_->node_w[launch] + side_w, work = costs_.amount(launch);
  const double held_s = held_after_s(position);
  Meeting least{no_price_j, 0.0};
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const PairCost& cell = cells[c];
    const double wall_s = work * cell.time_s;
    const double j =
        wall_s * (time_w + cell.power_w - price * cell.side_per_s) + held_s * surplus_w_[c];
    if (j < least.least_j) least = {j, wall_s};
  }
  return least;
}

PaidGpu::Offer PaidGpu::offer(std::size_t position, std::span<const PairCost> cells, double side_w,
                              double other_j) const {
  const std::uint32_t launch = lanes_.main[position];
  const double time_w = flow_->node_w[launch] + side_w, work = costs_.amount(launch);
  const double held_s = held_after_s(position);
  Offer cheapest{no_price_j, 0.0};
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const PairCost& cell = cells[c];
    const double wall_s = work * cell.time_s, progress = wall_s * cell.side_per_s;
    const double price =
        (wall_s * (time_w + cell.power_w) + held_s * surplus_w_[c] - other_j) / progress;
    if (price < cheapest.price_j) cheapest = {price, progress};
  }
  return cheapest;
}

// The cheapest way to run a main launch other than beside this side activity.
const PaidGpu::Meeting& PaidGpu::cheapest_without(std::size_t side, std::size_t position) const {
  const Cheapest& of = cheapest_[position];
  return of.first_side == side ? of.second : of.first;
}

void PaidGpu::find_cheapest(std::size_t position) {
  Cheapest& of = cheapest_[position];
  of = {alone_least_[position], {no_price_j, 0.0}, nobody, nobody};
  for (std::size_t k = first_at_[position]; k < first_at_[position + 1]; ++k) {
    const std::size_t side = side_at_[k];
    const Meeting& met = meetings_[place(side, position)];
    if (met.least_j < of.first.least_j) {
      of = {met, of.first, side, of.first_side};
    } else if (met.least_j < of.second.least_j) {
      of.second = met;
      of.second_side = side;
    }
  }
}

// Evaluates a meeting again, at the side activity's present price.
void PaidGpu::meet(std::size_t position, std::size_t side) {
  Cheapest& of = cheapest_[position];
  const Meeting met = meeting(position, side);
  meetings_[place(side, position)] = met;
  if (side == of.first_side && met.least_j <= of.second.least_j) {
    of.first = met;
  } else if (side == of.first_side || side == of.second_side || met.least_j < of.second.least_j) {
    find_cheapest(position);
  }
}

// The least price at which the offers up to it have room for all that is needed.
double PaidGpu::price_for(double needed, std::vector<Offer>& offers, double most) const {
  // Few of them are enough: a heap instead of all in order.
  std::ranges::make_heap(offers, std::greater{}, &Offer::price_j);
  for (double room = 0.0; !offers.empty(); offers.pop_back()) {
    std::ranges::pop_heap(offers, std::greater{}, &Offer::price_j);
    room += offers.back().progress;
    if (room >= needed) return offers.back().price_j;
  }
  return most;
}

void PaidGpu::raise(std::size_t side) {
  const SideActivity& of = lanes_.side[side];
  const double most = most_price(side);
  std::vector<Offer> offers;
  for (std::uint32_t p = of.first; p < of.last; ++p)
    offers.push_back(
        offer(p, together(p, side), side_flow_w(side), cheapest_without(side, p).least_j));
  offers.push_back(gap_offer(side));
  const double price = price_for(needed_[side], offers, most);
  price_[side] = std::clamp(price, std::min(base_[side], most), most);
  for (std::uint32_t p = of.first; p < of.last; ++p) meet(p, side);
}

void PaidGpu::raise_each() {
  constexpr int passes = 3;
  for (std::size_t s = 0; s < lanes_.side.size(); ++s) {
    for (std::uint32_t p = lanes_.side[s].first; p < lanes_.side[s].last; ++p)
      meetings_[place(s, p)] = meeting(p, s);
  }
  cheapest_.resize(lanes_.main.size());
  for (std::size_t p = 0; p < lanes_.main.size(); ++p) find_cheapest(p);
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t s = 0; s < lanes_.side.size(); ++s) raise(s);
  }
  for (std::size_t p = 0; p < lanes_.main.size(); ++p) least_[p] = cheapest_[p].first;
}

}  // namespace rubato
