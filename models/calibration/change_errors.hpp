#pragma once
// By which factor a predicted change between two clocks is farther off than a prediction at one of
// them.

namespace rubato {

/// Times: both ends err independently, so the square root of 2.
constexpr double time_change_error = 1.4;

/// Energies: more, by the winner's curse. Plans are chosen for their energies, so they pick clocks
/// that the model flatters. Source: plans for kernels left out of five public sweeps (docs/gpus.md,
/// "Do intervals hold?"), 2026-11.
constexpr double energy_change_error = 1.8;

}  // namespace rubato
