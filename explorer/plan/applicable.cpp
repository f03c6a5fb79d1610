#include "explorer/plan/applicable.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

// Neighbours of one clock as one; the last one is part of the first where their clocks are equal.
std::vector<AppliedStretch> joined(std::span<const AppliedStretch> step) {
  std::vector<AppliedStretch> whole;
  for (const AppliedStretch& one : step) {
    if (!whole.empty() && whole.back().clock == one.clock)
      whole.back().time_s += one.time_s;
    else
      whole.push_back(one);
  }
  if (whole.size() > 1 && whole.front().clock == whole.back().clock) {
    whole.front().time_s += whole.back().time_s;
    whole.pop_back();
  }
  return whole;
}

std::string reason(const AppliedTarget& target, const SwitchModel& switching) {
  const auto of_target = [&](std::string_view what) {
    return target.label.empty() ? std::string(what) : fmt::format("{}: {}", target.label, what);
  };
  const auto limit_w = [](const AppliedStretch& one) { return one.clock.power_limit_w; };
  const auto mem = [](const AppliedStretch& one) { return one.clock.mem; };
  if (std::ranges::adjacent_find(target.step, std::ranges::not_equal_to{}, limit_w) !=
      target.step.end())
    return of_target("its power limit changes within a step, and nobody knows how long that takes");
  if (!switching.knows_memory &&
      std::ranges::adjacent_find(target.step, std::ranges::not_equal_to{}, mem) !=
          target.step.end())
    return of_target(
        "its memory clock changes within a step, and the GPU spec does not know how long that "
        "takes");
  const double frac = short_frac(target.step, switching);
  if (frac <= most_short_frac) return "";
  return of_target(fmt::format(
      "{:.0f} % of its time is in stretches shorter than {:.0f} switches ({} each{})",
      percent * frac, shortest_latencies, time_text(switching.core.latency_s()),
      switching.mem ? fmt::format(", {} of the memory clock", time_text(switching.mem->latency_s()))
                    : ""));
}

}  // namespace

double short_frac(std::span<const AppliedStretch> step, const SwitchModel& switching) {
  const std::vector<AppliedStretch> whole = joined(step);
  if (whole.size() <= 1) return 0.0;
  double all_s = 0.0, short_s = 0.0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const AppliedStretch& before = whole[(i + whole.size() - 1) % whole.size()];
    const AppliedStretch& after = whole[(i + 1) % whole.size()];
    const double latency_s = std::max(switching.change(before.clock, whole[i].clock).latency_s(),
                                      switching.change(whole[i].clock, after.clock).latency_s());
    constexpr double rounding = 1e-9;  // sums of launches differ in the last digits
    const double all_alike_s = static_cast<double>(whole[i].count) * whole[i].time_s;
    all_s += all_alike_s;
    if (whole[i].time_s < shortest_latencies * latency_s * (1.0 - rounding)) short_s += all_alike_s;
  }
  return all_s > 0.0 ? short_s / all_s : 0.0;
}

PlanVerdict applicable(std::span<const AppliedTarget> targets, const SwitchModel& switching) {
  for (const AppliedTarget& target : targets) {
    if (std::string because = reason(target, switching); !because.empty())
      return {false, std::move(because)};
  }
  return {};
}

}  // namespace rubato
