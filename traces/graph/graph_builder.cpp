#include "traces/graph/graph_builder.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <queue>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// Items by key, in compressed rows: those of key k are order[first[k]] to order[first[k + 1] - 1].
struct Rows {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> order;
};

template <class KeyOf>
Rows rows_by(std::size_t items, std::size_t keys, const KeyOf& key_of) {
  Rows rows{std::vector<std::uint32_t>(keys + 1, 0), std::vector<std::uint32_t>(items)};
  for (std::size_t i = 0; i < items; ++i) ++rows.first[key_of(i) + 1];
  for (std::size_t k = 0; k < keys; ++k) rows.first[k + 1] += rows.first[k];
  std::vector<std::uint32_t> next(rows.first.begin(), rows.first.end() - 1);
  for (std::size_t i = 0; i < items; ++i)
    rows.order[next[key_of(i)]++] = static_cast<std::uint32_t>(i);
  return rows;
}

std::string describe(const Activity& activity, const std::vector<Kernel>& kernels) {
  switch (activity.kind) {
    case ActivityKind::origin: return "the origin";
    case ActivityKind::host: return fmt::format("a host call of rank {}", activity.rank);
    default:
      return fmt::format("'{}' of rank {} at {:.6f} s",
                         printable(kernels[index(activity.kernel)].name), activity.rank,
                         activity.start_s);
  }
}

}  // namespace

GraphBuilder::GraphBuilder() { activities_.push_back({.kind = ActivityKind::origin}); }

GpuId GraphBuilder::add_gpu(GraphGpu gpu) {
  gpus_.push_back(std::move(gpu));
  return id_at<GpuId>(gpus_.size() - 1);
}

std::uint32_t GraphBuilder::add_stream(GraphStream stream) {
  streams_.push_back(std::move(stream));
  return static_cast<std::uint32_t>(streams_.size() - 1);
}

KernelId GraphBuilder::add_kernel(const Kernel& kernel) {
  const auto [at, is_new] = kernel_of_name_.emplace(kernel.name, id_at<KernelId>(kernels_.size()));
  if (is_new) kernels_.push_back(kernel);
  return at->second;
}

DraftId GraphBuilder::add(Activity activity) {
  activities_.push_back(activity);
  return id_at<DraftId>(activities_.size() - 1);
}

void GraphBuilder::add_arc(DraftId from, DraftId to, double lag_s, ArcKind kind, bool inferred) {
  assert(from != to && std::isfinite(lag_s) && lag_s >= 0.0);
  arcs_.push_back({from, to, lag_s, kind, inferred});
}

void GraphBuilder::release_first_activities() {
  std::vector<bool> waits(activities_.size(), false);
  for (const Draft& arc : arcs_) waits[index(arc.to)] = true;
  for (std::size_t i = 1; i < activities_.size(); ++i) {
    if (waits[i]) continue;
    add_arc(origin, id_at<DraftId>(i), activities_[i].start_s, ArcKind::release);
  }
}

void GraphBuilder::throw_cycle(std::string_view where, const std::vector<bool>& sorted) const {
  // Every activity that is left waits for another one that is left: going back ends in a cycle.
  std::vector<std::uint32_t> waits_for(activities_.size(), 0);
  std::size_t at = 0;
  for (const Draft& arc : arcs_) {
    if (sorted[index(arc.from)] || sorted[index(arc.to)]) continue;
    waits_for[index(arc.to)] = arc.from.value;
    at = index(arc.to);
  }
  for (std::size_t i = 0; i < activities_.size(); ++i) at = waits_for[at];
  std::string circle;
  std::size_t on = at;
  for (std::size_t named = 0; named < 4; ++named) {
    circle += (named > 0 ? ", which waits for " : "") + describe(activities_[on], kernels_);
    on = waits_for[on];
    if (on == at) break;
  }
  throw DataError(fmt::format("{}: activities wait for each other: {}{}", where, circle,
                              on == at ? "" : " and so on"),
                  {.in = {}, .hint = "captures of different runs, or clocks that do not agree"});
}

std::vector<DraftId> GraphBuilder::topological_order(std::string_view where) const {
  const std::size_t n = activities_.size();
  std::vector<std::uint32_t> waits(n, 0);
  for (const Draft& arc : arcs_) ++waits[index(arc.to)];
  const Rows out = rows_by(arcs_.size(), n, [&](std::size_t a) { return index(arcs_[a].from); });

  // By captured start, so that what runs at the same time lies together.
  const auto later = [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(activities_[a].start_s, a) > std::pair(activities_[b].start_s, b);
  };
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(later)> ready(later);
  std::vector<DraftId> order;
  std::vector<bool> sorted(n, false);
  ready.push(0);
  while (!ready.empty()) {
    const std::uint32_t i = ready.top();
    ready.pop();
    sorted[i] = true;
    order.push_back(id_at<DraftId>(i));
    for (std::uint32_t a = out.first[i]; a < out.first[i + 1]; ++a) {
      const std::uint32_t to = arcs_[out.order[a]].to.value;
      if (--waits[to] == 0) ready.push(to);
    }
  }
  if (order.size() < n) throw_cycle(where, sorted);
  return order;
}

// Host calls that no launch waits for, as those after the last launch, would draw the run out.
void GraphBuilder::leave_out_idle_hosts(std::vector<DraftId>& order) {
  std::vector<bool> needed(activities_.size());
  for (std::size_t i = 0; i < activities_.size(); ++i)
    needed[i] = activities_[i].kind != ActivityKind::host;
  const Rows in =
      rows_by(arcs_.size(), activities_.size(), [&](std::size_t a) { return index(arcs_[a].to); });
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const std::size_t i = index(*at);
    for (std::uint32_t a = in.first[i]; needed[i] && a < in.first[i + 1]; ++a)
      needed[index(arcs_[in.order[a]].from)] = true;
  }
  std::erase_if(order, [&](DraftId draft) { return !needed[index(draft)]; });
  std::erase_if(arcs_, [&](const Draft& arc) { return !needed[index(arc.to)]; });
}

GraphBuilder::Built GraphBuilder::build(std::string_view where) && {
  release_first_activities();
  std::vector<DraftId> order = topological_order(where);
  leave_out_idle_hosts(order);
  Built built{{}, std::vector<std::optional<ActivityId>>(activities_.size())};
  ExecutionGraph& graph = built.graph;
  graph.activities_.reserve(order.size());
  for (const DraftId draft : order) {
    built.id_of_draft[index(draft)] = id_at<ActivityId>(graph.activities_.size());
    graph.activities_.push_back(activities_[index(draft)]);
    graph.captured_span_s_ = std::max(graph.captured_span_s_, graph.activities_.back().end_s());
  }
  Rows in = rows_by(arcs_.size(), order.size(),
                    [&](std::size_t a) { return index(*built.id_of_draft[index(arcs_[a].to)]); });
  graph.arcs_.reserve(arcs_.size());
  for (const std::uint32_t a : in.order) {
    const Draft& arc = arcs_[a];
    graph.arcs_.push_back({*built.id_of_draft[index(arc.from)], arc.lag_s, arc.kind, arc.inferred});
  }
  graph.first_in_ = std::move(in.first);
  graph.gpus_ = std::move(gpus_);
  graph.streams_ = std::move(streams_);
  graph.kernels_ = std::move(kernels_);
  return built;
}

}  // namespace rubato
