#pragma once
// One step's clocks played for all steps, as the Python package does: what a captured plan really
// gives. docs/apply.md.

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

/// The segments of the played step of a GPU, or all where it has no steps: what a plan file plays.
[[nodiscard]] std::vector<StepStretch> played_step(std::span<const PlanSegment> segments,
                                                   GpuId gpu);

/// A GPU's clocks in each pass of a step.
class StepScore {
 public:
  /// A clock from a share of its pass on; the first of a pass is at 0.
  struct Change {
    double at_frac = 0.0;
    ClockId clock;
  };

  explicit StepScore(std::span<const StepStretch> step);

  /// Of the number-th pass of that name, from 0; of the last, if the step has fewer; empty if it
  /// has none.
  [[nodiscard]] std::span<const Change> find(std::string_view pass, std::size_t number) const;

 private:
  std::map<std::string, std::vector<std::vector<Change>>, std::less<>> passes_;
};

/// A played run.
struct PlayedRun {
  GraphRun run;
  double known_frac = 0.0;  ///< share of GPU time in passes that the scores have
};

/// Each pass of each step takes the clocks of its GPU's score at the same shares of its time, which
/// is learned by playing. A pass that the score lacks keeps the clock.
/// @param scores  shape [gpus]
/// @param other   clock of GPUs whose score has none of their passes
/// @param start   a run of the graph to learn from
[[nodiscard]] PlayedRun play(const GraphModel& model, GraphSimulator& simulator,
                             std::span<const StepScore> scores, ClockId other,
                             const SwitchModel& switching, const GraphRun& start);

}  // namespace rubato
