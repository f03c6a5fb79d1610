#include "explorer/pipeline/cells/cell_ascent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Found by trial on the Perseus profiles, where many cells are repetitions of a few.
constexpr std::size_t many_cells = 512;
constexpr std::size_t clocks_kept = 16, clocks_kept_of_many = 10;
constexpr int rounds = 100, rounds_of_many = 40, rounds_of_very_many = 24;
constexpr int settled_rounds = 10;  // first and last rounds, in which no flow moves
constexpr double later_gain = 0.5;  // the second half gained at most this share of the first's gain

// How fast flows follow what they would gain in the first round; later steps are smaller.
constexpr double weight_step = 0.05, shift_step = 0.003;
constexpr double memory = 0.8;         // smoothing: weight of a cell's gains in earlier rounds
constexpr double across_share = 0.35;  // of the free flow at a crossing, at first
constexpr double most_gain = 2.0;      // larger gains, as multiples of the mean, count as this
constexpr double most_weight = 1e3;
constexpr double most_shifted = 0.2;  // share of an arc's flow that one cell may shift

double least(std::span<const double> costs) { return *std::ranges::min_element(costs); }

}  // namespace

CellAscent::CellAscent(const CellBound& bound, const FrontierPlan& prices)
    : bound_(bound), flow_w_(prices.arc_flow_w), price_w_(prices.price_w) {
  const bool many = bound.cells_.size() > many_cells;
  const std::size_t kept = many ? clocks_kept_of_many : clocks_kept;
  for (std::uint32_t pass = 0; pass < prices.flow_w.size(); ++pass) {
    std::vector<Clock> list = all_clocks(pass);
    std::ranges::sort(list, {},
                      [&](const Clock& c) { return c.cost_j + prices.flow_w[pass] * c.time_s; });
    list.resize(std::min(list.size(), kept));
    std::ranges::sort(list);
    set_of_pass_.push_back(sets_.id(std::move(list)));
  }
  for (std::uint32_t pass = 0; pass < prices.flow_w.size(); ++pass) {
    PerClock& totals = total_j_.emplace_back();
    for (const Clock& c : clocks(pass)) totals.push_back(c.cost_j + prices.flow_w[pass] * c.time_s);
  }
  through_w_ = prices.flow_w;
  at_cell_.resize(bound.cells_.size());
  for (std::size_t k = 0; k < at_cell_.size(); ++k)
    for (std::size_t q = 0; q < 4; ++q)
      at_cell_[k].message_j[q].resize(clocks(bound.cells_[k].pass[q]).size());
  balance_crossings();
  share_out();
}

bool CellAscent::run(double wanted_j) {
  const int count = at_cell_.size() > very_many_cells ? rounds_of_very_many
                    : at_cell_.size() > many_cells    ? rounds_of_many
                                                      : rounds;
  const double start_j = line().least_j;
  for (int round = 0; round < count; ++round) {
    if (2 * round == count) {
      const double half_j = line().least_j;
      if (half_j + later_gain * (half_j - start_j) < wanted_j) return false;
    }
    sweep(round % 2 == 1);
    if (round >= settled_rounds && round < count - settled_rounds)
      redirect(1.0 - static_cast<double>(round) / count);
  }
  return line().least_j > wanted_j;
}

PriceLine CellAscent::line() {
  CompensatedSum sum_j;
  for (const PerClock& totals : total_j_) sum_j.add(least(totals));
  for (std::size_t a = 0; a < flow_w_.size(); ++a)
    sum_j.add((flow_w_[a] - moved_w_[a]) * lag_s(static_cast<std::uint32_t>(a)));
  for (std::size_t k = 0; k < at_cell_.size(); ++k) sum_j.add(least_of_cell(k));
  return {sum_j.value(), price_w_};
}

std::vector<CellAscent::Clock> CellAscent::all_clocks(std::uint32_t pass) const {
  std::vector<Clock> list;
  for (const ClockChoice& c : bound_.rounder_.choices(pass))
    list.push_back({c.time_s, c.cost_j, static_cast<std::uint32_t>(list.size())});
  return list;
}

double CellAscent::least_of_cell(std::size_t k) {
  std::array<PerClock, 4> paid;
  for (std::size_t q = 0; q < 4; ++q)
    for (const double j : at_cell_[k].message_j[q]) paid[q].push_back(-j);
  return least(marginals(k, paid)[0]);
}

