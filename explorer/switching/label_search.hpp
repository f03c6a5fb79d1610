#pragma once
// The exact end of a switch-aware search: all partial plans that could still beat the best known.

#include <cstdint>
#include <optional>
#include <vector>

#include "explorer/switching/launch_dp.hpp"

namespace rubato {

/// What a label search is to beat, and how much it may do.
struct LabelLimits {
  double budget_s = 0.0;
  double energy_j = 0.0;  ///< of the best plan known; only better ones are looked for
  std::uint64_t labels = 0;
};

/// `complete` false: the limit of labels came first.
struct LabelResult {
  bool complete = false;
  std::vector<ClockRun> runs;  ///< empty: nothing better begins with this clock
  std::uint64_t labels = 0;    ///< followed over a launch, summed over launches
};

/// The plan of least energy within the budget that begins with clock `first`, if it is better than
/// limits.energy_j by more than rounding. Labels (time, energy, length of the run) are dropped
/// where another is no worse in all three, or where a Lagrangian bound shows that they lead
/// nowhere.
/// @param priced  any price; near the best multiplier the bound is sharp
[[nodiscard]] LabelResult search_labels(const PricedSequence& priced, std::size_t first,
                                        const LabelLimits& limits);

}  // namespace rubato
