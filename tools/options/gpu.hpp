#pragma once
// The GPU specs of the command line.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/gpu/spec.hpp"

namespace rubato {

/// A line on standard error if the spec was never fitted.
void say_if_not_calibrated(const GpuSpec& spec);

/// load_gpu_spec, with a line on standard error if the spec was never fitted.
[[nodiscard]] GpuSpec load_gpu(const std::string& name_or_path);

/// Shipped specs of the card that a driver calls `device`: same words but for the maker's, and
/// memory sizes that the spec does not say. "NVIDIA A100-SXM4-80GB" -> a100-sxm4-80gb.
[[nodiscard]] std::vector<std::string> specs_of_device(std::string_view device);

/// The one shipped spec for the devices of a capture, with a line on standard error that says so.
/// @throws UsageError with the list of specs where none or several match, or no name is known, or
///         the devices differ
[[nodiscard]] GpuSpec load_gpu_of_devices(std::span<const std::string> devices,
                                          const std::string& file);

}  // namespace rubato
