#include "explorer/graph/contention/contended_bound.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace rubato {

namespace {

constexpr std::size_t most_flow_moves = 60;
// Side activities beside main launches at a clock, looked at some seven times for each move.
constexpr std::size_t most_evaluations = 30'000'000, most_meetings = 24'000'000;
constexpr double first_move = 0.25, move_decay = 0.93;
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

// How long launches beside a main stream take at most, whatever it runs.
const std::vector<double>& ContendedBound::most_s() {
  if (most_s_) return *most_s_;
  most_s_.emplace(graph_.size(), std::numeric_limits<double>::infinity());
  for (const GpuLanes& lanes : lanes_) {
    if (!lanes.others.empty()) continue;
    std::set<std::uint32_t> main, side;
    for (const std::uint32_t launch : lanes.main) main.insert(costs_.kernel_of(launch));
    for (const SideActivity& one : lanes.side) {
      if (!one.holds) side.insert(costs_.kernel_of(one.activity));
    }
    if (pairs_.cells() + main.size() * side.size() * costs_.clocks() > most_pair_costs) continue;
    std::map<std::uint32_t, double> most;
    for (const std::uint32_t one : side) {
      double& most_s = most[one];
      for (const PairCost& cell : pairs_.alone(one)) most_s = std::max(most_s, 1.0 / cell.per_s);
      for (const std::uint32_t beside : main) {
        for (const PairCost& cell : pairs_.pair(beside, one, false, no_company))
          most_s = std::max(most_s, 1.0 / cell.side_per_s);
      }
    }
    for (const SideActivity& one : lanes.side) {
      if (one.holds) continue;
      (*most_s_)[one.activity] = costs_.amount(one.activity) * most[costs_.kernel_of(one.activity)];
    }
  }
  return *most_s_;
}

// Side activities that may lie beside too much to look at all of it.
void ContendedBound::leave_out_far_ones(std::vector<GpuLanes>& lanes) const {
  std::size_t sides = 0, meetings = 0, cells = pairs_.cells();
  for (const GpuLanes& one : lanes) {
    sides += one.side.size();
    for (const SideActivity& side : one.side) meetings += side.last - side.first;
  }
  const std::size_t fit = most_meetings / costs_.clocks();
  const std::size_t most = meetings > fit ? fit / sides : fit;
  for (GpuLanes& one : lanes) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> known;
    std::vector<SideActivity> near;
    for (const SideActivity& side : one.side) {
      bool fits = side.last - side.first <= most;
      for (std::uint32_t p = side.first; fits && p < side.last; ++p) {
        if (known.contains({costs_.kernel_of(one.main[p]), costs_.kernel_of(side.activity)}))
          continue;
        fits = cells + costs_.clocks() <= most_pair_costs;
        if (!fits) break;
        known.emplace(costs_.kernel_of(one.main[p]), costs_.kernel_of(side.activity));
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
    const bool known = !deadline.stalls && lanes[g].others.empty();
    narrow(graph_,
           {least_s_, known ? std::span<const double>(most_s()) : std::span<const double>(),
            deadline.time_s},
           g, lanes[g]);
  }
  leave_out_far_ones(lanes);
  return lanes;
}

// Of collectives between arrival and departure: the transfer at least, and waiting for the last
// rank where that arrives late in any plan.
std::vector<double> ContendedBound::least_holds_s(const std::vector<GpuLanes>& lanes,
                                                  const ContendedDeadline& deadline) const {
  std::vector<double> hold_s(graph_.size(), 0.0), start_s(graph_.size());
  earliest_starts(graph_, least_s_, start_s);
  const std::vector<double> to_end_s = times_to_end_s(graph_, least_s_);
  for (const GpuLanes& one : lanes) {
    for (const SideActivity& side : one.side) {
      if (!side.holds) continue;
      double& least_s = hold_s[side.activity];
      for (const GraphArc& arc : graph_.arcs_into(ActivityId{side.departure})) {
        if (graph_[arc.from].kind != ActivityKind::transfer) continue;
        const double transfer_s = least_s_[index(arc.from)];
        least_s = std::max(least_s, deadline.stalls ? transfer_s : transfer_s + arc.lag_s);
      }
      const double arrival_s = deadline.time_s - to_end_s[side.activity];
      if (!deadline.stalls) least_s = std::max(least_s, start_s[side.departure] - arrival_s);
    }
  }
  return hold_s;
}

// Prices rise where the clocks they choose end late, and fall where those end in time.
void ContendedBound::move(const PaidGraph& paid, double time_s, double step, ArcFlow& flow) const {
  const std::vector<double> duration_s = paid.durations_s();
  std::vector<double> start_s(graph_.size());
  const double span_s = earliest_starts(graph_, duration_s, start_s);
  if (span_s <= time_s) return scale(flow, 1.0 - 0.5 * step);
  for (std::size_t i = 0; i < graph_.size(); ++i) start_s[i] += duration_s[i];
  const double raise_w = step * std::max(flow.price_w, costs_.least_idle_w());
  raise_latest_path(graph_, start_s, raise_w, flow);
}

PaidGraph ContendedBound::paid_by(const ContendedDeadline& deadline) {
  std::vector<GpuLanes> lanes = narrowed(deadline);
  const std::vector<double> holds_s = least_holds_s(lanes, deadline);
  return {costs_, pairs_, std::move(lanes), holds_s, least_s_};
}

double ContendedBound::least_j(const ContendedDeadline& deadline, ArcFlow flow,
                               const LaunchUnits* units, const RunContext& context) {
  PaidGraph paid = paid_by(deadline);
  const std::size_t evaluations = (paid.meetings() + graph_.size()) * costs_.clocks();
  const std::size_t rounds =
      std::clamp<std::size_t>(most_evaluations / evaluations, 3, most_flow_moves);
  double best_j = 0.0, step = first_move;  // stopped before the first: no bound
  ArcFlow best = flow;
  std::size_t round = 0;
  const auto raises = [&](const ArcFlow& tried) {
    if (round++ >= rounds || context.stop_requested()) return false;
    paid.pay(tried);
    const double found_j = paid.bound_j(deadline, units);
    if (found_j <= best_j) return false;
    best_j = found_j;
    best = tried;
    return true;
  };
  // All prices by one factor first: where time is short they may be far too low.
  if (raises(flow)) {
    for (const double factor : {2.0, 0.5}) {
      ArcFlow scaled = best;
      do scale(scaled, factor);
      while (raises(scaled));
      if (best.price_w != flow.price_w) break;
    }
  }
  const auto back = [&] {
    flow = best;
    paid.pay(flow);
  };
  for (back(); round < rounds && !context.stop_requested(); step *= move_decay) {
    move(paid, deadline.time_s, step, flow);
    if (raises(flow) || 2 * round <= rounds) continue;
    back();
    step *= 0.5;
  }
  return best_j;
}

}  // namespace rubato
