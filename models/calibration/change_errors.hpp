#pragma once
// How much more a predicted change between two clocks is off than a prediction at one of them.

namespace rubato {

/// Times: of both ends.
constexpr double time_change_error = 1.4;

/// Energies: plans are chosen for theirs, and lean on what the model flatters. Source: plans for
/// kernels left out of five public sweeps (docs/gpus.md, "Do intervals hold?"), 2026-11.
constexpr double energy_change_error = 1.8;

}  // namespace rubato
