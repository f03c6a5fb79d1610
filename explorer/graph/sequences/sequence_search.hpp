#pragma once
// Plans where changes of clock take time. Each GPU has one sequence of clocks. Launches of its main
// stream set it; launches on other streams run at the clock they find. Start at sequence_plan();
// docs/graphs.md, section 6.

#include <optional>

#include "common/run_context.hpp"
#include "explorer/graph/launch_costs.hpp"
#include "explorer/graph/launch_prices.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "sim/graph/simulator.hpp"

namespace rubato {

/// A plan and its replay with changes of clock counted.
struct SequencePlan {
  GraphPlan plan;
  GraphRun run;
};

/// What plans are made from.
struct SequenceTask {
  const LaunchCosts& costs;  ///< of launches slowed down as at the default clocks
  const ClockGrid& grid;
  const GraphRun& baseline;    ///< at the default clocks
  const StepRepeats& repeats;  ///< which launches share clocks
  SwitchModel switching;
  double deadline_s = 0.0;
};

/// A heuristic. Prices of time for each launch choose the clocks (GpuSequence): all of them times a
/// factor, nearly the least with which the simulator finds the plan in time. Each step may begin
/// with that plan and go on with the next one, which is late, or the other way round. Then runs of
/// launches at one clock get other clocks, or other ends, while that helps.
/// @param start  a plan in time, e.g. of one clock
/// @return the plan of least energy of all that ended in time; nothing if none did
[[nodiscard]] std::optional<SequencePlan> sequence_plan(const SequenceTask& task,
                                                        GraphSimulator& simulator,
                                                        const LaunchPrices& prices,
                                                        std::optional<SequencePlan> start,
                                                        const RunContext& context = {});

}  // namespace rubato
