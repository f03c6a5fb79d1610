#pragma once
// What a little more time is worth: the least energy within a few slacks.

#include <array>
#include <optional>
#include <vector>

#include "explorer/exploration.hpp"

namespace rubato {

/// Slacks of the ladder's steps: time allowed beyond that of the default clocks.
inline constexpr std::array ladder_slacks_frac{0.0, 0.005, 0.01, 0.02, 0.05};

/// The least energy of one granularity within a slack.
struct SlackStep {
  Granularity granularity = Granularity::kernel;
  double slack_frac = 0.0;
  std::optional<Cost> least;  ///< nothing: no plan is that fast
};

/// One step for each slack and each granularity that has a front, solved exactly, changes of clock
/// free. It is what the same question without tolerance gives. Where segments were asked for that
/// count changes of clock, their steps come last. Each of these takes no more energy than those of
/// less slack. Steps that `context` stops are left out.
[[nodiscard]] std::vector<SlackStep> slack_ladder(const ExplorationInput& input,
                                                  const Exploration& found,
                                                  const RunContext& context = {});

}  // namespace rubato
