#pragma once
// Kernels of a sweep that are one measurement, written down more than once.

#include "models/calibration/sweep.hpp"

namespace rubato {

/// The sweep without kernels that are copies of an earlier one: times and energies of both differ
/// by one factor, to within 0.2 % over all clocks that both have, at least five. Hardly
/// anybody measures as well; such files give every stage of a network the numbers of one layer.
/// Copies tell nothing about kernels that were not measured.
/// @param sweep  points with time and power
[[nodiscard]] Sweep without_copies(Sweep sweep);

}  // namespace rubato
