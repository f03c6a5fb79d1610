#pragma once
// Time and energy of kernels in a row with a collective beside some of them (overlap), by the
// number of SMs that the collective holds and by the clock. docs/contention.md.

#include <cstddef>
#include <span>
#include <vector>

#include "sim/sharing/shared_gpu.hpp"

namespace rubato {

/// A collective on a number of SMs (collective_on_sms).
struct HeldCollective {
  KernelCoefficients coefficients;
  double comm_sms = 0.0;  ///< >= 1
};

/// Kernels of one stream, in order. The collective starts with kernel `first`; kernel `end` and
/// those after it wait for the collective. `first` == `end`: it runs by itself.
struct OverlappedSequence {
  std::vector<KernelCoefficients> kernels;
  std::vector<double> sm_share;    ///< shape [kernels], in (0, 1]
  std::size_t first = 0, end = 0;  ///< first <= end <= kernels
  double host_s = 0.0;             ///< time in which the GPU idles before the first kernel, >= 0
};

/// What a sequence takes.
struct OverlapCost {
  double time_s = 0.0;
  double energy_j = 0.0;  ///< of the board, idle power included
};

/// One choice, and what the sequence then takes.
struct OverlapPoint {
  double comm_sms = 0.0;
  ClockPair clock;
  OverlapCost cost;
};

/// Plays the sequence for one choice.
/// @throws UsageError if first or end is out of range or the shapes differ
[[nodiscard]] OverlapCost overlap_cost(const GpuSpec& spec, const CollectiveSharing& sharing,
                                       const OverlappedSequence& sequence,
                                       const HeldCollective& collective, const ClockPair& clock,
                                       double power_limit_w);

/// All choices, clock by clock; shape [clocks x collectives].
[[nodiscard]] std::vector<OverlapPoint> overlap_grid(const GpuSpec& spec,
                                                     const CollectiveSharing& sharing,
                                                     const OverlappedSequence& sequence,
                                                     std::span<const HeldCollective> collectives,
                                                     std::span<const ClockPair> clocks,
                                                     double power_limit_w);

}  // namespace rubato
