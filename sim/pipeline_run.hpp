#pragma once
// Replays one iteration of a pipeline under a plan as a discrete-event
// simulation. Every total a pipeline report shows comes from here.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/graph/simulator.hpp"
#include "sim/switch_model.hpp"
#include "traces/pipeline/profile.hpp"

namespace rubato {

/// The option (clock) that every pass runs at, shape [passes].
struct PipelinePlan {
  std::vector<OptionId> option_of_pass;

  friend bool operator==(const PipelinePlan&, const PipelinePlan&) = default;
};

/// What may go differently from the profile.
struct PipelineDisturbance {
  double jitter_frac = 0.0;                    ///< standard deviation of log time per pass, 0 to 1
  std::uint64_t seed = 1;                      ///< of the jitter; each pass draws by its index
  std::vector<double> slowdown_of_stage = {};  ///< stragglers: factor on time, each >= 1; empty: 1
  double input_delay_s = 0.0;  ///< by which input of forward passes of stage 0 comes later, >= 0
};

/// How to replay.
struct PipelineRunOptions {
  SwitchModel switching = {};  ///< see simulate()
  PipelineDisturbance disturbance = {};
};

/// One pass as it ran.
struct TimedPass {
  double start_s = 0.0;
  double end_s = 0.0;
  double energy_j = 0.0;  ///< of the pass itself
  double core_mhz = 0.0;
  bool critical = false;  ///< on the critical path: delaying it delays the iteration
  bool switched = false;  ///< the stage changed its clock for it

  [[nodiscard]] double power_w() const noexcept { return energy_j / (end_s - start_s); }
};

/// Totals of one iteration of one pipeline, one GPU per stage.
struct PipelineRun {
  double time_s = 0.0;
  double energy_j = 0.0;  ///< passes, waiting and switching
  double pass_energy_j = 0.0;
  double blocked_energy_j = 0.0;  ///< blocked power x time in which stages wait or stall
  double switch_energy_j = 0.0;
  std::uint64_t clock_switches = 0;
  std::vector<TimedPass> passes;  ///< shape [passes]

  [[nodiscard]] double average_power_w() const noexcept { return energy_j / time_s; }
};

/// What the change from one option to another takes. A change of the power limit is taken to need
/// what a change of the core clock does: a guess. @pre their clocks or limits differ
[[nodiscard]] SwitchCost change_of_clock(const SwitchModel& model, const ClockOption& from,
                                         const ClockOption& to);

/// Whether both run at the same clocks under the same power limit.
[[nodiscard]] bool same_clock(const ClockOption& a, const ClockOption& b);

/// Every pass at its first option, the highest clock: the baseline of all savings.
[[nodiscard]] PipelinePlan highest_clocks(const PipelineWork& work);

/// Simulates plans of one pipeline on its execution graph. One object serves one thread.
class PipelineSimulator {
 public:
  /// @param work  must outlive it; times and energies of its options may change between runs
  /// @param input_delay_s  the one of every replay to come (PipelineDisturbance)
  explicit PipelineSimulator(const PipelineWork& work, double input_delay_s = 0.0);
  ~PipelineSimulator();

  /// One activity for each pass: its `launch` is the pass. Activity 0 is the origin.
  [[nodiscard]] const ExecutionGraph& graph() const noexcept { return graph_; }

  /// One iteration, event by event. @throws what simulate() throws
  [[nodiscard]] GraphRun replay(const PipelinePlan& plan, const PipelineRunOptions& options,
                                bool phases = false);

  /// The same, reduced to passes and totals. @throws what simulate() throws
  [[nodiscard]] PipelineRun run(const PipelinePlan& plan, const PipelineRunOptions& options = {});

  /// Passes and totals of a replay of `plan`.
  [[nodiscard]] PipelineRun passes_of(const GraphRun& run, const PipelinePlan& plan,
                                      const SwitchModel& switching) const;

 private:
  class Cells;

  const PipelineWork& work_;
  double input_delay_s_;
  ExecutionGraph graph_;
  std::vector<std::vector<PassId>> rows_;
  std::unique_ptr<Cells> cells_;
  GraphSimulator simulator_;
};

/// Runs the passes of each stage in order, each once its predecessors have ended and their
/// lag is over. Between passes a stage draws blocked power. Jitter scales time and energy
/// of a pass alike (its power stays).
///
/// A pass with another clock than the one before it on its stage waits for that clock. The clock is
/// asked for ahead of time, so that the lead is over when the pass before ends. Only if the change
/// before took effect (and dwelled) too late for that, is it asked for later. After the lead comes
/// the stall, which may hide in a wait for other stages. The first pass follows the last one of an
/// iteration like this one (steady state). That iteration began its last clock at least as long ago
/// as the last passes at that clock take.
///
/// Source of the energy account: Chung et al., "Reducing Energy Bloat in Large Model
/// Training" (Perseus), SOSP 2024, section 4.1.
/// @throws DataError if the plan does not fit the work, UsageError if one of `options` is out of
///         range
[[nodiscard]] PipelineRun simulate(const PipelineWork& work, const PipelinePlan& plan,
                                   const PipelineRunOptions& options = {});

/// Time and energy over many seeds of the jitter.
struct JitterSummary {
  std::uint32_t runs = 0;
  double mean_time_s = 0.0;
  double max_time_s = 0.0;
  double p95_time_s = 0.0;  ///< 95th percentile, by nearest rank
  double mean_energy_j = 0.0;
};

/// Replays with seeds seed, seed + 1, ... (Monte Carlo).
/// @throws UsageError if `runs` is 0, and what simulate() throws
[[nodiscard]] JitterSummary simulate_jitter(const PipelineWork& work, const PipelinePlan& plan,
                                            const PipelineRunOptions& options, std::uint32_t runs);

}  // namespace rubato
