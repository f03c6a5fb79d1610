#include "explorer/graph/late_passes.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rubato {

LatePasses::LatePasses(const ExecutionGraph& graph, const GraphRun& baseline,
                       std::vector<std::optional<std::uint32_t>> pass_of_activity)
    : graph_(graph),
      pass_of_activity_(std::move(pass_of_activity)),
      leading_(graph.gpus().size()),
      holds_(graph.gpus().size()) {
  const std::vector<std::uint32_t> main = main_streams(graph);
  std::map<std::uint32_t, std::vector<Hold>> of_stream;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    const auto gpu = graph.gpu_of(activity);
    if (!gpu) continue;
    if (activity.kind == ActivityKind::launch && main[index(*gpu)] == *activity.stream)
      leading_[index(*gpu)].push_back(i);
    if (activity.kind == ActivityKind::arrival) of_stream[*activity.stream].push_back({i, 0, 0});
    if (activity.kind != ActivityKind::departure) continue;
    std::vector<Hold>& holds = of_stream[*activity.stream];
    if (holds.empty()) continue;  // nothing arrived: who left was not captured from its begin
    Hold& hold = holds.back();
    hold.departure = i;
    for (const GraphArc& arc : graph.arcs_into(ActivityId{i}))
      if (graph[arc.from].kind == ActivityKind::transfer) hold.transfer = arc.from.value;
    hold.baseline_s = baseline.end_s[i] - baseline.start_s[hold.arrival];
  }
  for (auto& stream : of_stream) {
    // Without a departure or a transfer nobody was kept waiting.
    std::erase_if(stream.second,
                  [](const Hold& hold) { return !hold.departure || !hold.transfer; });
    if (stream.second.empty()) continue;
    const Activity& first = graph.activities()[stream.second.front().arrival];
    holds_[index(*graph.gpu_of(first))].push_back(std::move(stream.second));
  }
}

std::vector<std::set<std::uint32_t>> LatePasses::of(const GraphRun& run) const {
  std::vector<std::set<std::uint32_t>> found;
  std::vector<bool> seen(graph_.size(), false);
  const auto last = std::ranges::max_element(run.end_s) - run.end_s.begin();
  std::set<std::uint32_t> ends{static_cast<std::uint32_t>(last)};
  while (!ends.empty()) {
    std::set<std::uint32_t> passes, late_sides;
    for (const std::uint32_t end : ends) {
      walk_back(run, end, seen, [&](std::uint32_t i) {
        add_leading(run, i, passes);
        add_late_sides(run, i, late_sides);
      });
    }
    if (!passes.empty()) found.push_back(std::move(passes));
    std::erase_if(late_sides, [&](std::uint32_t arrival) { return seen[arrival]; });
    ends = std::move(late_sides);
  }
  return found;
}

// Walks back along what each activity waited for last, to the origin or to one seen before.
template <class Visit>
void LatePasses::walk_back(const GraphRun& run, std::uint32_t from, std::vector<bool>& seen,
                           const Visit& visit) const {
  for (std::uint32_t at = from; at != 0 && !seen[at];) {
    seen[at] = true;
    visit(at);
    const auto arcs = graph_.arcs_into(ActivityId{at});
    if (arcs.empty()) return;
    at = std::ranges::max_element(arcs, {}, [&](const GraphArc& arc) {
           return run.end_s[index(arc.from)] + arc.lag_s;
         })->from.value;
  }
}

// Adds the passes at whose clocks an activity runs: those of the main-stream launches of its GPU
// beside it, and that of the one before, whose clock the GPU keeps while the stream waits.
void LatePasses::add_leading(const GraphRun& run, std::uint32_t activity,
                             std::set<std::uint32_t>& passes) const {
  const auto gpu = graph_.gpu_of(graph_.activities()[activity]);
  if (!gpu) return;
  const std::vector<std::uint32_t>& leading = leading_[index(*gpu)];
  const auto start_s = [&](std::uint32_t launch) { return run.start_s[launch]; };
  auto at = std::ranges::upper_bound(leading, run.start_s[activity], {}, start_s);
  if (at != leading.begin()) --at;
  for (; at != leading.end() && (start_s(*at) < run.end_s[activity] || *at == activity); ++at) {
    if (const auto pass = pass_of_activity_[*at]) passes.insert(*pass);
  }
}

// Adds the last arrivals of messages that run beside a launch and last longer than at the default
// clocks.
void LatePasses::add_late_sides(const GraphRun& run, std::uint32_t activity,
                                std::set<std::uint32_t>& arrivals) const {
  const auto gpu = graph_.gpu_of(graph_.activities()[activity]);
  if (!gpu || graph_.activities()[activity].kind != ActivityKind::launch) return;
  for (const std::vector<Hold>& stream : holds_[index(*gpu)]) {
    auto hold = std::ranges::upper_bound(stream, run.start_s[activity], {},
                                         [&](const Hold& one) { return run.end_s[one.departure]; });
    for (; hold != stream.end() && run.start_s[hold->arrival] < run.end_s[activity]; ++hold) {
      const double held_s = run.end_s[hold->departure] - run.start_s[hold->arrival];
      if (held_s <= hold->baseline_s) continue;
      const auto sides = graph_.arcs_into(ActivityId{hold->transfer});
      if (sides.empty()) continue;
      const auto late = std::ranges::max_element(
          sides, {}, [&](const GraphArc& arc) { return run.end_s[index(arc.from)] + arc.lag_s; });
      arrivals.insert(late->from.value);
    }
  }
}

}  // namespace rubato
