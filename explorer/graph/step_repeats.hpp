#pragma once
// Steps of a captured run that are played alike: a plan file holds the clocks of one step, for all.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// Which launch's clock each launch takes.
struct StepRepeats {
  /// Shape [activities]. For a launch: one of the played step, or itself where its GPU has no two
  /// steps. For anything else: itself.
  std::vector<std::uint32_t> played;
  std::vector<std::uint32_t> steps;  ///< number that share clocks, of each GPU, >= 1
};

/// Position of the step that is played for all, among a GPU's steps in order: the middle one, of an
/// even number the later of both.
[[nodiscard]] constexpr std::size_t played_position(std::size_t steps) noexcept {
  return steps / 2;
}

/// Every launch at a clock of its own.
[[nodiscard]] StepRepeats no_repeats(const ExecutionGraph& graph);

/// A launch takes the clock of its partner in the played step: the same kernel at the same place of
/// the same stream (matched_positions, a longest common subsequence). A launch without a partner,
/// or in no step, takes the clock of the one before it on the main stream, as it does when played.
/// On other streams it keeps a clock of its own.
[[nodiscard]] StepRepeats step_repeats(const LaunchCosts& costs);

}  // namespace rubato
