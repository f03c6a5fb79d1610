#include "explorer/graph/playing.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "explorer/graph/step_repeats.hpp"

namespace rubato {

namespace {

// Clocks of all GPUs over the passes of a run.
class Player {
 public:
  Player(std::span<const StepScore> scores, ClockId other) : scores_(scores), other_(other) {}

  [[nodiscard]] std::vector<std::vector<TimedClock>> clocks(std::span<const PlanSegment> passes) {
    std::vector<std::vector<TimedClock>> timed(scores_.size());
    std::map<Pass, std::size_t> seen;  // in this step of this GPU
    known_s_ = all_s_ = 0.0;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const PlanSegment& pass = passes[i];
      if (i == 0 || pass.gpu != passes[i - 1].gpu || pass.step != passes[i - 1].step) seen.clear();
      all_s_ += pass.time_s;
      const auto changes = scores_[index(pass.gpu)].find(name_of(pass.pass), seen[pass.pass]++);
      if (!changes.empty()) known_s_ += pass.time_s;
      std::vector<TimedClock>& own = timed[index(pass.gpu)];
      for (const StepScore::Change& change : changes)
        own.push_back({pass.start_s + change.at_frac * pass.time_s, change.clock});
    }
    for (std::vector<TimedClock>& own : timed) {
      if (own.empty()) own.push_back({0.0, other_});
    }
    return timed;
  }

  [[nodiscard]] double known_frac() const { return all_s_ > 0.0 ? known_s_ / all_s_ : 0.0; }

 private:
  std::span<const StepScore> scores_;
  ClockId other_;
  double known_s_ = 0.0, all_s_ = 0.0;
};

}  // namespace

std::vector<StepStretch> played_step(std::span<const PlanSegment> segments, GpuId gpu) {
  std::set<std::uint32_t> steps;
  for (const PlanSegment& one : segments) {
    if (one.gpu == gpu && one.step) steps.insert(*one.step);
  }
  const auto middle =
      std::next(steps.begin(), static_cast<std::ptrdiff_t>(played_position(steps.size())));
  std::vector<StepStretch> played;
  for (const PlanSegment& one : segments) {
    if (one.gpu != gpu || (!steps.empty() && one.step != *middle)) continue;
    played.push_back({std::string(name_of(one.pass)), one.clock, one.time_s});
  }
  return played;
}

StepScore::StepScore(std::span<const StepStretch> step) {
  for (std::size_t begin = 0; begin < step.size();) {
    std::size_t end = begin;
    double total_s = 0.0;
    for (; end < step.size() && step[end].pass == step[begin].pass; ++end)
      total_s += step[end].time_s;
    std::vector<Change>& changes = passes_[step[begin].pass].emplace_back();
    double before_s = 0.0;
    for (; begin < end; ++begin) {
      changes.push_back({total_s > 0.0 ? before_s / total_s : 0.0, step[begin].clock});
      before_s += step[begin].time_s;
    }
  }
}

std::span<const StepScore::Change> StepScore::find(std::string_view pass,
                                                   std::size_t number) const {
  const auto known = passes_.find(pass);
  if (known == passes_.end()) return {};
  return known->second[std::min(number, known->second.size() - 1)];
}

PlayedRun play(const GraphModel& model, GraphSimulator& simulator,
               std::span<const StepScore> scores, ClockId other, const SwitchModel& switching,
               const GraphRun& start, int rounds) {
  constexpr double settled = 1e-6;  // of the span, between two rounds
  Player player(scores, other);
  PlayedRun played{uniform_plan(model.graph(), other), start, 0.0};
  // Without phases the run is cut into passes alone.
  played.run.phases.clear();
  double before_s = -1.0;
  for (int round = 0; round < rounds; ++round) {
    played.plan.timed = player.clocks(plan_segments(model, played.run));
    played.run = simulator.run(played.plan, {.switching = switching});
    if (std::abs(played.run.span_s - before_s) <= settled * played.run.span_s) break;
    before_s = played.run.span_s;
  }
  played.known_frac = player.known_frac();
  return played;
}

}  // namespace rubato
