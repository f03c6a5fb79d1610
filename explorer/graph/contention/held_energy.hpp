#pragma once
// The energy that collectives of several ranks take at least, in any plan, while they hold their
// GPUs, waiting or copying.

#include <vector>

#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// Lower bound on an energy that costs of launches (LaunchCosts) leave out. From its arrival to its
/// departure a rank's collective draws power, whatever clocks are set. It waits there for the last
/// rank, and then for the transfer.
class HeldEnergy {
 public:
  /// @param costs   of launches alone
  /// @param shared  GPUs on which launches may run beside each other, shape [gpus]. Their
  ///                collectives are left out. If there are any, launches may be slower than alone,
  ///                so every arrival is taken to be as late as the deadline lets it. Empty: nothing
  ///                slows down what runs beside it
  explicit HeldEnergy(const LaunchCosts& costs, const std::vector<bool>& shared = {});

  /// No plan that ends by the deadline has its collectives take less, J.
  /// @param stalls  changes of clock may stall GPUs. Then only transfers count: a stalled GPU draws
  ///                nothing for a collective that waits, and a rank may arrive later than with
  ///                everything at its slowest
  [[nodiscard]] double least_j(double deadline_s, bool stalls = false) const;

 private:
  // One rank's part in a collective.
  struct Hold {
    double power_w = 0.0;                // at the clock where it is least
    double transfer_s = 0.0;             // of the collective, no rank stalled
    double copying_s = 0.0;              // from the last rank's arrival to this one's departure
    double first_departure_s = 0.0;      // earliest departure: everything at its fastest
    double last_arrival_s = 0.0;         // latest arrival: everything at its slowest
    double least_after_arrival_s = 0.0;  // longest path from arrival to last end, at the fastest
  };

  // A GPU and its parts in collectives.
  struct Holder {
    std::vector<Hold> holds;
    double launches_s = 0.0;  // sum of all its launches, at their slowest
    double streams = 0.0;     // number of streams with collectives
  };

  [[nodiscard]] static double least_j(const Holder& gpu, double deadline_s, bool stalls);

  std::vector<Holder> gpus_;
};

}  // namespace rubato
