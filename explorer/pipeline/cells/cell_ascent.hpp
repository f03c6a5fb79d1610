#pragma once
// The multipliers of a CellBound at work: block coordinate ascent, a cell at a time.

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "explorer/pipeline/cells/cell_bound.hpp"

namespace rubato {

/// With more cells than this, multipliers are raised in fewer rounds.
inline constexpr std::size_t very_many_cells = 8192;

/// One set of multipliers, at the prices of one iteration time.
class CellAscent {
 public:
  /// At first only some clocks of each pass take part, those that cost least at the prices.
  CellAscent(const CellBound& bound, const FrontierPlan& prices);

  /// Raises the bound for the clocks that take part, and moves flow to where it is worth more.
  /// @return whether least_j of the line is more than is wanted; gives up halfway where it will
  /// hardly be
  [[nodiscard]] bool run(double wanted_j);

  /// The bound: valid for all plans of the clocks that take part.
  [[nodiscard]] PriceLine line();

  /// From here on every clock takes part.
  void take_all_clocks();

  /// Raises the bound cell by cell.
  void sweep(bool backwards);

 private:
  struct Clock {
    double time_s = 0.0, cost_j = 0.0;
    std::uint32_t choice = 0;
    friend auto operator<=>(const Clock&, const Clock&) = default;  // NOLINT(modernize-use-nullptr)
  };

  // A clock for each of the two passes of a way.
  struct WayPair {
    double time_s = 0.0;
    std::uint32_t first = 0, second = 0;
  };

  using PerClock = std::vector<double>;

  // One way: its pairs, and what the passes of each cost beside what the cell's time costs.
  struct Way {
    const std::vector<WayPair>* pairs = nullptr;
    double lag_s = 0.0;
    PerClock cost_j;  // shape [pairs]

    void add_up(const PerClock& first, const PerClock& second) {
      cost_j.resize(pairs->size());
      for (std::size_t i = 0; i < pairs->size(); ++i)
        cost_j[i] = first[(*pairs)[i].first] + second[(*pairs)[i].second];
    }
    [[nodiscard]] double time_s(std::size_t i) const { return (*pairs)[i].time_s + lag_s; }
  };

  // For each pair of each of a cell's ways: how many pairs of the other way take no longer.
  using Shorter = std::array<std::vector<std::uint32_t>, 2>;

  // Keeps each list of clocks, of pairs and of how pairs compare once, since most cells share them.
  class ClockSets {
   public:
    std::uint32_t id(std::vector<Clock> clocks) {
      const auto [at, is_new] =
          id_of_.try_emplace(std::move(clocks), static_cast<std::uint32_t>(id_of_.size()));
      if (is_new) lists_.push_back(&at->first);
      return at->second;
    }
    [[nodiscard]] const std::vector<Clock>& clocks(std::uint32_t id) const { return *lists_[id]; }

    // All pairs of clocks of two lists, by the time of both passes.
    const std::vector<WayPair>& pairs(std::uint32_t first, std::uint32_t second) {
      std::vector<WayPair>& list = pairs_[{first, second}];
      if (!list.empty()) return list;
      const std::vector<Clock>&a = clocks(first), &b = clocks(second);
      for (std::uint32_t i = 0; i < a.size(); ++i)
        for (std::uint32_t j = 0; j < b.size(); ++j)
          list.push_back({a[i].time_s + b[j].time_s, i, j});
      std::ranges::stable_sort(list, {}, &WayPair::time_s);
      return list;
    }

    using Pairs = const std::vector<WayPair>*;
    const Shorter& shorter(const std::array<Pairs, 2>& pairs, const std::array<double, 2>& lag_s) {
      Shorter& found = shorter_[{pairs, lag_s}];
      if (!found[0].empty()) return found;
      for (std::size_t w = 0; w < 2; ++w) {
        const std::vector<WayPair>&of = *pairs[w], &other = *pairs[1 - w];
        std::uint32_t j = 0;
        for (const WayPair& pair : of) {
          const double time_s = pair.time_s + lag_s[w];
          while (j < other.size() && other[j].time_s + lag_s[1 - w] <= time_s) ++j;
          found[w].push_back(j);
        }
      }
      return found;
    }

   private:
    std::map<std::vector<Clock>, std::uint32_t> id_of_;
    std::vector<const std::vector<Clock>*> lists_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<WayPair>> pairs_;
    std::map<std::pair<std::array<Pairs, 2>, std::array<double, 2>>, Shorter> shorter_;
  };

  struct AtCell {
    std::array<PerClock, 4> message_j;  // multipliers: a pass pays them to the cell, shape [clocks]
    std::array<double, 2> moved_w{};    // flow taken off each way, onto the time of the whole cell
    std::array<double, 2> gain_s{};     // how much longer the cell lasts than each way, smoothed
    std::array<double, 2> weight{1.0, 1.0};
    // Of its ways, with the clocks that take part; null: not asked for yet.
    std::array<ClockSets::Pairs, 2> pairs{};
    std::array<double, 2> lag_s{};
    const Shorter* shorter = nullptr;
  };

  [[nodiscard]] std::vector<Clock> all_clocks(std::uint32_t pass) const;
  [[nodiscard]] const std::vector<Clock>& clocks(std::uint32_t pass) const {
    return sets_.clocks(set_of_pass_[pass]);
  }
  [[nodiscard]] double lag_s(std::uint32_t arc) const {
    return bound_.work_.schedule.dependencies[arc].lag_s;
  }
  [[nodiscard]] double least_of_cell(std::size_t k);
  void find_ways(std::size_t k);

  void half(std::size_t way, const std::vector<std::uint32_t>& shorter, double price_w);
  const std::array<PerClock, 4>& marginals(std::size_t k, const std::array<PerClock, 4>& beside);
  void note_gain(std::size_t k);
  void balance_crossings();
  void share_out();
  std::vector<double> worth_of_arcs(double& mean_s) const;
  void redirect(double share);
  void shift_flows(double mean_s, double step);

  const CellBound& bound_;
  ClockSets sets_;
  std::vector<std::uint32_t> set_of_pass_;
  std::vector<double> flow_w_, moved_w_, through_w_;  // on arcs, taken off arcs, through passes
  std::vector<double> across_;                        // share across of each crossing's free flow
  std::vector<PerClock> total_j_;                     // shape [passes][clocks], with messages
  std::vector<AtCell> at_cell_;
  double price_w_ = 0.0;
  std::array<PerClock, 4> marginal_j_, beside_j_;
  std::array<Way, 2> ways_;
  PerClock within_j_, longer_j_;
};

}  // namespace rubato
