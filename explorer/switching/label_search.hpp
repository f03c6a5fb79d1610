#pragma once
// The exact end of a search for plans whose changes of clock cost: all partial plans that could
// still beat the best plan known. The problem is a shortest path with a resource constraint (least
// energy within a time), and the method a label-setting algorithm.

#include <cstdint>
#include <optional>
#include <vector>

#include "explorer/switching/launch_dp.hpp"

namespace rubato {

/// What a label search is to beat, and how much it may do.
struct LabelLimits {
  double budget_s = 0.0;     ///< time of the iteration, changes included
  double energy_j = 0.0;     ///< of the best plan known; only better ones are looked for
  std::uint64_t labels = 0;  ///< after about so many, counted as in LabelResult, it gives up
};

/// If `complete` is false, the search gave up at the limit of labels.
struct LabelResult {
  bool complete = false;
  std::vector<ClockRun> runs;  ///< empty: nothing better begins with this clock
  std::uint64_t labels = 0;    ///< labels that a launch was added to, summed over launches
};

/// The plan of least energy within the budget that begins with clock `first`, if it is better than
/// limits.energy_j by more than rounding. A label is the time and energy of a partial plan and the
/// length of its last run. It is dropped if another label is no worse in all three (dominance). It
/// is dropped too if its Lagrangian bound shows that no better plan comes of it.
/// @param priced  at any price; near the best Lagrange multiplier the bound is sharp
[[nodiscard]] LabelResult search_labels(const PricedSequence& priced, std::size_t first,
                                        const LabelLimits& limits);

}  // namespace rubato
