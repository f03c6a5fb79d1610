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
  /// On one GPU, where these prices are those of before, but for some along its main stream.
  void pay(const ArcFlow& flow, std::uint32_t gpu) { gpus_[gpu].pay(flow); }

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

  /// Launches that pay() looks at, alone or beside something, at each clock.
  [[nodiscard]] std::size_t looked_at() const noexcept;

  /// Whether an activity takes time, or energy, that is in others_j().
  [[nodiscard]] bool is_other(std::size_t activity) const {
    return !paid_[activity] && least_s_[activity] > 0.0;
  }

 private:
  const LaunchCosts& costs_;
  std::vector<GpuLanes> lanes_;
  std::vector<PaidGpu> gpus_;
  std::span<const double> least_s_;
  std::vector<bool> paid_;      // by a GPU's lanes, shape [activities]
  std::vector<double> lost_j_;  // what others pay for beside them, shape [activities]
  const ArcFlow* flow_ = nullptr;
};

}  // namespace rubato
