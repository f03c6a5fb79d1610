#include "explorer/graph/contention/longest_times.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace rubato {

namespace {

using Streams = std::vector<std::vector<std::uint32_t>>;  // kernels of LaunchCosts on each

// Kernels by stream for each GPU: it may run one of each stream at once.
std::vector<Streams> streams_of_gpus(const LaunchCosts& costs) {
  const ExecutionGraph& graph = costs.model().graph();
  std::vector<std::set<std::uint32_t>> kernels(graph.streams().size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (!activity.stream) continue;
    if (activity.kind == ActivityKind::departure || costs.is_clocked(i))
      kernels[*activity.stream].insert(costs.kernel_of(i));
  }
  std::vector<Streams> gpus(graph.gpus().size());
  for (std::size_t s = 0; s < kernels.size(); ++s) {
    if (kernels[s].empty()) continue;
    gpus[index(graph.streams()[s].gpu)].emplace_back(kernels[s].begin(), kernels[s].end());
  }
  return gpus;
}

// The longest time of one launch of each kernel of a GPU, times `weight` (by clock) if it is given.
std::map<std::uint32_t, double> longest_of(const Streams& streams, PairCosts& pairs,
                                           std::span<const double> weight = {}) {
  std::map<std::uint32_t, double> of_kernel;
  if (streams.size() < 2) return of_kernel;
  const auto longest = pairs.longest_s(streams, weight);
  for (std::size_t s = 0; s < streams.size(); ++s) {
    for (std::size_t k = 0; k < streams[s].size(); ++k) {
      double& of = of_kernel[streams[s][k]];
      of = std::max(of, longest[s][k]);
    }
  }
  return of_kernel;
}

}  // namespace

std::vector<double> longest_times_s(const LaunchCosts& costs, PairCosts& pairs) {
  const ExecutionGraph& graph = costs.model().graph();
  std::vector<std::map<std::uint32_t, double>> of_gpu_s;
  for (const Streams& streams : streams_of_gpus(costs))
    of_gpu_s.push_back(longest_of(streams, pairs));
  std::vector<double> longest_s = DurationRange(costs).most_s;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (!costs.is_clocked(i)) continue;
    const auto& of = of_gpu_s[index(*graph.gpu_of(graph.activities()[i]))];
    const auto at = of.find(costs.kernel_of(i));
    if (at != of.end()) longest_s[i] = costs.amount(i) * at->second;
  }
  return longest_s;
}

std::vector<double> most_passed_s(const LaunchCosts& costs, PairCosts& pairs,
                                  const GpuLanes& lanes) {
  constexpr std::size_t most_pairs = 500'000;  // pairs of kernels x clocks
  if (!lanes.others.empty()) return {};
  std::set<std::uint32_t> main, beside;
  for (const std::uint32_t launch : lanes.main) main.insert(costs.kernel_of(launch));
  for (const SideActivity& side : lanes.side)
    if (!side.holds) beside.insert(costs.kernel_of(side.activity));
  if (main.size() * beside.size() * costs.clocks() > most_pairs) return {};
  const std::vector<std::uint32_t> kernels(beside.begin(), beside.end());
  const std::vector<double> of_kernel_s =
      pairs.most_passed_s(std::vector<std::uint32_t>(main.begin(), main.end()), kernels);
  std::vector<double> passed_s(costs.model().graph().size(), 0.0);
  for (const SideActivity& side : lanes.side) {
    if (side.holds) continue;
    const auto at = std::ranges::lower_bound(kernels, costs.kernel_of(side.activity));
    passed_s[side.activity] =
        costs.amount(side.activity) * of_kernel_s[static_cast<std::size_t>(at - kernels.begin())];
  }
  return passed_s;
}

std::vector<double> most_lost_j(const LaunchCosts& costs, PairCosts& pairs,
                                std::span<const GpuLanes> lanes,
                                std::span<const std::vector<double>> lost_w) {
  std::vector<double> lost_j(costs.model().graph().size(), 0.0);
  if (std::ranges::none_of(lanes, &GpuLanes::others_pay)) return lost_j;
  const std::vector<Streams> gpus = streams_of_gpus(costs);
  for (std::size_t g = 0; g < lanes.size(); ++g) {
    if (!lanes[g].others_pay) continue;
    const auto of_kernel_j = longest_of(gpus[g], pairs, lost_w[g]);
    for (const std::uint32_t launch : lanes[g].other_launches)
      lost_j[launch] = costs.amount(launch) * of_kernel_j.at(costs.kernel_of(launch));
  }
  return lost_j;
}

}  // namespace rubato
