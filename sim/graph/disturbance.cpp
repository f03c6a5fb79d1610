#include "sim/graph/disturbance.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>

#include "common/error.hpp"
#include "sim/jitter.hpp"

namespace rubato {

namespace {

using FactorOfRank = std::map<std::uint32_t, double>;

std::string list_of_ranks(const FactorOfRank& ranks) {
  constexpr std::size_t most = 16;
  std::string text;
  std::size_t listed = 0;
  for (const auto& [rank, factor] : ranks) {
    if (++listed > most) return text + fmt::format(" ... {}", ranks.rbegin()->first);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  }
  return text;
}

FactorOfRank ranks_of(const ExecutionGraph& graph) {
  FactorOfRank found;
  for (const GraphGpu& gpu : graph.gpus()) found[gpu.rank] = 1.0;
  return found;
}

double& at_rank(FactorOfRank& ranks, std::uint32_t rank) {
  const auto at = ranks.find(rank);
  if (at == ranks.end())
    throw UsageError(
        fmt::format("there is no rank {}; the run has {}", rank, list_of_ranks(ranks)));
  return at->second;
}

FactorOfRank factors(const ExecutionGraph& graph, const std::vector<RankSlowdown>& slowdowns) {
  FactorOfRank found = ranks_of(graph);
  for (const RankSlowdown& one : slowdowns) {
    double& factor = at_rank(found, one.rank);
    if (!(one.factor >= 1.0) || !std::isfinite(one.factor)) {
      throw UsageError(fmt::format("rank {} takes {} times as long; expected a number >= 1",
                                   one.rank, one.factor));
    }
    factor *= one.factor;
  }
  return found;
}

void lower(std::optional<double>& limit, const std::optional<double>& other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

}  // namespace

std::vector<double> slowdown_of(const ExecutionGraph& graph, const GraphDisturbance& disturbance) {
  if (!(disturbance.jitter_frac >= 0.0 && disturbance.jitter_frac <= 1.0))
    throw UsageError(
        fmt::format("jitter is {}; expected a number from 0 to 1", disturbance.jitter_frac));
  const FactorOfRank gpus = factors(graph, disturbance.gpus),
                     links = factors(graph, disturbance.links);
  std::vector<double> factor(graph.size(), 1.0);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (activity.kind == ActivityKind::transfer) {
      for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
        const auto link = links.find(graph[arc.from].rank);
        if (link != links.end()) factor[i] = std::max(factor[i], link->second);
      }
    } else if (activity.kind == ActivityKind::launch) {
      const bool communicates =
          graph.kernels()[index(activity.kernel)].kind == KernelClass::communication;
      factor[i] = communicates ? links.at(activity.rank)
                               : gpus.at(activity.rank) *
                                     jitter_factor(disturbance.jitter_frac, disturbance.seed, i);
    }
  }
  return factor;
}

GraphModel disturbed(const GraphModel& model, const GraphDisturbance& disturbance) {
  const ExecutionGraph& graph = model.graph();
  GraphModel slowed = model.with_slowdown(slowdown_of(graph, disturbance));
  if (disturbance.throttles.empty()) return slowed;
  FactorOfRank ranks = ranks_of(graph);
  std::vector<GpuThrottle> of_gpu(graph.gpus().size());
  for (const RankThrottle& one : disturbance.throttles) {
    (void)at_rank(ranks, one.rank);
    // Each has to be in range, also one that a lower one hides.
    (void)model.with_throttles(std::vector<GpuThrottle>(of_gpu.size(), one.throttle));
    for (std::size_t g = 0; g < of_gpu.size(); ++g) {
      if (graph.gpus()[g].rank != one.rank) continue;
      lower(of_gpu[g].core_mhz, one.throttle.core_mhz);
      lower(of_gpu[g].power_limit_w, one.throttle.power_limit_w);
      of_gpu[g].power_factor *= one.throttle.power_factor;
    }
  }
  return slowed.with_throttles(of_gpu);
}

}  // namespace rubato
