#include "traces/odd_steps.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/statistics.hpp"
#include "traces/serving_steps.hpp"
#include "traces/trace_capture.hpp"

namespace rubato {

namespace {

// From the begin of a step to that of the next; of the last one to its end, or that of its work.
std::pair<std::int64_t, std::int64_t> span_of(const Capture& capture, std::uint32_t position) {
  const CapturedStep& step = capture.steps[position];
  if (position + 1 < capture.steps.size())
    return {step.start_ns, capture.steps[position + 1].start_ns};
  return {step.start_ns, step.end_ns};
}

// Moves what comes after `from_ns` up.
class MovedUp {
 public:
  MovedUp(std::int64_t from_ns, std::int64_t by_ns) : from_ns_(from_ns), by_ns_(by_ns) {}
  void operator()(std::int64_t& at_ns) const {
    if (at_ns >= from_ns_) at_ns -= by_ns_;
  }

 private:
  std::int64_t from_ns_, by_ns_;
};

}  // namespace

std::vector<OddStep> odd_steps(const Capture& capture) {
  constexpr std::size_t least_steps = 4, one_in = 3;
  constexpr double longer = 1.25, shorter = 0.75;
  if (capture.step_source != StepSource::annotation || capture.steps.size() < least_steps)
    return {};
  std::vector<double> taken_s;
  for (std::uint32_t i = 0; i < capture.steps.size(); ++i) {
    const auto [from_ns, to_ns] = span_of(capture, i);
    taken_s.push_back(s_per_ns * static_cast<double>(to_ns - from_ns));
  }
  const double usual_s = median(taken_s);
  std::vector<OddStep> odd;
  for (std::uint32_t i = 0; i < taken_s.size(); ++i) {
    // What ends the last step of a server is not marked.
    const bool ends = i + 1 < taken_s.size() || !serving_step_of(capture.steps[i].name);
    if (usual_s > 0.0 &&
        (taken_s[i] > longer * usual_s || (ends && taken_s[i] < shorter * usual_s)))
      odd.push_back({i, taken_s[i] / usual_s});
  }
  if (one_in * odd.size() > taken_s.size()) odd.clear();
  return odd;
}

std::optional<Capture> without_step(const Capture& capture, std::uint32_t position) {
  const auto span = span_of(capture, position);
  const bool last = position + 1 == capture.steps.size();
  const std::int64_t from_ns = span.first,
                     to_ns = last ? std::numeric_limits<std::int64_t>::max() : span.second;
  const auto called_ns = [](const CapturedLaunch& l) { return l.launch_ns.value_or(l.start_ns); };
  const auto inside = [&](std::int64_t at_ns) { return from_ns <= at_ns && at_ns < to_ns; };
  for (const CapturedCall& call : capture.calls) {
    if (call.start_ns < from_ns && call.end_ns() > from_ns) return std::nullopt;
    if (inside(call.start_ns) && call.end_ns() > to_ns) return std::nullopt;
  }
  for (const CapturedLaunch& launch : capture.launches) {
    if (called_ns(launch) < from_ns && launch.end_ns() > from_ns) return std::nullopt;
    if (inside(called_ns(launch)) && launch.end_ns() > to_ns) return std::nullopt;
  }
  Capture kept = part_of(
      capture, [&](const CapturedCall& call) { return !inside(call.start_ns); },
      [&](const CapturedLaunch& launch) { return !inside(called_ns(launch)); });
  const MovedUp move(to_ns, last ? 0 : to_ns - from_ns);
  for (CapturedCall& call : kept.calls) move(call.start_ns);
  for (CapturedLaunch& own : kept.launches) {
    move(own.start_ns);
    if (own.launch_ns) move(*own.launch_ns);
    if (own.step && *own.step > position) --*own.step;
  }
  kept.steps.erase(kept.steps.begin() + position);
  for (CapturedStep& step : kept.steps) {
    move(step.start_ns);
    move(step.end_ns);
  }
  return kept.launches.empty() ? std::nullopt : std::optional(std::move(kept));
}

}  // namespace rubato
