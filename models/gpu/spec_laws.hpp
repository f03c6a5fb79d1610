#pragma once
// What holds for every GPU: more core or memory clock never takes a kernel more time, and power
// rises with the core clock.

#include "common/json.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// @param root  the file that the spec was read from
/// @throws DataError naming the first entry that breaks a law, and what it would have to be
void check_laws(const JsonNode& root, const GpuSpec& spec);

}  // namespace rubato
