#include "explorer/graph/contention/held_energy.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sim/sharing/shared_gpu.hpp"

namespace rubato {

HeldEnergy::HeldEnergy(const LaunchCosts& costs, const std::vector<bool>& shared) {
  const ExecutionGraph& graph = costs.model().graph();
  const DurationRange range(costs);
  std::vector<double> first_start_s(graph.size()), last_start_s(graph.size());
  earliest_starts(graph, range.least_s, first_start_s);
  earliest_starts(graph, range.most_s, last_start_s);
  const std::vector<double> to_end_s = times_to_end_s(graph, range.least_s);
  const bool contended = std::ranges::find(shared, true) != shared.end();
  if (contended) std::ranges::fill(last_start_s, std::numeric_limits<double>::infinity());
  gpus_.resize(graph.gpus().size());
  std::vector<std::uint32_t> arrival_on(graph.streams().size(), 0);
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    const auto gpu = graph.gpu_of(activity);
    if (!gpu) continue;
    Holder& holder = gpus_[index(*gpu)];
    if (activity.kind == ActivityKind::launch) holder.launches_s += range.most_s[i];
    std::uint32_t& arrival = arrival_on[*activity.stream];
    if (activity.kind == ActivityKind::arrival) {
      if (arrival == 0) holder.streams += 1.0;
      arrival = i;
    }
    if (activity.kind != ActivityKind::departure || (contended && shared[index(*gpu)])) continue;
    Hold hold{.power_w = costs.least_active_w(i),
              .transfer_s = 0.0,
              .copying_s = 0.0,
              .first_departure_s = first_start_s[i],
              .last_arrival_s = last_start_s[arrival],
              .least_after_arrival_s = to_end_s[arrival]};
    for (const GraphArc& arc : graph.arcs_into(ActivityId{i})) {
      const Activity& from = graph[arc.from];
      if (from.kind != ActivityKind::transfer) continue;
      const double transfer_s = costs.model().transfer_s(index(arc.from));
      hold.transfer_s = std::max(hold.transfer_s, transfer_s);
      hold.copying_s = std::max(hold.copying_s, transfer_s + arc.lag_s);
    }
    holder.holds.push_back(hold);
  }
}

double HeldEnergy::least_j(const Holder& gpu, double deadline_s, bool stalls) {
  double sum_j = 0.0, most_w = 0.0;
  for (const Hold& hold : gpu.holds) {
    const double arrival_s = std::min(hold.last_arrival_s, deadline_s - hold.least_after_arrival_s);
    const double held_s = std::max(hold.first_departure_s - arrival_s, hold.copying_s);
    sum_j += hold.power_w * (stalls ? hold.transfer_s : held_s);
    most_w = std::max(most_w, hold.power_w);
  }
  constexpr double lost_beside_load = 1.0 - 1.0 / (1.0 + CollectiveSharing{}.load_slowdown);
  const double beside_s = gpu.streams * std::min(gpu.launches_s, deadline_s);
  return sum_j - lost_beside_load * std::min(sum_j, most_w * beside_s);
}

double HeldEnergy::least_j(double deadline_s, bool stalls) const {
  double sum_j = 0.0;
  for (const Holder& gpu : gpus_) sum_j += least_j(gpu, deadline_s, stalls);
  return sum_j;
}

}  // namespace rubato
