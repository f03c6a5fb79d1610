#pragma once
// Option --model: who says what a kernel takes at a clock.

#include <string>

#include "common/error.hpp"
#include "models/validation/model_comparison.hpp"

namespace rubato {

/// Name of the model that is the measured table itself.
inline constexpr std::string_view measured_model = "measured";

/// "builtin, cmos, guerreiro, linear": names for help and hints, `measured` aside.
[[nodiscard]] std::string model_names();

/// What to say of a --model that is neither a name nor a file, with the nearest name.
[[nodiscard]] UsageError unknown_model(const std::string& name_or_file);

/// The model of a name, or the table in a file.
/// @param own  what 'measured' is
/// @throws UsageError if it is neither, with the nearest name; what read_sweep throws
[[nodiscard]] ModelChoice model_choice(const std::string& name_or_file, const GpuSpec& spec,
                                       const Sweep& own);

}  // namespace rubato
