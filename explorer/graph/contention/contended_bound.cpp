#include "explorer/graph/contention/contended_bound.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "explorer/graph/contention/flow_search.hpp"
#include "explorer/graph/contention/longest_times.hpp"

namespace rubato {

namespace {

// Pairs of a side activity and a main launch it may run beside x clocks.
constexpr std::size_t most_meetings = 24'000'000;
constexpr std::size_t most_pair_costs = 2'000'000;  // pairs of kernels x clocks

}  // namespace

ContendedBound::ContendedBound(const LaunchCosts& alone, const ClockGrid& grid)
    : costs_(alone),
      graph_(alone.model().graph()),
      pairs_(alone, grid),
      least_s_(DurationRange(alone).least_s),
      lanes_(gpu_lanes(alone)) {}

bool ContendedBound::matters() const noexcept {
  return std::ranges::any_of(lanes_, [](const GpuLanes& one) { return !one.side.empty(); });
}

std::vector<bool> ContendedBound::shared_gpus() const {
  std::vector<bool> shared;
  for (const GpuLanes& one : lanes_) shared.push_back(one.shared);
  return shared;
}

const std::vector<double>& ContendedBound::most_s() {
  if (!most_s_) most_s_ = longest_times_s(costs_, pairs_);
  return *most_s_;
}

const std::vector<double>& ContendedBound::passed_s(std::uint32_t gpu) {
  if (passed_s_.empty())
    for (const GpuLanes& one : lanes_) passed_s_.push_back(most_passed_s(costs_, pairs_, one));
  return passed_s_[gpu];
}

// Drops side activities that may run beside too many main launches to look at all of them.
void ContendedBound::leave_out_far_ones(std::vector<GpuLanes>& lanes) const {
  // Where all are collectives, those of one kernel are looked at together.
  const auto weight = [&](const GpuLanes& one) {
    return std::ranges::all_of(one.side, &SideActivity::holds) ? 2 : costs_.clocks();
  };
  std::size_t sides = 0, meetings = 0, cells = pairs_.cells();
  for (const GpuLanes& one : lanes) {
    sides += one.side.size();
    for (const SideActivity& side : one.side) meetings += weight(one) * (side.last - side.first);
  }
  for (GpuLanes& one : lanes) {
    const std::size_t fit = most_meetings / weight(one);
    const std::size_t most = meetings > most_meetings ? fit / sides : fit;
    std::set<std::pair<std::uint32_t, std::uint32_t>> known;
    std::vector<SideActivity> near;
    for (const SideActivity& side : one.side) {
      bool fits = side.last - side.first <= most;
      for (std::uint32_t p = side.first; fits && p < side.last; ++p) {
        const std::pair kernels{costs_.kernel_of(one.main[p]), costs_.kernel_of(side.activity)};
        if (known.contains(kernels)) continue;
        fits = cells + costs_.clocks() <= most_pair_costs;
        if (!fits) break;
        known.insert(kernels);
        cells += costs_.clocks();
      }
      if (fits) near.push_back(side);
      if (!fits && !side.holds) one.gaps_hold = false;
    }
    one.side = std::move(near);
  }
}

std::vector<GpuLanes> ContendedBound::narrowed(const ContendedDeadline& deadline) {
  std::vector<GpuLanes> lanes = lanes_;
  for (std::uint32_t g = 0; g < lanes.size(); ++g) {
    if (deadline.late_changes) lanes[g].gaps_hold = false;
    if (lanes[g].side.empty()) continue;
    SideLimits limits{least_s_, {}, {}, deadline.time_s};
    if (!deadline.stalls) {
      limits.most_s = most_s();
      limits.passed_s = passed_s(g);
    }
    narrow(graph_, limits, g, lanes[g]);
  }
  leave_out_far_ones(lanes);
  return lanes;
}

// How long collectives hold their GPU at least, from arrival to departure. At least the transfer.
// Where nothing stalls, also at least from where the rank arrives at the latest (everything at its
// slowest) to where it departs at the earliest.
std::vector<double> ContendedBound::least_holds_s(const std::vector<GpuLanes>& lanes,
                                                  const ContendedDeadline& deadline,
                                                  std::span<const double> latest_s) const {
  std::vector<double> hold_s(graph_.size(), 0.0), start_s(graph_.size());
  earliest_starts(graph_, least_s_, start_s);
  const std::vector<double> to_end_s = times_to_end_s(graph_, least_s_);
  for (const GpuLanes& one : lanes) {
    for (const SideActivity& side : one.side) {
      if (!side.holds) continue;
      double& least_s = hold_s[side.activity];
      for (const GraphArc& arc : graph_.arcs_into(ActivityId{side.departure})) {
        if (graph_[arc.from].kind != ActivityKind::transfer) continue;
        least_s =
            std::max(least_s, least_s_[index(arc.from)] + (deadline.stalls ? 0.0 : arc.lag_s));
      }
      if (deadline.stalls) continue;
      const double arrival_s =
          std::min(deadline.time_s - to_end_s[side.activity], latest_s[side.activity]);
      least_s = std::max(least_s, start_s[side.departure] - arrival_s);
    }
  }
  return hold_s;
}

PaidGraph ContendedBound::paid_by(const ContendedDeadline& deadline) {
  std::vector<GpuLanes> lanes = narrowed(deadline);
  std::vector<double> latest_s;  // everything at its slowest
  if (!deadline.stalls) {
    latest_s.resize(graph_.size());
    earliest_starts(graph_, most_s(), latest_s);
  }
  const std::vector<double> holds_s = least_holds_s(lanes, deadline, latest_s);
  for (GpuLanes& one : lanes) find_pauses(graph_, latest_s, one);
  // Others pay where they run for less time than collectives hold their GPU, see others_pay.
  for (GpuLanes& one : lanes) {
    if (one.others_hold || one.other_launches.empty()) continue;
    double held_s = 0.0, beside_s = 0.0;
    for (const SideActivity& side : one.side)
      if (side.holds) held_s += holds_s[side.activity];
    for (const std::uint32_t launch : one.other_launches) beside_s += most_s()[launch];
    one.others_pay = beside_s < held_s;
  }
  return {costs_, pairs_, std::move(lanes), holds_s, least_s_};
}

double ContendedBound::least_j(const ContendedDeadline& deadline, ArcFlow flow,
                               const LaunchUnits* units, const RunContext& context) {
  PaidGraph paid = paid_by(deadline);
  return best_bound_j(costs_, paid, deadline, std::move(flow), units, context);
}

}  // namespace rubato
