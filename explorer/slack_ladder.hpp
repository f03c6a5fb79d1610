#pragma once
// What a little more time is worth: the least energy within a few slacks.

#include <array>
#include <optional>
#include <vector>

#include "explorer/exploration.hpp"

namespace rubato {

/// Of the default time, what a ladder's steps allow beyond it.
inline constexpr std::array ladder_slacks_frac{0.0, 0.005, 0.01, 0.02, 0.05};

/// The least energy of one granularity within a slack.
struct SlackStep {
  Granularity granularity = Granularity::kernel;
  double slack_frac = 0.0;
  std::optional<Cost> least;  ///< nothing: no plan is that fast
};

/// One step per slack of each granularity that has a front, solved exactly whatever was asked:
/// where a slack of the ladder was asked for without tolerance, its step is that plan. Changes of
/// clock are free. Where segments were asked for that count them, theirs come last, each no dearer
/// than at less slack. Steps that `context` stops are left out.
[[nodiscard]] std::vector<SlackStep> slack_ladder(const ExplorationInput& input,
                                                  const Exploration& found,
                                                  const RunContext& context = {});

}  // namespace rubato
