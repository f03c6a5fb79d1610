#include "explorer/graph/contention/contended_bound.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "common/numbers.hpp"
#include "explorer/graph/contention/paid_gpu.hpp"

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
    if (lanes.others > 0) continue;
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
        for (const PairCost& cell : pairs_.pair(beside, one, false, 0))
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
    const bool known = !deadline.stalls && lanes[g].others == 0;
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

// What no GPU's lanes pay for: launches on further streams at any clock, transfers.
double ContendedBound::others_j(const ArcFlow& flow) const {
  CompensatedSum sum_j;
  for (std::size_t i = 0; i < graph_.size(); ++i) {
    if (paid_[i]) continue;
    if (!costs_.is_clocked(i)) {
      sum_j.add(flow.node_w[i] * least_s_[i]);
      continue;
    }
    double least_j = std::numeric_limits<double>::infinity();
    for (const ClockId clock : costs_.useful_clocks(i))
      least_j =
          std::min(least_j, costs_.cost_j(i, clock) + flow.node_w[i] * costs_.time_s(i, clock));
    sum_j.add(least_j);
  }
  return sum_j.value();
}

double ContendedBound::bound_j(std::span<PaidGpu> gpus, const std::vector<GpuLanes>& lanes,
                               const ArcFlow& flow, const ContendedDeadline& deadline,
                               const LaunchUnits* units) const {
  CompensatedSum sum_j;
  std::vector<double> of_unit_j(units == nullptr ? 0 : units->size() * costs_.clocks(), 0.0);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    gpus[g].pay(flow);
    sum_j.add(gpus[g].side_j());
    for (std::size_t p = 0; p < lanes[g].main.size(); ++p) {
      if (units == nullptr) {
        sum_j.add(gpus[g].least_paid_j(p));
        continue;
      }
      const std::size_t unit = units->unit_of(lanes[g].main[p]);
      for (std::size_t c = 0; c < costs_.clocks(); ++c)
        of_unit_j[unit * costs_.clocks() + c] += gpus[g].paid_j(p, c);
    }
  }
  for (std::size_t u = 0; u < of_unit_j.size(); u += costs_.clocks()) {
    sum_j.add(
        *std::min_element(of_unit_j.begin() + static_cast<std::ptrdiff_t>(u),
                          of_unit_j.begin() + static_cast<std::ptrdiff_t>(u + costs_.clocks())));
  }
  sum_j.add(others_j(flow));
  // As of launches alone: the least sum of what time costs and saves is at one of both ends.
  const double idle_w = costs_.least_idle_w();
  const double at_s = flow.price_w >= idle_w ? deadline.time_s : deadline.least_time_s;
  sum_j.add(flow.lag_cost_j + (idle_w - flow.price_w) * at_s);
  return sum_j.value();
}

// Prices rise where the clocks they choose end late, and fall where those end in time.
void ContendedBound::move(std::span<const PaidGpu> gpus, const ContendedDeadline& deadline,
                          double step, ArcFlow& flow) const {
  std::vector<double> duration_s = least_s_, start_s(graph_.size());
  for (const PaidGpu& gpu : gpus) gpu.durations_s(duration_s);
  const double span_s = earliest_starts(graph_, duration_s, start_s);
  if (span_s <= deadline.time_s) return scale(flow, 1.0 - 0.5 * step);
  for (std::size_t i = 0; i < graph_.size(); ++i) start_s[i] += duration_s[i];
  const double raise_w = step * std::max(flow.price_w, costs_.least_idle_w());
  raise_latest_path(graph_, start_s, raise_w, flow);
}

double ContendedBound::least_j(const ContendedDeadline& deadline, ArcFlow flow,
                               const LaunchUnits* units, const RunContext& context) {
  const std::vector<GpuLanes> lanes = narrowed(deadline);
  const std::vector<double> holds_s = least_holds_s(lanes, deadline);
  std::vector<PaidGpu> gpus;
  paid_.assign(graph_.size(), false);
  std::size_t meetings = graph_.size();
  for (const GpuLanes& one : lanes) {
    gpus.emplace_back(costs_, one, pairs_, holds_s);
    for (const std::uint32_t launch : one.main) paid_[launch] = true;
    for (const SideActivity& side : one.side) {
      paid_[side.activity] = true;
      meetings += side.last - side.first;
    }
  }
  const std::size_t rounds =
      std::clamp<std::size_t>(most_evaluations / (meetings * costs_.clocks()), 3, most_flow_moves);
  double best_j = 0.0, step = first_move;  // stopped before the first: no bound
  ArcFlow best = flow;
  for (std::size_t round = 0; round < rounds && !context.stop_requested(); ++round) {
    const double found_j = bound_j(gpus, lanes, flow, deadline, units);
    if (found_j > best_j) {
      best_j = found_j;
      best = flow;
    } else if (2 * round > rounds) {  // from the best again, by less
      flow = best;
      for (PaidGpu& gpu : gpus) gpu.pay(flow);
      step *= 0.5;
    }
    move(gpus, deadline, step, flow);
    step *= move_decay;
  }
  return best_j;
}

}  // namespace rubato
