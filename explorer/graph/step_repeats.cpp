#include "explorer/graph/step_repeats.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "traces/capture_match.hpp"

namespace rubato {

namespace {

// Clocked launches of one step on one stream, in order.
struct StepLaunches {
  std::vector<std::uint32_t> launches;
  std::vector<std::uint32_t> kernels;
};

// By stream, then by step.
using LaunchesOfSteps = std::vector<std::map<std::uint32_t, StepLaunches>>;

LaunchesOfSteps launches_of_steps(const LaunchCosts& costs) {
  const ExecutionGraph& graph = costs.model().graph();
  LaunchesOfSteps found(graph.streams().size());
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (!costs.is_clocked(i) || !activity.step) continue;
    StepLaunches& step = found[*activity.stream][*activity.step];
    step.launches.push_back(i);
    step.kernels.push_back(activity.kernel.value);
  }
  return found;
}

// Launches of the main stream without a partner take the clock of the one before.
// @param before  the launch whose clock those before the first partner take, shape [gpus]
void follow_main_stream(const LaunchCosts& costs, const std::vector<bool>& matched,
                        std::vector<std::optional<std::uint32_t>> before, StepRepeats& repeats) {
  const ExecutionGraph& graph = costs.model().graph();
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (!costs.is_clocked(i) || !costs.leads(i)) continue;
    std::optional<std::uint32_t>& last = before[index(*graph.gpu_of(graph.activities()[i]))];
    if (!last) continue;
    if (!matched[i]) repeats.played[i] = *last;
    last = repeats.played[i];
  }
}

}  // namespace

StepRepeats no_repeats(const ExecutionGraph& graph) {
  StepRepeats repeats{std::vector<std::uint32_t>(graph.size()),
                      std::vector<std::uint32_t>(graph.gpus().size(), 1)};
  std::iota(repeats.played.begin(), repeats.played.end(), 0U);
  return repeats;
}

StepRepeats step_repeats(const LaunchCosts& costs) {
  const ExecutionGraph& graph = costs.model().graph();
  StepRepeats repeats = no_repeats(graph);
  const LaunchesOfSteps of_stream = launches_of_steps(costs);
  const std::vector<std::uint32_t> main = main_streams(graph);
  std::vector<bool> matched(graph.size(), false);
  std::vector<std::optional<std::uint32_t>> first(graph.gpus().size());
  for (std::size_t s = 0; s < of_stream.size(); ++s) {
    const std::size_t gpu = index(graph.streams()[s].gpu);
    const auto& of_main = of_stream[main[gpu]];
    if (of_main.size() < 2) continue;
    repeats.steps[gpu] = static_cast<std::uint32_t>(of_main.size());
    const auto middle =
        std::next(of_main.begin(), static_cast<std::ptrdiff_t>(played_position(of_main.size())));
    first[gpu] = middle->second.launches.front();
    const auto played = of_stream[s].find(middle->first);
    if (played == of_stream[s].end()) continue;
    for (const auto& [step, own] : of_stream[s]) {
      const auto partner = matched_positions(own.kernels, played->second.kernels);
      for (std::size_t k = 0; k < partner.size(); ++k) {
        if (!partner[k]) continue;
        repeats.played[own.launches[k]] = played->second.launches[*partner[k]];
        matched[own.launches[k]] = true;
      }
    }
  }
  follow_main_stream(costs, matched, std::move(first), repeats);
  return repeats;
}

}  // namespace rubato
