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

FactorOfRank factors(const ExecutionGraph& graph, const std::vector<RankSlowdown>& slowdowns) {
  FactorOfRank found;
  for (const GraphGpu& gpu : graph.gpus()) found[gpu.rank] = 1.0;
  for (const RankSlowdown& one : slowdowns) {
    const auto at = found.find(one.rank);
    if (at == found.end()) {
      throw UsageError(
          fmt::format("there is no rank {}; the run has {}", one.rank, list_of_ranks(found)));
    }
    if (!(one.factor >= 1.0) || !std::isfinite(one.factor)) {
      throw UsageError(fmt::format("rank {} takes {} times as long; expected a number >= 1",
                                   one.rank, one.factor));
    }
    at->second *= one.factor;
  }
  return found;
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

}  // namespace rubato
