#pragma once
// The GPU specs of the command line.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/gpu/spec.hpp"
#include "traces/capture.hpp"

namespace rubato {

class CommandLine;

/// Adds --power-limits. @param only  which runs it is for, "With --model: "
void add_power_limits_option(CommandLine& app, std::string& limits, std::string_view only = "");

/// The clocks to choose from as make_clock_grid takes them, under the limits of --power-limits.
[[nodiscard]] std::string with_power_limits(const std::string& clocks, const std::string& limits);

/// A line on standard error if the spec was never fitted.
void say_if_not_calibrated(const GpuSpec& spec);

/// load_gpu_spec, with a line on standard error if the spec was never fitted.
[[nodiscard]] GpuSpec load_gpu(const std::string& name_or_path);

/// Names of the GPUs of captures, where known; behind a name that tells no chip, what the file says
/// of it (family_of reads that).
[[nodiscard]] std::vector<std::string> device_names(std::span<const Capture> captures);

/// The shipped spec that a generated run names, of whose GPU it also is; nothing otherwise. A line
/// on standard error says which.
[[nodiscard]] std::optional<std::string> spec_of_generator(const Provenance& provenance,
                                                           std::span<const std::string> devices);

/// The shipped spec for the devices of a capture: that of the card, else the one of the same chip.
/// Of several of the card, the one that is not of a particular card or fit. A line on standard
/// error says which and why.
/// @throws UsageError with the nearest specs where none or several match, no name is known, the
///         devices differ, or they are another vendor's
[[nodiscard]] GpuSpec load_gpu_of_devices(std::span<const std::string> devices,
                                          const std::string& file);

/// What is done with captured times of another GPU than the spec's. kept: the capture's launches
/// take them at the clocks of the capture, as if they were this GPU's. guessed: times are modelled,
/// from work where that is known.
enum class OfAnotherGpu { kept, guessed };

/// A line on standard error where the devices of a capture are not of the spec's kind.
/// @throws UsageError if they are another vendor's
void check_devices(const GpuSpec& spec, std::span<const std::string> devices,
                   const std::string& file, OfAnotherGpu times = OfAnotherGpu::kept);

/// The spec that was asked for, with a line on standard error where the capture's devices are not
/// of its kind; without a name that which generated the run, else that of the devices.
/// @throws UsageError if they are another vendor's; what load_gpu and load_gpu_of_devices throw
[[nodiscard]] GpuSpec load_gpu_for_devices(const std::string& name_or_path,
                                           std::span<const std::string> devices,
                                           const Provenance& provenance, const std::string& file,
                                           OfAnotherGpu times = OfAnotherGpu::kept);

}  // namespace rubato
