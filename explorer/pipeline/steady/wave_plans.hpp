#pragma once
// Plans for pipelines of many microbatches in whose steady state slow passes travel from stage to
// stage, as a wave.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/rounding.hpp"

namespace rubato {

/// Where clocks are far apart, no clock of a stage fills the time that the slowest stage leaves it.
/// For example, on A40 the next useful clock makes a backward pass of GPT-3 7 % longer, and there
/// is time for 4 %. The stage may then be too slow in some microbatches of every period, if it is
/// faster in the others. But its neighbours must not be slow at the same moment. So the slow
/// microbatch of a stage is the one after that of the stage before: a wave. The slowest stage has
/// no time to lend and keeps one pair of clocks; some stages next to it may do so too.
///
/// HiGHS found such plans in the steady state of GPT-3 on A40 (docs/pipeline.md). All numbers here
/// were found by trial.
class WavePlans {
 public:
  /// @param rounder  of `work`; both must outlive this
  WavePlans(const PipelineWork& work, const ClockRounder& rounder);

  /// The cheapest of some forty plans that end by the deadline, their slack spent. Nothing if the
  /// pipeline hardly fills (no more microbatches than stages), if it has one stage, chunks or other
  /// passes than forward and backward, or if no plan ends in time.
  [[nodiscard]] std::optional<PipelinePlan> ending_by(double deadline_s) const;

  /// Such plans for the deadlines, and for times around them at which the clocks of the stage
  /// farthest from the slowest one just fill a period. The latter are worth splicing for deadlines
  /// between these times.
  [[nodiscard]] std::vector<PipelinePlan> ending_around(std::span<const double> deadlines_s,
                                                        const RunContext& context) const;

 private:
  // Clocks of a forward and of a backward pass of one stage, and what both passes take together.
  struct Pair {
    double time_s = 0.0, cost_j = 0.0;
    OptionId forward, backward;
  };
  struct Stage {
    std::vector<Pair> front;  // the Pareto front of time and cost, fastest first
    std::vector<Pair> hull;   // its lower convex hull
  };
  // One way to lay waves.
  struct Wave {
    std::uint32_t steady = 0;     // stages to either side of the slowest that keep one pair, too
    std::uint32_t lending = 0;    // stages beyond these that have the fast pair all the time
    std::uint32_t period = 1;     // microbatches after which clocks repeat
    std::uint32_t phase = 0;      // microbatches by which the wave is shifted
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
