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

/// The shipped spec for the devices of a capture: of the card, else the one of the same chip; a
/// line on standard error says which and why.
/// @throws UsageError with the nearest specs where none or several match, no name is known, the
///         devices differ, or they are another vendor's
[[nodiscard]] GpuSpec load_gpu_of_devices(std::span<const std::string> devices,
                                          const std::string& file);

/// A line on standard error where the devices of a capture are not of the spec's kind.
/// @throws UsageError if they are another vendor's
void check_devices(const GpuSpec& spec, std::span<const std::string> devices,
                   const std::string& file);

/// The spec that was asked for, with a line on standard error where the capture's devices are not
/// of its kind.
/// @throws UsageError if they are another vendor's; what load_gpu throws
[[nodiscard]] GpuSpec load_gpu_for_devices(const std::string& name_or_path,
                                           std::span<const std::string> devices,
                                           const std::string& file);

}  // namespace rubato
