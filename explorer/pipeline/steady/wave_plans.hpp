#pragma once
// Plans of long pipelines in whose steady state slow passes travel from stage to stage.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/rounding.hpp"

namespace rubato {

/// Where clocks are far apart, the clocks of a stage do not fill the time that the slowest stage
/// leaves it. It may take a slower clock than that time allows in every k-th microbatch, if it is
/// faster in the others; but then its neighbours must not be slow at the same moment. So the slow
/// microbatch of a stage is the one after that of the stage before: a wave. The slowest stage and
/// those next to it, which have no time to lend, keep one clock. Found by HiGHS in the steady state
/// of GPT-3 on A40 (docs/pipeline.md); all else is found by trial.
class WavePlans {
 public:
  /// @param rounder  of `work`; both must outlive this
  WavePlans(const PipelineWork& work, const ClockRounder& rounder);

  /// The cheapest of some tens of plans that end by the deadline, their slack spent. Nothing if the
  /// pipeline hardly fills, or none ends in time.
  [[nodiscard]] std::optional<PipelinePlan> ending_by(double deadline_s) const;

  /// Such plans of deadlines, and of times around them at which the clocks of the stage farthest
  /// from the slowest one fill whole periods: worth splicing for the deadlines between.
  [[nodiscard]] std::vector<PipelinePlan> ending_around(std::span<const double> deadlines_s,
                                                        const RunContext& context) const;

 private:
  // Clocks of a forward and a backward pass of one stage.
  struct Pair {
    double time_s = 0.0, cost_j = 0.0;
    OptionId forward, backward;
  };
  struct Stage {
    std::vector<Pair> front;  // no other is faster and cheaper; fastest first
    std::vector<Pair> hull;   // of them, those on the lower hull of time and cost
  };
  // One way to lay waves.
  struct Wave {
    std::uint32_t steady = 0;     // stages to either side of the slowest one with one clock
    std::uint32_t lending = 0;    // beyond them, stages that are fast all the time
    std::uint32_t period = 1;     // microbatches
    std::uint32_t phase = 0;      // microbatches
    std::uint32_t fast_ends = 1;  // first forward and last backward passes at the fastest clocks
  };
  struct Found {
    double cost_j = 0.0;
    PipelinePlan plan;
  };

  [[nodiscard]] PipelinePlan plan(const Wave& wave, double wave_s, double steady_s) const;
  [[nodiscard]] double longest_steady_s(const Wave& wave, double wave_s, double deadline_s) const;
  [[nodiscard]] std::vector<double> full_times_s(double from_s, double to_s) const;
  [[nodiscard]] std::optional<Found> try_wave(const Wave& wave, double wave_s,
                                              double deadline_s) const;

  const PipelineWork& work_;
  const ClockRounder& rounder_;
  std::vector<Stage> stages_;  // empty if there is nothing to lay
  std::uint32_t slowest_ = 0;
};

}  // namespace rubato
