#pragma once
// What a second capture of the same run, at another core clock, would be worth: the next
// measurement that `rubato explore` ends in and `rubato suggest` lists. docs/trust.md.

#include <optional>
#include <span>
#include <vector>

#include "explorer/graph/exploration.hpp"

namespace rubato {

/// One clock for a whole run, and what it changes in each draw.
struct DrawnClock {
  double core_mhz = 0.0;
  std::vector<Cost> changes_pct;  ///< of time and energy, shape [draws]
};

/// What one clock for all comes to once the run was captured at a second clock too: means over
/// draws, each of which plays the truth.
struct NextCapture {
  double core_mhz = 0.0;  ///< of the second capture
  double saving_frac =
      0.0;  ///< of the energy, by the cheapest clock that is then sure to be in time
  double width_frac = 0.0;  ///< of the 90 % interval of its time
};

/// In each draw the second capture shows the draw's time. That bounds the times of all clocks
/// (possible_times). Of the clocks in time at their upper bound, and at most a tenth of the
/// captured clock below the second capture, the one of least mean energy is set.
/// @param clocks      below the captured one, in one memory state
/// @param usual_mhz   captured, > 0
/// @param slack_frac  >= 0
/// @return those of `clocks` at 0.6 to 0.92 of the captured one, in their order
[[nodiscard]] std::vector<NextCapture> worth_of_captures(std::span<const DrawnClock> clocks,
                                                         double usual_mhz, double slack_frac);

struct NextMeasurement {
  double slack_frac = 0.0;       ///< the largest that was asked for
  double saving_now_frac = 0.0;  ///< mean over draws, of one clock now; 0: the default clocks
  std::optional<double> width_now_frac = {};  ///< of the 90 % interval of its time
  double energy_width_now_frac = 0.0;         ///< of that of its energy
  /// worth_of_captures; of a run that was not captured at the default clock that clock alone, of
  /// unknown worth (0): every change is against it.
  std::vector<NextCapture> captures = {};

  /// Of those that save most, to a tenth of a point, the one that narrows most. @pre there is one
  [[nodiscard]] const NextCapture& best() const;
};

/// Nothing where less than half of the time rests on kernels that were captured once, where no
/// slack was asked for, or where there is no such clock.
[[nodiscard]] std::optional<NextMeasurement> next_measurement(const GraphExploration& found);

}  // namespace rubato
