#pragma once
// Prices of progress on all GPUs, and what follows from them: a bound, durations, clocks.

#include <span>
#include <vector>

#include "explorer/graph/contention/arc_flow.hpp"
#include "explorer/graph/contention/gpu_lanes.hpp"
#include "explorer/graph/contention/paid_gpu.hpp"
#include "explorer/graph/contention/pair_costs.hpp"
#include "explorer/graph/launch_units.hpp"

namespace rubato {

/// The plans that a bound is for.
struct ContendedDeadline {
  double time_s = 0.0;        ///< they end by then
  double least_time_s = 0.0;  ///< of the fastest clocks
  bool late_changes = false;  ///< clocks may change while launches run
  bool stalls = false;        ///< changes of clock may stop what runs
};

/// Launches of one graph, paid for one deadline.
class PaidGraph {
 public:
  /// @param costs, pairs  must outlive this
  /// @param lanes         shape [gpus]
  /// @param least_hold_s  least time of collectives from arrival to departure, shape [activities]
  /// @param least_s       least time of activities alone, shape [activities]; must outlive this
  PaidGraph(const LaunchCosts& costs, PairCosts& pairs, std::vector<GpuLanes> lanes,
            const std::vector<double>& least_hold_s, std::span<const double> least_s);

  /// Finds payments for these prices of time. They must live as long as anything is asked of the
  /// payments.
  void pay(const ArcFlow& flow);
  /// The same on one GPU only.
  /// @param flow  the object of the last pay(), changed only where this GPU's payments depend on it
  void pay(const ArcFlow& flow, std::uint32_t gpu) { gpus_[gpu].pay(flow); }

  /// The bound that the payments give, J.
  /// @param units  launches that share a clock; null: each has its own
  [[nodiscard]] double bound_j(const ContendedDeadline& deadline, const LaunchUnits* units) const;

  /// Its parts: what is paid on a GPU; what activities outside all lanes cost; what idle power,
  /// lags and the price of the whole run come to.
  [[nodiscard]] double of_gpu_j(std::uint32_t gpu, const LaunchUnits* units) const;
  [[nodiscard]] double others_j() const;
  [[nodiscard]] double of_time_j(const ContendedDeadline& deadline) const;

  [[nodiscard]] const std::vector<GpuLanes>& lanes() const noexcept { return lanes_; }

  /// How long activities take at the clocks that they are paid for, s, shape [activities].
  [[nodiscard]] std::vector<double> durations_s() const;

  /// For each unit the clock that costs least if launches run beside what they ran beside in a
  /// replay.
  [[nodiscard]] std::vector<ClockId> cheapest_clocks(const ActivityTimes& times,
                                                     const LaunchUnits& units) const;

  /// How often pay() looks at a launch, alone or beside something, at all clocks.
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
  std::vector<double> lost_j_;  // what launches pay for collectives, see most_lost_j()
  const ArcFlow* flow_ = nullptr;
};

}  // namespace rubato
