#pragma once
// What collectives of several ranks take in any plan while they hold their GPUs, waiting or
// copying.

#include <vector>

#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// A bound on what launches alone do not cost: from its arrival to its departure a rank's
/// collective draws power, for as long as the last rank and the transfer need, whatever clocks are
/// set.
class HeldEnergy {
 public:
  /// @param costs   of launches alone
  /// @param shared  GPUs with several streams, shape [gpus]: what their collectives hold is left
  ///                out, and nothing is taken to come as early as alone. Empty: nothing that runs
  ///                at the same time slows anything else down
  explicit HeldEnergy(const LaunchCosts& costs, const std::vector<bool>& shared = {});

  /// No plan that ends by the deadline has its collectives take less, J.
  /// @param stalls  changes of clock may stall GPUs: a stalled one draws nothing for a collective
  ///                that waits, and a rank may arrive later than with everything at its slowest
  [[nodiscard]] double least_j(double deadline_s, bool stalls = false) const;

 private:
  // One rank's part in a collective.
  struct Hold {
    double power_w = 0.0;                // at the clock where it is least
    double transfer_s = 0.0;             // of all ranks, none of them stalled
    double copying_s = 0.0;              // from the last arrival to its departure
    double first_departure_s = 0.0;      // everything at its fastest
    double last_arrival_s = 0.0;         // everything at its slowest
    double least_after_arrival_s = 0.0;  // from its arrival to the last end, at the fastest
  };

  // A GPU and its parts.
  struct Holder {
    std::vector<Hold> holds;
    double launches_s = 0.0;  // all of them, at their slowest
    double streams = 0.0;     // with collectives
  };

  [[nodiscard]] static double least_j(const Holder& gpu, double deadline_s, bool stalls);

  std::vector<Holder> gpus_;
};

}  // namespace rubato
