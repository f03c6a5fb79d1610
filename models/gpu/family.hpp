#pragma once
// What the name of a GPU says of its chip, and which shipped specs are of chips near it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// A chip as its name tells it.
struct GpuFamily {
  double compute_capability = 0.0;   ///< NVIDIA's generation: 8.6 for GA102
  std::optional<double> sm_count{};  ///< of the chip as this card has it; nothing: not known here
};

/// By the words of a device's name as NVIDIA's driver says it, whatever comes before or behind
/// them; else by what a file says of the chip, in words behind the name: "(compute capability 9.0,
/// 132 SMs)". Nothing for names that are not known, and for other vendors' GPUs.
/// Source: NVIDIA's table of compute capabilities, and data sheets of the cards.
[[nodiscard]] std::optional<GpuFamily> family_of(std::string_view device);

/// Whether chips of a generation have HBM: those of data centres from GP100 on. All others have
/// GDDR or the host's memory.
[[nodiscard]] bool has_hbm(double compute_capability);

/// Shipped specs by how near their chip is to a device's, the nearest first, one for each card:
/// first those with the same kind of memory (HBM or not), then by generation, then those of the
/// device's form (SXM, PCIe), then by the number of SMs, where GeForce and other cards are taken to
/// be farther from one another. Empty for a device whose family is not known.
[[nodiscard]] std::vector<std::string> nearest_specs(std::string_view device);

}  // namespace rubato
