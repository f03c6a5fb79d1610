#pragma once
// Sections of a spec that say what was measured of its power: while it waits, and by power logs.

#include "common/json.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// Reads the sections `waiting_power` and `logged_power`, where there are any.
/// @throws DataError naming the first wrong or missing entry
void read_measured_power(const JsonNode& root, GpuSpec& spec);

}  // namespace rubato
