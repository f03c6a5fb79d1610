#include "explorer/switching/launch_sequence.hpp"

#include <algorithm>

#include "common/numbers.hpp"
#include "traces/launch_limit.hpp"

namespace rubato {

namespace {

ChangeKind kind_of_cost(const SwitchingProblem& problem, const SwitchCost& cost) {
  ChangeKind kind;
  kind.least_run_s = cost.lead_s + problem.switching.dwell_s;
  kind.group_of_clock.assign(problem.clocks.size(), 0);
  for (const double idle_w : problem.idle_power_w)
    kind.into.push_back({cost.stall_s, cost.energy_j + cost.stall_s * idle_w});
  return kind;
}

// Puts clocks for which `common` is equal into one group, and numbers the groups.
template <class Common>
void group(ChangeKind& kind, std::span<const ClockPair> clocks, Common common) {
  std::vector<std::size_t> first_of_group;
  for (std::size_t c = 0; c < clocks.size(); ++c) {
    const auto same = [&](std::size_t first) { return common(clocks[first]) == common(clocks[c]); };
    const auto found = std::ranges::find_if(first_of_group, same);
    kind.group_of_clock[c] = static_cast<std::uint32_t>(found - first_of_group.begin());
    if (found == first_of_group.end()) first_of_group.push_back(c);
  }
  kind.groups = static_cast<std::uint32_t>(first_of_group.size());
}

}  // namespace

LaunchSequence::LaunchSequence(const SwitchingProblem& problem) : problem_(&problem) {
  for (const KernelId kernel : launches(problem.trace.segments)) rows_.push_back(kernel.value);
  for (const Segment& segment : problem.trace.segments)
    blocks_.push_back({segment.launches.size(), segment.repeat});
  const SwitchModel& model = problem.switching;
  const bool one_memory = std::ranges::all_of(problem.clocks, [&](const ClockPair& clock) {
    return clock.mem == problem.clocks.front().mem;
  });
  if (!model.mem || one_memory) {
    kinds_.push_back(kind_of_cost(problem, model.core));
    return;
  }
  // The cost of a change depends only on which clocks differ: these pairs stand for three kinds.
  const ClockPair one{MemStateId{0}, 1.0}, other_core{MemStateId{0}, 2.0},
      other_mem{MemStateId{1}, 1.0}, other_both{MemStateId{1}, 2.0};
  for (const ClockPair& to : {other_core, other_mem, other_both})
    kinds_.push_back(kind_of_cost(problem, model.change(one, to)));
  group(kinds_[0], problem.clocks, [](const ClockPair& clock) { return clock.mem; });
  group(kinds_[1], problem.clocks, [](const ClockPair& clock) { return clock.core_mhz; });
}

std::size_t LaunchSequence::kind_position(std::size_t from, std::size_t to) const {
  if (kinds_.size() == 1) return 0;
  const ClockPair &a = problem_->clocks[from], &b = problem_->clocks[to];
  return a.mem == b.mem ? 0 : a.core_mhz == b.core_mhz ? 1 : 2;
}

std::optional<Cost> iteration_cost(const LaunchSequence& sequence, std::span<const ClockRun> runs) {
  // As in the simulator: a run may be too short by the rounding of sums.
  constexpr double rounding = 1e-9;
  CompensatedSum time_s, energy_j;
  std::size_t position = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    CompensatedSum run_s;
    const std::size_t clock = runs[r].clock;
    for (std::size_t i = 0; i < runs[r].launches; ++i) {
      const Cost cost = sequence.launch(position++, clock);
      time_s.add(cost.time_s);
      run_s.add(cost.time_s);
      energy_j.add(cost.energy_j);
    }
    const std::size_t next = runs[r + 1 < runs.size() ? r + 1 : 0].clock;
    if (next == clock) continue;
    const ChangeKind& kind = sequence.kind(clock, next);
    if (run_s.value() < kind.least_run_s * (1.0 - rounding)) return std::nullopt;
    time_s.add(kind.into[next].time_s);
    energy_j.add(kind.into[next].energy_j);
  }
  return Cost{time_s.value(), energy_j.value()};
}

std::vector<ClockRun> runs_of(std::span<const std::uint32_t> clocks) {
  std::vector<ClockRun> runs;
  for (const std::uint32_t clock : clocks) {
    if (runs.empty() || runs.back().clock != clock) runs.push_back({clock, 0});
    ++runs.back().launches;
  }
  return runs;
}

std::vector<ClockRun> runs_of(const Trace& trace, const Plan& plan) {
  refuse_to_list_too_many(trace.segments);
  std::vector<std::uint32_t> clocks;
  std::size_t first = 0;
  for (const Segment& segment : plan.segments_of(trace)) {
    for (std::uint32_t r = 0; r < segment.repeat; ++r) {
      for (std::size_t i = 0; i < segment.launches.size(); ++i)
        clocks.push_back(plan.clock_of_site[first + i].value);
    }
    first += segment.launches.size();
  }
  return runs_of(clocks);
}

Plan plan_of_runs(const Trace& trace, std::span<const ClockRun> runs) {
  std::vector<ClockId> clocks;
  for (const ClockRun& run : runs) clocks.insert(clocks.end(), run.launches, ClockId{run.clock});
  Plan plan;
  auto repeat_begin = clocks.begin();
  for (const Segment& segment : trace.segments) {
    const auto length = static_cast<std::ptrdiff_t>(segment.launches.size());
    for (std::uint32_t r = 0; r < segment.repeat; ++r, repeat_begin += length) {
      const bool as_before =
          r > 0 && std::equal(repeat_begin, repeat_begin + length, repeat_begin - length);
      if (as_before) {
        ++plan.segments.back().repeat;
        continue;
      }
      plan.segments.push_back({segment.name, 1, segment.launches});
      plan.clock_of_site.insert(plan.clock_of_site.end(), repeat_begin, repeat_begin + length);
    }
  }
  if (plan.segments == trace.segments) plan.segments.clear();
  return plan;
}

}  // namespace rubato
