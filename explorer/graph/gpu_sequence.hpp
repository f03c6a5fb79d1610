#pragma once
// The launches that set the clock of one GPU, in order, as the dynamic program over clocks of
// explorer/switching sees them: with a price of time for each.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "explorer/graph/launch_costs.hpp"
#include "explorer/switching/launch_dp.hpp"
#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// What the clocks of a sequence are chosen by.
struct SequencePrices {
  std::span<const double> flow_w;  ///< of time, shape [activities]
  double change_j = 0.0;           ///< added to what each change of the core clock takes
};

/// Main-stream launches of one GPU. Costs are as in LaunchCosts; a stall costs idle power beyond
/// the least.
class GpuSequence {
 public:
  /// @param launches  clocked activities of the GPU's main stream, ascending, at least one
  /// @param length_s  what a launch adds to the length of its run, shape [launches x clocks], > 0
  GpuSequence(const LaunchCosts& costs, const ClockGrid& grid, std::vector<std::uint32_t> launches,
              std::vector<double> length_s);

  [[nodiscard]] std::span<const std::uint32_t> launches() const noexcept { return launches_; }

  /// The cheapest clocks that change back at the end.
  [[nodiscard]] PricedRuns cheapest(const SequencePrices& prices,
                                    const SwitchModel& switching) const;

  /// No clocks cost less, even if a change may take effect within a launch and the one at the end
  /// is left out.
  [[nodiscard]] PricedRuns relaxed(const SequencePrices& prices,
                                   const SwitchModel& switching) const;

 private:
  [[nodiscard]] std::vector<double> priced_launches(const SequencePrices& prices) const;
  [[nodiscard]] SwitchingProblem problem(const SequencePrices& prices,
                                         const SwitchModel& switching) const;

  std::size_t clocks_;
  std::vector<std::uint32_t> launches_;
  std::vector<double> cost_j_, time_s_;  // shape [launches x clocks]
  std::vector<ClockPair> pairs_;
  std::vector<double> idle_w_;  // beyond the least, shape [clocks]
  std::unique_ptr<const Trace> trace_;
  std::unique_ptr<const ProfileTable> lengths_;
};

/// Clocked activities of each GPU's main stream, in order.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> leading_launches(const LaunchCosts& costs);

}  // namespace rubato
