#include "traces/graph/step_clocks.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "traces/graph/capture_graph.hpp"
#include "traces/trace_capture.hpp"

namespace rubato {

namespace {

bool have_same_steps(std::span<const Capture> captures) {
  const std::vector<CapturedStep>& first = captures.front().steps;
  return std::ranges::all_of(captures, [&](const Capture& capture) {
    return capture.calls.empty() &&
           std::ranges::equal(capture.steps, first, {}, &CapturedStep::name, &CapturedStep::name) &&
           std::ranges::all_of(capture.launches, [](const CapturedLaunch& launch) {
             return launch.step.has_value();
           });
  });
}

std::vector<Capture> all_of_step(std::span<const Capture> captures, std::uint32_t step) {
  std::vector<Capture> of_step;
  for (const Capture& capture : captures) of_step.push_back(only_step(capture, step));
  return of_step;
}

// Moves what a rank did in a step.
void move(Capture& capture, std::uint32_t step, std::int64_t by_ns) {
  for (CapturedLaunch& launch : capture.launches) {
    if (launch.step != step) continue;
    launch.start_ns += by_ns;
    if (launch.launch_ns) *launch.launch_ns += by_ns;
  }
  capture.steps[step].start_ns += by_ns;
  capture.steps[step].end_ns += by_ns;
}

}  // namespace

std::optional<std::vector<Capture>> aligned_by_step(std::span<const Capture> captures) {
  if (captures.size() < 2 || captures.front().steps.size() < 2 || !have_same_steps(captures))
    return std::nullopt;
  std::vector<Capture> aligned(captures.begin(), captures.end());
  std::int64_t end_ns = 0;  // of the steps before
  for (std::uint32_t step = 0; step < captures.front().steps.size(); ++step) {
    const std::vector<Capture> of_step = all_of_step(captures, step);
    const JoinedRanks joined = join_ranks(of_step);
    const auto to_common_ns = [&](std::size_t c) {
      return of_step[c].epoch_ns.value_or(0) + joined.offset_ns[c];
    };
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
    for (std::size_t c = 0; c < of_step.size(); ++c) {
      for (const CapturedLaunch& launch : of_step[c].launches) {
        first_ns = std::min(first_ns, launch.start_ns + to_common_ns(c));
        last_ns = std::max(last_ns, launch.end_ns() + to_common_ns(c));
      }
    }
    for (std::size_t c = 0; c < aligned.size(); ++c)
      move(aligned[c], step, to_common_ns(c) - first_ns + end_ns);
    end_ns += last_ns - first_ns;
  }
  for (Capture& capture : aligned) capture.epoch_ns.reset();
  return aligned;
}

double span_with_usual_lags_s(const ExecutionGraph& graph) {
  const auto slack_s = [&](const GraphArc& arc, std::size_t to) {
    return graph.activities()[to].start_s - graph[arc.from].end_s();
  };
  const auto kind_of = [&](const GraphArc& arc, std::size_t to) {
    return std::tuple(arc.kind, graph[arc.from].duration_s == 0.0,
                      graph.activities()[to].duration_s == 0.0);
  };
  const auto each_arc = [&](const auto& visit) {
    for (std::size_t i = 1; i < graph.size(); ++i) {
      for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) visit(arc, i);
    }
  };
  std::map<std::tuple<ArcKind, bool, bool>, std::vector<double>> deciding_s;
  each_arc([&](const GraphArc& arc, std::size_t to) {
    double least_s = std::numeric_limits<double>::infinity();
    for (const GraphArc& other : graph.arcs_into(id_at<ActivityId>(to)))
      least_s = std::min(least_s, slack_s(other, to));
    if (slack_s(arc, to) <= least_s) deciding_s[kind_of(arc, to)].push_back(slack_s(arc, to));
  });
  for (auto& [kind, slacks_s] : deciding_s) std::ranges::sort(slacks_s);
  std::vector<double> end_s(graph.size(), 0.0);
  each_arc([&](const GraphArc& arc, std::size_t to) {
    const auto& slacks_s = deciding_s[kind_of(arc, to)];
    const double lag_s = slacks_s.empty() ? 0.0 : slacks_s[slacks_s.size() / 2];
    const double ready_s = end_s[index(arc.from)] + lag_s;
    end_s[to] = std::max(end_s[to], ready_s + graph.activities()[to].duration_s);
  });
  return *std::ranges::max_element(end_s);
}

std::vector<double> usual_lag_errors(std::span<const Capture> captures) {
  std::vector<double> errors;
  if (!have_same_steps(captures)) return errors;
  for (std::uint32_t step = 0; step < captures.front().steps.size(); ++step) {
    const ExecutionGraph graph = capture_graph(all_of_step(captures, step)).graph;
    errors.push_back(span_with_usual_lags_s(graph) / graph.captured_span_s() - 1.0);
  }
  return errors;
}

}  // namespace rubato