// Finds for each pair of one way the best pair of the other way. That is one that is no longer, or
// a longer one, which then decides how long the cell lasts.
void CellAscent::half(std::size_t way, const std::vector<std::uint32_t>& shorter, double price_w) {
  const Way &of = ways_[way], &other = ways_[1 - way];
  const std::size_t count = other.pairs->size();
  within_j_.resize(count + 1);
  longer_j_.resize(count + 1);
  double *within_j = within_j_.data(), *longer_j = longer_j_.data();
  const double* other_j = other.cost_j.data();
  const WayPair* other_pairs = other.pairs->data();
  double lag_s = other.lag_s;
  double least_j = within_j[0] = infinite, least_longer_j = longer_j[count] = infinite;
  for (std::size_t i = 0; i < count; ++i) {  // one from the front, one from the back
    const std::size_t j = count - 1 - i;
    within_j[i + 1] = least_j = std::min(least_j, other_j[i]);
    longer_j[j] = least_longer_j =
        std::min(least_longer_j, other_j[j] + price_w * (other_pairs[j].time_s + lag_s));
  }
  lag_s = of.lag_s;
  const double* of_j = of.cost_j.data();
  double *first = marginal_j_[2 * way].data(), *second = marginal_j_[2 * way + 1].data();
  const WayPair* pair = of.pairs->data();
  for (const std::uint32_t j : shorter) {
    const double total_j =
        *of_j++ + std::min(price_w * (pair->time_s + lag_s) + within_j[j], longer_j[j]);
    first[pair->first] = std::min(first[pair->first], total_j);
    second[pair->second] = std::min(second[pair->second], total_j);
    ++pair;
  }
}

void CellAscent::find_ways(std::size_t k) {
  AtCell& at = at_cell_[k];
  const PassCell& cell = bound_.cells_[k];
  for (std::size_t w = 0; w < 2; ++w) {
    at.pairs[w] = &sets_.pairs(set_of_pass_[cell.pass[2 * w]], set_of_pass_[cell.pass[2 * w + 1]]);
    at.lag_s[w] = 0.0;
    for (std::size_t j = 3 * w; j < 3 * w + 3; ++j) at.lag_s[w] += lag_s(cell.arc[j]);
  }
  at.shorter = &sets_.shorter(at.pairs, at.lag_s);
}

// Min-marginals: for each clock of each pass of a cell, the least total of the cell and `beside`.
const std::array<CellAscent::PerClock, 4>& CellAscent::marginals(
    std::size_t k, const std::array<PerClock, 4>& beside) {
  const AtCell& at = at_cell_[k];
  if (at.shorter == nullptr) find_ways(k);
  for (std::size_t q = 0; q < 4; ++q) marginal_j_[q].assign(beside[q].size(), infinite);
  for (std::size_t w = 0; w < 2; ++w) {
    ways_[w].pairs = at.pairs[w];
    ways_[w].lag_s = at.lag_s[w];
    ways_[w].add_up(beside[2 * w], beside[2 * w + 1]);
  }
  const double price_w = at.moved_w[0] + at.moved_w[1];
  for (std::size_t w = 0; w < 2; ++w) half(w, (*at.shorter)[w], price_w);
  return marginal_j_;
}

// Cell by cell: a cell takes the totals of its four passes, finds what is least for each of their
// clocks, and gives each pass a quarter of that. The bound never falls by it.
void CellAscent::sweep(bool backwards) {
  for (std::size_t i = 0; i < at_cell_.size(); ++i) {
    const std::size_t k = backwards ? at_cell_.size() - 1 - i : i;
    AtCell& at = at_cell_[k];
    if (at.moved_w[0] + at.moved_w[1] <= 0.0) continue;
    for (std::size_t q = 0; q < 4; ++q) {
      beside_j_[q] = total_j_[bound_.cells_[k].pass[q]];
      for (std::size_t c = 0; c < beside_j_[q].size(); ++c) beside_j_[q][c] -= at.message_j[q][c];
    }
    marginals(k, beside_j_);
    for (std::size_t q = 0; q < 4; ++q) {
      PerClock& totals = total_j_[bound_.cells_[k].pass[q]];
      for (std::size_t c = 0; c < totals.size(); ++c) {
        totals[c] = 0.25 * marginal_j_[q][c];
        at.message_j[q][c] = totals[c] - beside_j_[q][c];
      }
    }
    note_gain(k);
  }
}

// One more watt that is moved from a way to the time of the whole cell raises the bound by how much
// longer the cell lasts than the way.
void CellAscent::note_gain(std::size_t k) {
  std::array<double, 2> way_s{};
  for (std::size_t w = 0; w < 2; ++w) {
    way_s[w] = ways_[w].lag_s;
    for (std::size_t q = 2 * w; q < 2 * w + 2; ++q) {
      const auto best = std::ranges::min_element(marginal_j_[q]) - marginal_j_[q].begin();
      way_s[w] += clocks(bound_.cells_[k].pass[q])[static_cast<std::size_t>(best)].time_s;
    }
  }
  const double longest_s = std::max(way_s[0], way_s[1]);
  for (std::size_t w = 0; w < 2; ++w)
    at_cell_[k].gain_s[w] =
        memory * at_cell_[k].gain_s[w] + (1.0 - memory) * (longest_s - way_s[w]);
}

