#pragma once
// Plans for changes of clock that take time: one sequence of clocks for each GPU, set by the
// launches of its main stream; launches on other streams share it. Start at sequence_plan();
// docs/graphs.md, section 6.

#include <optional>
#include <span>

#include "common/run_context.hpp"
#include "explorer/graph/launch_costs.hpp"
#include "explorer/graph/launch_prices.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "explorer/graph/uniform_sweep.hpp"
#include "sim/graph/simulator.hpp"

namespace rubato {

/// A plan and its replay with changes of clock counted.
struct SequencePlan {
  GraphPlan plan;
  GraphRun run;
};

/// What plans are made from.
struct SequenceTask {
  const LaunchCosts& costs;  ///< of launches as slow as beside each other at the default clocks
  const ClockGrid& grid;
  const GraphRun& baseline;  ///< at the default clocks
  std::span<const UniformRun> uniform;
  const StepRepeats& repeats;  ///< which launches share clocks
  SwitchModel switching;
  double deadline_s = 0.0;
};

/// Prices of time for each launch choose the clocks (GpuSequence); where the simulator finds that
/// late, prices rise on the path that ends last there. Where a little more price is the step from
/// late plans to those with time left over, and between two clocks for all, a step begins with the
/// one and ends with the other. Then runs of launches at one clock get other clocks, or other ends,
/// while that helps.
/// @param start  a plan in time, e.g. of one clock
/// @return the plan that takes least of all that ended in time; nothing if none did
[[nodiscard]] std::optional<SequencePlan> sequence_plan(const SequenceTask& task,
                                                        GraphSimulator& simulator,
                                                        const LaunchPrices& prices,
                                                        std::optional<SequencePlan> start,
                                                        const RunContext& context = {});

}  // namespace rubato
