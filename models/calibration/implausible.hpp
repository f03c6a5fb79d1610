#pragma once
// Rows of a sweep that cannot be right.

#include "models/calibration/sweep.hpp"

namespace rubato {

/// Leaves out points whose power falls by more than 15 % at a higher clock, in the same memory
/// state and under the same cap, without a longer time; says so in Sweep::left_out.
void leave_out_implausible(Sweep& sweep);

}  // namespace rubato