// Sets how much of the flow at each crossing goes across. Flow may move between the arcs along and
// those across at no cost, since the lags of both add up to the same.
void CellAscent::balance_crossings() {
  across_.clear();
  for (const CellBound::Crossing& x : bound_.crossings_) {
    double &along_0 = flow_w_[x.along[0]], &along_1 = flow_w_[x.along[1]];
    double &across_0 = flow_w_[x.across[0]], &across_1 = flow_w_[x.across[1]];
    const double free_w = std::min(along_0, along_1) + std::min(across_0, across_1);
    const double change_w = across_share * free_w - std::min(across_0, across_1);
    along_0 -= change_w;
    along_1 -= change_w;
    across_0 += change_w;
    across_1 += change_w;
    across_.push_back(across_share);
  }
}

// Shares the flow of each arc out to the cells along it by their weights. Messages follow, such
// that the totals of passes stay the same.
void CellAscent::share_out() {
  std::vector<double> weight(flow_w_.size());
  for (std::size_t k = 0; k < at_cell_.size(); ++k)
    for (std::size_t j = 0; j < 6; ++j)
      weight[bound_.cells_[k].arc[j]] += at_cell_[k].weight[j / 3];
  moved_w_.assign(flow_w_.size(), 0.0);
  for (std::size_t k = 0; k < at_cell_.size(); ++k) {
    AtCell& at = at_cell_[k];
    const PassCell& cell = bound_.cells_[k];
    for (std::size_t w = 0; w < 2; ++w) {
      double moved_w = infinite;
      for (std::size_t j = 3 * w; j < 3 * w + 3; ++j)
        moved_w = std::min(moved_w, flow_w_[cell.arc[j]] * at.weight[w] / weight[cell.arc[j]]);
      const double more_w = moved_w - at.moved_w[w];
      at.moved_w[w] = moved_w;
      for (std::size_t j = 3 * w; j < 3 * w + 3; ++j) moved_w_[cell.arc[j]] += moved_w;
      for (std::size_t q = 2 * w; q < 2 * w + 2; ++q) {
        const std::vector<Clock>& list = clocks(cell.pass[q]);
        for (std::size_t c = 0; c < list.size(); ++c) at.message_j[q][c] += more_w * list[c].time_s;
      }
    }
  }
}

// What one more watt on each arc would gain, s: where the arc is the one that limits what is moved
// to a cell.
std::vector<double> CellAscent::worth_of_arcs(double& mean_s) const {
  std::vector<double> weight(flow_w_.size()), worth_s(flow_w_.size());
  for (std::size_t k = 0; k < at_cell_.size(); ++k)
    for (std::size_t j = 0; j < 6; ++j)
      weight[bound_.cells_[k].arc[j]] += at_cell_[k].weight[j / 3];
  for (std::size_t k = 0; k < at_cell_.size(); ++k) {
    const AtCell& at = at_cell_[k];
    for (std::size_t j = 0; j < 6; ++j) {
      const std::uint32_t arc = bound_.cells_[k].arc[j];
      const double share = at.weight[j / 3] / weight[arc];
      constexpr double nearly = 1.05;
      if (flow_w_[arc] * share <= nearly * at.moved_w[j / 3])
        worth_s[arc] += at.gain_s[j / 3] * share;
    }
  }
  mean_s = 0.0;
  for (const CellBound::Crossing& x : bound_.crossings_)
    for (std::size_t i = 0; i < 2; ++i) mean_s += worth_s[x.along[i]] + worth_s[x.across[i]];
  mean_s /= 4.0 * static_cast<double>(std::max<std::size_t>(1, bound_.crossings_.size()));
  return worth_s;
}

