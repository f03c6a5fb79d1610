#pragma once
// Rows of a sweep that cannot be right.

#include "models/calibration/sweep.hpp"

namespace rubato {

/// Leaves out points that draw over 15 % less power than the same kernel at a lower core clock
/// (same memory state, same power cap) without taking longer. Each gets a line in Sweep::left_out.
void leave_out_implausible(Sweep& sweep);

}  // namespace rubato
