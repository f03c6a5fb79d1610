#pragma once
// Which parts of a captured run the readings of a power log averaged, for fits of energies.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "models/calibration/capture_fit.hpp"
#include "models/validation/power_alignment.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// A window for every sample whose whole window lies inside the run, and inside steps where these
/// are marked. Of a sensor that works in cycles, one for each cycle.
/// @param kernel_of  which of `kernels` kernels each kernel of the capture is; nothing: none
[[nodiscard]] std::vector<PowerWindow> power_windows(
    const Capture& capture, std::uint32_t device,
    std::span<const std::optional<KernelId>> kernel_of, std::size_t kernels, const PowerLog& log,
    const SensorModel& sensor, const Alignment& alignment);

}  // namespace rubato
