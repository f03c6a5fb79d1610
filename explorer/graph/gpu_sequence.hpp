#pragma once
// The launches that set the clock of one GPU, in order, as the dynamic program over clocks of
// explorer/switching sees them: with a price of time for each.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "explorer/graph/launch_costs.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "explorer/switching/launch_dp.hpp"
#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// What the clocks of a sequence are chosen by.
struct SequencePrices {
  std::span<const double> flow_w;  ///< of time, shape [activities]
  double change_j = 0.0;           ///< added to what each change of the core clock takes
};

/// Clocked activities of a GPU's main stream, and the positions of the sequence they belong to:
/// launches of steps that are played alike share one.
struct LeadingLaunches {
  std::vector<std::uint32_t> launches;  ///< ascending
  std::vector<std::uint32_t> position;  ///< of each launch, shape [launches]
  std::vector<std::uint32_t>
      played;               ///< whose clock a position takes, ascending, shape [positions]
  std::uint32_t steps = 1;  ///< that share positions

  [[nodiscard]] std::size_t positions() const noexcept { return played.size(); }
};

/// By GPU.
[[nodiscard]] std::vector<LeadingLaunches> leading_launches(const LaunchCosts& costs,
                                                            const StepRepeats& repeats);

/// Main-stream launches of one GPU. Costs are as in LaunchCosts, means over steps; a stall costs
/// idle power beyond the least.
class GpuSequence {
 public:
  /// @param launches  at least one
  /// @param length_s  what a position adds to the length of its run, shape [positions x clocks], >
  /// 0
  GpuSequence(const LaunchCosts& costs, const ClockGrid& grid, LeadingLaunches launches,
              std::vector<double> length_s);

  [[nodiscard]] const LeadingLaunches& launches() const noexcept { return launches_; }

  /// The cheapest clocks that change back at the end.
  [[nodiscard]] PricedRuns cheapest(const SequencePrices& prices,
                                    const SwitchModel& switching) const;

  /// No clocks cost less, even if a change may take effect within a launch and the one at the end
  /// is left out.
  [[nodiscard]] PricedRuns relaxed(const SequencePrices& prices,
                                   const SwitchModel& switching) const;

 private:
  [[nodiscard]] std::vector<double> priced_launches(const SequencePrices& prices) const;
  template <class PriceAt>
  [[nodiscard]] std::vector<double> priced_changes(const PriceAt& price_at) const;
  [[nodiscard]] SwitchingProblem problem(const SequencePrices& prices,
                                         const SwitchModel& switching) const;

  std::size_t clocks_;
  LeadingLaunches launches_;
  std::vector<double> cost_j_;  // shape [positions x clocks]
  std::vector<double> time_s_;  // shape [launches x clocks]
  std::vector<ClockPair> pairs_;
  std::vector<double> idle_w_;  // beyond the least, shape [clocks]
  std::unique_ptr<const Trace> trace_;
  std::unique_ptr<const ProfileTable> lengths_;
};

}  // namespace rubato
