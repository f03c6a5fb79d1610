#include "explorer/graph/contention/longest_times.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace rubato {

namespace {

using Streams = std::vector<std::vector<std::uint32_t>>;  // kernels of LaunchCosts on each

// What each GPU may run at once.
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

}  // namespace

std::vector<double> longest_times_s(const LaunchCosts& costs, PairCosts& pairs) {
  const ExecutionGraph& graph = costs.model().graph();
  const std::vector<Streams> gpus = streams_of_gpus(costs);
  std::vector<std::map<std::uint32_t, double>> of_gpu_s(gpus.size());
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    if (gpus[g].size() < 2) continue;
    const auto longest = pairs.longest_s(gpus[g]);
    for (std::size_t s = 0; s < gpus[g].size(); ++s) {
      for (std::size_t k = 0; k < gpus[g][s].size(); ++k) {
        double& of = of_gpu_s[g][gpus[g][s][k]];
        of = std::max(of, longest[s][k]);
      }
    }
  }
  std::vector<double> longest_s = DurationRange(costs).most_s;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (!costs.is_clocked(i)) continue;
    const auto& of = of_gpu_s[index(*graph.gpu_of(graph.activities()[i]))];
    const auto at = of.find(costs.kernel_of(i));
    if (at != of.end()) longest_s[i] = costs.amount(i) * at->second;
  }
  return longest_s;
}

}  // namespace rubato
