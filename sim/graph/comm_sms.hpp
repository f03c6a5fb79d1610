#pragma once
// Collectives that run beside compute on their GPU, and how their times change with the number of
// SMs they hold. docs/contention.md, "SMs of captured collectives".

#include <optional>
#include <span>
#include <vector>

#include "sim/sharing/shared_gpu.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {

/// A collective kernel that runs beside compute.
struct OverlappingCollective {
  KernelId kernel;
  double captured_sms = 0.0;  ///< SMs that it held when captured, >= 1
  /// Share of its captured time in which its SMs copy, in [0, 1]. drawn_out_frac is the part that
  /// fewer SMs make longer, shortened_frac the part that more SMs make shorter. The two differ only
  /// where launches do, or where the file does not say what it sends: then 1 and 0, the worst.
  /// Where ranks were joined the time is that of the transfer, without waiting.
  double drawn_out_frac = 1.0, shortened_frac = 0.0;

  /// Time that `comm_sms` SMs add, at the reference clock of CollectiveSharing, as a share of its
  /// captured time; > -1, below 0 if they shorten it.
  [[nodiscard]] double added_frac(double comm_sms) const;
};

/// Those of a captured run, by kernel; empty if no collective runs beside compute.
/// @param captures  what the run was made from, in order
[[nodiscard]] std::vector<OverlappingCollective> overlapping_collectives(
    const CaptureGraph& run, std::span<const Capture> captures, double sm_count);

/// Numbers of SMs worth trying: powers of two, up to twice the most that one of the collectives was
/// captured on, but no more than half of the GPU's.
/// @param collectives  at least one
[[nodiscard]] std::vector<double> usual_comm_sms(std::span<const OverlappingCollective> collectives,
                                                 double sm_count);

}  // namespace rubato
