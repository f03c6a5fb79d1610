#include "traces/graph/step_clocks.hpp"

#include <algorithm>
#include <limits>

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

}  // namespace rubato
