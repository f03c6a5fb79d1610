#pragma once
// Collectives that run beside compute on their GPU, and what other numbers of SMs make of them.
// docs/contention.md, "SMs of captured collectives".

#include <optional>
#include <span>
#include <vector>

#include "sim/sharing/shared_gpu.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {

/// A collective kernel that runs beside compute.
struct OverlappingCollective {
  KernelId kernel;
  double captured_sms = 0.0;  ///< that it holds, >= 1
  /// Share of its captured time that its SMs take to copy, in [0, 1]: what fewer SMs draw out, and
  /// what more of them shorten. Of the transfer, where ranks were joined: what they wait does not
  /// count. Where the file does not say what it sends: 1 and 0, the worst.
  double drawn_out_frac = 1.0, shortened_frac = 0.0;

  /// By how much of its captured time other SMs lengthen it at the reference clock of
  /// CollectiveSharing, > -1.
  [[nodiscard]] double added_frac(double comm_sms) const;
};

/// Of a captured run, by kernel; empty if no collective runs beside compute.
/// @param captures  the run is made from, in order
[[nodiscard]] std::vector<OverlappingCollective> overlapping_collectives(
    const CaptureGraph& run, std::span<const Capture> captures, double sm_count);

/// What is worth trying: powers of two up to twice the most SMs that one of them was captured on,
/// and half of all.
/// @param collectives  at least one
[[nodiscard]] std::vector<double> usual_comm_sms(std::span<const OverlappingCollective> collectives,
                                                 double sm_count);

}  // namespace rubato
