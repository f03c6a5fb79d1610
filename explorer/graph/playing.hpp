#pragma once
// One step's clocks played for all steps, as the Python package plays them: what a plan of a
// captured run really gives. docs/apply.md.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/graph/plan_segments.hpp"

namespace rubato {

/// A stretch of a step with one clock.
struct StepStretch {
  std::string pass;
  ClockId clock;
  double time_s = 0.0;
};

/// The segments of a GPU's middle step, which is played for all (played_position). All segments
/// where it has no steps. This is what a plan file plays.
[[nodiscard]] std::vector<StepStretch> played_step(std::span<const PlanSegment> segments,
                                                   GpuId gpu);

/// A GPU's clocks in each pass of a step.
class StepScore {
 public:
  /// A clock from a share of its pass's time on; the first of a pass is at 0.
  struct Change {
    double at_frac = 0.0;
    ClockId clock;
  };

  explicit StepScore(std::span<const StepStretch> step);

  /// Clocks of the pass of that name with that number in the step, counted from 0. If the step has
  /// fewer: of the last one. If it has none: empty.
  [[nodiscard]] std::span<const Change> find(std::string_view pass, std::size_t number) const;

 private:
  std::map<std::string, std::vector<std::vector<Change>>, std::less<>> passes_;
};

/// A played run.
struct PlayedRun {
  GraphPlan plan;  ///< of timed clocks
  GraphRun run;
  double known_frac = 0.0;  ///< share of GPU time in passes that the scores have
};

/// Each pass of each step takes the clocks of its GPU's score at the same shares of its time. How
/// long a pass takes under these clocks is learned by playing: runs are repeated until their time
/// settles. A pass that the score lacks keeps the clock before it.
/// @param scores  shape [gpus]
/// @param other   clock of GPUs whose score has none of their passes
/// @param start   a run of the graph: the first times of its passes
/// @param rounds  runs at most
[[nodiscard]] PlayedRun play(const GraphModel& model, GraphSimulator& simulator,
                             std::span<const StepScore> scores, ClockId other,
                             const SwitchModel& switching, const GraphRun& start, int rounds = 6);

}  // namespace rubato
