#pragma once
// The GPU specs of the command line.

#include <string>

#include "models/gpu_spec.hpp"

namespace rubato {

/// A line on standard error if the spec was never fitted.
void say_if_not_calibrated(const GpuSpec& spec);

/// load_gpu_spec, with a line on standard error if the spec was never fitted.
[[nodiscard]] GpuSpec load_gpu(const std::string& name_or_path);

}  // namespace rubato
