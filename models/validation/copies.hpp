#pragma once
// Kernels of a sweep that are one and the same measurement, written down more than once.

#include "models/calibration/sweep.hpp"

namespace rubato {

/// The sweep without kernels that are copies of an earlier one. Two kernels are copies if both have
/// at least five clocks in common, and at these the ratio of their times is the same to within a
/// standard deviation of 0.2 %, as is the ratio of their energies. Measurements hardly repeat as
/// well. Some files give every stage of a network the numbers of one layer. Copies tell nothing
/// about kernels that were not measured.
/// @param sweep  points with time and power
[[nodiscard]] Sweep without_copies(Sweep sweep);

}  // namespace rubato
