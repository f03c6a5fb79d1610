#include "explorer/graph/contention/paid_graph.hpp"

#include <algorithm>
#include <limits>

#include "common/numbers.hpp"
#include "explorer/graph/contention/longest_times.hpp"

namespace rubato {

PaidGraph::PaidGraph(const LaunchCosts& costs, PairCosts& pairs, std::vector<GpuLanes> lanes,
                     const std::vector<double>& least_hold_s, std::span<const double> least_s)
    : costs_(costs), lanes_(std::move(lanes)), least_s_(least_s), paid_(least_s.size(), false) {
  std::vector<std::vector<double>> lost_w;
  for (const GpuLanes& one : lanes_) {
    lost_w.push_back(gpus_.emplace_back(costs, one, pairs, least_hold_s).lost_w());
    for (const std::uint32_t launch : one.main) paid_[launch] = true;
    for (const SideActivity& side : one.side) paid_[side.activity] = true;
  }
  lost_j_ = most_lost_j(costs, pairs, lanes_, lost_w);
}

void PaidGraph::pay(const ArcFlow& flow) {
  flow_ = &flow;
  for (PaidGpu& gpu : gpus_) gpu.pay(flow);
}

std::size_t PaidGraph::looked_at() const noexcept {
  std::size_t sum = 0;
  for (const PaidGpu& gpu : gpus_) sum += gpu.looked_at();
  return sum;
}

// Launches on further streams, at their cheapest clock, and transfers.
double PaidGraph::others_j() const {
  CompensatedSum sum_j;
  for (std::size_t i = 0; i < paid_.size(); ++i) {
    if (paid_[i]) continue;
    if (!costs_.is_clocked(i)) {
      sum_j.add(flow_->node_w[i] * least_s_[i]);
      continue;
    }
    double least_j = std::numeric_limits<double>::infinity();
    for (const ClockId clock : costs_.useful_clocks(i))
      least_j =
          std::min(least_j, costs_.cost_j(i, clock) + flow_->node_w[i] * costs_.time_s(i, clock));
    sum_j.add(least_j - lost_j_[i]);
  }
  return sum_j.value();
}

// GPUs may be summed up one by one, since no unit has launches of two.
double PaidGraph::of_gpu_j(std::uint32_t gpu, const LaunchUnits* units) const {
  CompensatedSum sum_j;
  std::vector<double> of_unit_j(units == nullptr ? 0 : units->size() * costs_.clocks(), 0.0);
  sum_j.add(gpus_[gpu].side_j());
  for (std::size_t p = 0; p < lanes_[gpu].main.size(); ++p) {
    if (units == nullptr) {
      sum_j.add(gpus_[gpu].least_paid_j(p));
      continue;
    }
    const std::size_t unit = units->unit_of(lanes_[gpu].main[p]);
    for (std::size_t c = 0; c < costs_.clocks(); ++c)
      of_unit_j[unit * costs_.clocks() + c] += gpus_[gpu].paid_j(p, c);
  }
  for (auto of_clock = of_unit_j.begin(); of_clock != of_unit_j.end();) {
    const auto end = of_clock + static_cast<std::ptrdiff_t>(costs_.clocks());
    sum_j.add(*std::min_element(of_clock, end));
    of_clock = end;
  }
  return sum_j.value();
}

// (idle power - price) x time is least at the deadline or at the least time.
double PaidGraph::of_time_j(const ContendedDeadline& deadline) const {
  const double idle_w = costs_.least_idle_w();
  const double at_s = flow_->price_w >= idle_w ? deadline.time_s : deadline.least_time_s;
  return flow_->lag_cost_j + (idle_w - flow_->price_w) * at_s;
}

double PaidGraph::bound_j(const ContendedDeadline& deadline, const LaunchUnits* units) const {
  CompensatedSum sum_j;
  for (std::uint32_t g = 0; g < gpus_.size(); ++g) sum_j.add(of_gpu_j(g, units));
  sum_j.add(others_j());
  sum_j.add(of_time_j(deadline));
  return sum_j.value();
}

std::vector<double> PaidGraph::durations_s() const {
  std::vector<double> duration_s(least_s_.begin(), least_s_.end());
  for (const PaidGpu& gpu : gpus_) gpu.durations_s(duration_s);
  return duration_s;
}

std::vector<ClockId> PaidGraph::cheapest_clocks(const ActivityTimes& times,
                                                const LaunchUnits& units) const {
  std::vector<double> of_unit_j(units.size() * costs_.clocks(), 0.0);
  for (const PaidGpu& gpu : gpus_) gpu.add_costs_j(times, units, of_unit_j);
  for (std::size_t i = 0; i < paid_.size(); ++i) {
    if (paid_[i] || !costs_.is_clocked(i)) continue;
    for (std::size_t c = 0; c < costs_.clocks(); ++c) {
      const auto clock = id_at<ClockId>(c);
      of_unit_j[units.unit_of(i) * costs_.clocks() + c] +=
          costs_.cost_j(i, clock) + flow_->node_w[i] * costs_.time_s(i, clock);
    }
  }
  std::vector<ClockId> clock_of_unit;
  for (auto of_clock = of_unit_j.begin(); of_clock != of_unit_j.end();) {
    const auto end = of_clock + static_cast<std::ptrdiff_t>(costs_.clocks());
    const auto least = std::min_element(of_clock, end);
    clock_of_unit.push_back(id_at<ClockId>(static_cast<std::size_t>(least - of_clock)));
    of_clock = end;
  }
  return clock_of_unit;
}

}  // namespace rubato
