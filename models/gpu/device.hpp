#pragma once
// Which spec a captured run belongs to: the name its driver gives the device, and the clocks it
// ran at.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "traces/plausible.hpp"

namespace rubato {

using DeviceWords = std::set<std::string>;

/// The words of a device's name or a spec's title, in lower case, up to a comma or parenthesis:
/// nvidia, geforce, rtx, 3080, ti of "NVIDIA GeForce RTX 3080 Ti, the card of ...".
[[nodiscard]] DeviceWords words_of_device(std::string_view name);

/// "sxm" or "pcie" (also of an NVL card); empty where the name does not tell.
[[nodiscard]] std::string form_of_device(std::string_view device);

/// How a device is related to a spec. near: the same chip on another card, whose memory, power
/// limit or clocks may differ. unnamed: the device has no name.
enum class DeviceMatch { same, near, other, unnamed };

/// Compares the words of the spec's title with those of the device's name. "NVIDIA A100-SXM4-40GB"
/// is near "NVIDIA A100-SXM4-80GB": makers, forms, memory sizes and board numbers are no part of a
/// chip's name. "Ti" and "Laptop" are part of it.
[[nodiscard]] DeviceMatch match_device(const GpuSpec& spec, std::string_view device);

enum class GpuVendor { nvidia, amd, intel };

/// By the words of the name. A device that names no other vendor is taken as NVIDIA's.
[[nodiscard]] GpuVendor vendor_of(std::string_view device);
[[nodiscard]] std::string_view name_of(GpuVendor value) noexcept;

/// Board powers that are believed of this GPU, W: from a tenth of its least base power to five
/// times its highest limit, since cards of a name differ and a spec may be a frame for another GPU;
/// within board_power_w.
[[nodiscard]] Bounds plausible_power_w(const GpuSpec& spec);

/// The compute capability of a spec: its own, else that of a shipped spec of the same GPU or chip,
/// by its title. Nothing if neither says.
[[nodiscard]] std::optional<double> compute_capability(const GpuSpec& spec);

/// Shipped specs that match a device as said, in the order of shipped_gpu_specs. Of near ones,
/// those of the device's form (SXM, PCIe) where it says its form.
[[nodiscard]] std::vector<std::string> specs_matching(std::string_view device, DeviceMatch match);

/// Of several specs of one GPU the one whose title is the GPU's alone: those of a particular card
/// or fit say so behind it. Empty: there is no such one, or several.
[[nodiscard]] std::string usual_spec_of(const std::vector<std::string>& same);

/// The shipped spec of a GPU as its driver calls it, such as "NVIDIA H100 80GB HBM3".
/// @throws UsageError naming those of the nearest chips if none or several are shipped
[[nodiscard]] std::string spec_of_device(std::string_view device);

/// The clocks a capture ran at, as clocks of the GPU: those of its own that are nearest. Its
/// default clocks where `label` is missing.
/// @param label  MEMORY/CORE, as in clock labels: a memory state's name, MHz or "auto"; then MHz or
///               "auto"
/// @throws UsageError if it is something else, or no clock of the GPU is near: memory within 2 %,
///         core no more than one step beyond the range
[[nodiscard]] ClockPair captured_clock(const GpuSpec& spec,
                                       const std::optional<std::string>& label);

}  // namespace rubato
