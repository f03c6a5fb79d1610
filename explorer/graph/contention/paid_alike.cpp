// Collectives of one kernel, priced together.

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "explorer/graph/contention/paid_gpu.hpp"

namespace rubato {

void PaidGpu::find_alike(PairCosts& pairs, CompanyId company) {
  std::map<std::uint32_t, std::size_t> known;
  for (std::size_t s = 0; s < lanes_.side.size(); ++s) {
    const SideActivity& of = lanes_.side[s];
    const std::uint32_t kernel = costs_.kernel_of(of.activity);
    const auto [at, made] = known.try_emplace(kernel, alike_.size());
    if (made) {
      alike_.push_back({{}, std::vector<std::span<const PairCost>>(lanes_.main.size()), {}});
    }
    Alike& alike = alike_[at->second];
    alike_of_.push_back(at->second);
    alike.sides.push_back(s);
    for (std::uint32_t p = of.first; p < of.last; ++p) {
      if (alike.pair[p].empty())
        alike.pair[p] = pairs.pair(costs_.kernel_of(lanes_.main[p]), kernel, true, company);
    }
  }
}

// One price for collectives of one kernel: the least at which offers up to it have room for those
// of them that may be paid so much. A higher one would cost more in main launches than it brings.
double PaidGpu::price_for(const Alike& alike, std::vector<Offer> offers,
                          std::span<const double> most) const {
  std::ranges::sort(offers, {}, &Offer::price_j);
  std::vector<Offer> limits;  // the most that each may be paid, and the progress it needs
  double needed = 0.0, room = 0.0;
  for (std::size_t k = 0; k < most.size(); ++k) {
    limits.push_back({most[k], needed_[alike.sides[k]]});
    needed += limits.back().progress;
  }
  std::ranges::sort(limits, {}, &Offer::price_j);
  auto limit = limits.begin();
  for (const Offer& one : offers) {
    for (; limit != limits.end() && limit->price_j < one.price_j; ++limit) {
      needed -= limit->progress;
      if (room >= needed) return limit->price_j;
    }
    room += one.progress;
    if (room >= needed) return one.price_j;
  }
  return no_price_j;
}

// One price for all of them, but for those that have too little room of their own at it.
void PaidGpu::raise(Alike& alike) {
  std::vector<double> most;
  for (const std::size_t s : alike.sides) most.push_back(most_price(s));
  std::vector<Offer> offers(lanes_.main.size(), {no_price_j, 0.0});
  for (std::size_t p = 0; p < offers.size(); ++p) {
    if (!alike.pair[p].empty()) offers[p] = offer(p, alike.pair[p], 0.0, least_[p].least_j);
  }
  const double price = price_for(alike, offers, most);
  std::vector<double> room{0.0};  // beside the launches before each
  for (const Offer& one : offers)
    room.push_back(room.back() + (one.price_j <= price ? one.progress : 0.0));
  alike.price_w.assign(lanes_.main.size(), 0.0);
  for (std::size_t k = 0; k < alike.sides.size(); ++k) {
    const std::size_t s = alike.sides[k];
    const SideActivity& of = lanes_.side[s];
    double own = price;
    if (room[of.last] - room[of.first] < needed_[s]) {
      std::vector<Offer> near(offers.begin() + of.first, offers.begin() + of.last);
      near.push_back(gap_offer(s));
      own = price_for(needed_[s], near, most[k]);
    }
    price_[s] = std::clamp(own, std::min(base_[s], most[k]), most[k]);
    for (std::uint32_t p = of.first; p < of.last; ++p)
      alike.price_w[p] = std::max(alike.price_w[p], price_[s]);
  }
  for (std::size_t p = 0; p < lanes_.main.size(); ++p) {
    if (alike.pair[p].empty()) continue;
    const Meeting met = meeting(p, alike.pair[p], 0.0, alike.price_w[p]);
    if (met.least_j < least_[p].least_j) least_[p] = met;
  }
}

}  // namespace rubato
