#pragma once
// Prices of progress on all GPUs, and what they say: a bound, durations, clocks.

#include <span>
#include <vector>

#include "explorer/graph/contention/arc_flow.hpp"
#include "explorer/graph/contention/gpu_lanes.hpp"
#include "explorer/graph/contention/paid_gpu.hpp"
#include "explorer/graph/contention/pair_costs.hpp"
#include "explorer/graph/launch_units.hpp"

namespace rubato {

/// What a bound is for.
struct ContendedDeadline {
  double time_s = 0.0;
  double least_time_s = 0.0;  ///< no clocks are faster
  bool late_changes = false;  ///< clocks may change while launches run
  bool stalls = false;        ///< changes of clock stop what runs
};

/// Launches of one graph, paid for one deadline.
class PaidGraph {
 public:
  /// @param costs, pairs  outlive this
  /// @param lanes         shape [gpus]
  /// @param least_hold_s  of collectives, shape [activities]
  /// @param least_s       of activities alone, shape [activities]; outlives this
  PaidGraph(const LaunchCosts& costs, PairCosts& pairs, std::vector<GpuLanes> lanes,
            const std::vector<double>& least_hold_s, std::span<const double> least_s);

  /// Finds payments for these prices of time, which outlive what is asked next.
  void pay(const ArcFlow& flow);
  /// The same, quicker, see PaidGpu.
  void pay_alike(const ArcFlow& flow);
  /// Of one GPU, after prices have changed along its main stream.
  void pay_alike(const ArcFlow& flow, std::uint32_t gpu) { gpus_[gpu].pay_alike(flow); }

  /// The bound that payments are. @param units  launches that share a clock; null: each has its own
  [[nodiscard]] double bound_j(const ContendedDeadline& deadline, const LaunchUnits* units) const;

  /// Parts of it: what is paid on a GPU, what no GPU's lanes pay for, and what the time is worth.
  [[nodiscard]] double of_gpu_j(std::uint32_t gpu, const LaunchUnits* units) const;
  [[nodiscard]] double others_j() const;
  [[nodiscard]] double of_time_j(const ContendedDeadline& deadline) const;

  [[nodiscard]] const std::vector<GpuLanes>& lanes() const noexcept { return lanes_; }

  /// By the clocks that each launch is paid for, shape [activities].
  [[nodiscard]] std::vector<double> durations_s() const;

  /// For each unit the clock that costs least if launches run beside what they ran beside in a
  /// replay.
  [[nodiscard]] std::vector<ClockId> cheapest_clocks(const ActivityTimes& times,
                                                     const LaunchUnits& units) const;

  /// Main launches and side activities that may run beside each other.
  [[nodiscard]] std::size_t meetings() const noexcept { return meetings_; }
  /// What pay_alike() looks at of them.
  [[nodiscard]] std::size_t meetings_alike() const noexcept;

 private:
  const LaunchCosts& costs_;
  std::vector<GpuLanes> lanes_;
  std::vector<PaidGpu> gpus_;
  std::span<const double> least_s_;
  std::vector<bool> paid_;  // by a GPU's lanes, shape [activities]
  std::size_t meetings_ = 0;
  const ArcFlow* flow_ = nullptr;
};

}  // namespace rubato