// Moves flow to the cells, the arcs of a crossing and the ways where it gains more.
void CellAscent::redirect(double share) {
  double mean_s = 0.0;
  for (const AtCell& at : at_cell_) mean_s += at.gain_s[0] + at.gain_s[1];
  mean_s /= 2.0 * static_cast<double>(at_cell_.size());
  if (mean_s <= 0.0) return;
  for (AtCell& at : at_cell_) {
    for (std::size_t w = 0; w < 2; ++w) {
      const double gain = std::min(most_gain, at.gain_s[w] / mean_s - 1.0);
      at.weight[w] = std::clamp(at.weight[w] * std::exp(weight_step * share * gain),
                                1.0 / most_weight, most_weight);
    }
  }
  shift_flows(mean_s, shift_step * share);
  share_out();
  double mean_worth_s = 0.0;
  const std::vector<double> worth_s = worth_of_arcs(mean_worth_s);
  for (std::size_t i = 0; i < across_.size() && mean_worth_s > 0.0; ++i) {
    const CellBound::Crossing& x = bound_.crossings_[i];
    const double gain =
        (worth_s[x.across[0]] + worth_s[x.across[1]] - worth_s[x.along[0]] - worth_s[x.along[1]]) /
        mean_worth_s;
    const double odds = across_[i] / (1.0 - across_[i]) *
                        std::exp(weight_step * share * std::clamp(gain, -most_gain, most_gain));
    const double to = std::clamp(odds / (1.0 + odds), 0.02, 0.98);
    const double along_w = std::min(flow_w_[x.along[0]], flow_w_[x.along[1]]);
    const double across_w = std::min(flow_w_[x.across[0]], flow_w_[x.across[1]]);
    const double change_w =
        std::clamp((to - across_[i]) * (along_w + across_w), -across_w, along_w);
    across_[i] = to;
    for (std::size_t j = 0; j < 2; ++j) {
      flow_w_[x.along[j]] -= change_w;
      flow_w_[x.across[j]] += change_w;
    }
  }
  share_out();
}

// Shifts flow from one way of a cell to the other, where that is longer.
void CellAscent::shift_flows(double mean_s, double step) {
  std::vector<double> more_w(total_j_.size());
  for (std::size_t k = 0; k < at_cell_.size(); ++k) {
    const AtCell& at = at_cell_[k];
    const PassCell& cell = bound_.cells_[k];
    double shift_w =
        step * (at.gain_s[0] - at.gain_s[1]) / (2.0 * mean_s) * (at.moved_w[0] + at.moved_w[1]);
    for (std::size_t j = 0; j < 3; ++j) {
      shift_w = std::min(shift_w, most_shifted * flow_w_[cell.arc[j]]);
      shift_w = std::max(shift_w, -most_shifted * flow_w_[cell.arc[j + 3]]);
    }
    for (std::size_t j = 0; j < 6; ++j) flow_w_[cell.arc[j]] += j < 3 ? -shift_w : shift_w;
    for (std::size_t q = 0; q < 4; ++q) more_w[cell.pass[q]] += q < 2 ? -shift_w : shift_w;
  }
  for (std::uint32_t pass = 0; pass < more_w.size(); ++pass) {
    through_w_[pass] += more_w[pass];
    const std::vector<Clock>& list = clocks(pass);
    for (std::size_t c = 0; c < list.size(); ++c)
      total_j_[pass][c] += more_w[pass] * list[c].time_s;
  }
}

// Takes in the clocks left out. Each pays a cell as much as possible without a change of the cell's
// least cost.
void CellAscent::take_all_clocks() {
  const std::vector<std::uint32_t> few = set_of_pass_;
  for (std::uint32_t pass = 0; pass < few.size(); ++pass) {
    set_of_pass_[pass] = sets_.id(all_clocks(pass));
    PerClock totals;
    for (const Clock& c : clocks(pass)) totals.push_back(c.cost_j + through_w_[pass] * c.time_s);
    total_j_[pass] = std::move(totals);
  }
  for (std::size_t k = 0; k < at_cell_.size(); ++k) {
    at_cell_[k].shorter = nullptr;
    const PassCell& cell = bound_.cells_[k];
    std::array<PerClock, 4> paid, message_j;
    for (std::size_t q = 0; q < 4; ++q) {
      paid[q].assign(clocks(cell.pass[q]).size(), infinite);
      const std::vector<Clock>& kept = sets_.clocks(few[cell.pass[q]]);
      for (std::size_t c = 0; c < kept.size(); ++c)
        paid[q][kept[c].choice] = -at_cell_[k].message_j[q][c];
    }
    const double least_j = least(marginals(k, paid)[0]);
    // With all clocks of the passes before, and the few of the rest.
    for (std::size_t q = 0; q < 4; ++q) {
      std::array<PerClock, 4> trial = paid;
      for (double& j : trial[q]) j = j == infinite ? 0.0 : infinite;
      const PerClock& open = marginals(k, trial)[q];
      for (std::size_t c = 0; c < open.size(); ++c)
        if (paid[q][c] == infinite) paid[q][c] = least_j - open[c];
      for (const double j : paid[q]) message_j[q].push_back(-j);
    }
    for (std::size_t q = 0; q < 4; ++q) {
      for (std::size_t c = 0; c < message_j[q].size(); ++c) {
        const double moved_j = at_cell_[k].moved_w[q / 2] * clocks(cell.pass[q])[c].time_s;
        total_j_[cell.pass[q]][c] += message_j[q][c] - moved_j;
      }
      at_cell_[k].message_j[q] = std::move(message_j[q]);
    }
  }
}

}  // namespace rubato
