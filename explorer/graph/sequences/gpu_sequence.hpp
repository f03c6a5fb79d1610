#pragma once
// The launches that set the clock of one GPU, in order, each with a price of time: what the dynamic
// program over clocks of explorer/switching works on.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "explorer/graph/launch_costs.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "explorer/switching/launch_dp.hpp"
#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// Launches of a GPU's main stream, and their positions in the sequence. Launches of steps that are
/// played alike share a position.
struct LeadingLaunches {
  std::vector<std::uint32_t> launches;  ///< ascending
  std::vector<std::uint32_t> position;  ///< of each launch, shape [launches]
  std::vector<std::uint32_t>
      played;               ///< whose clock a position takes, ascending, shape [positions]
  std::uint32_t steps = 1;  ///< number of steps that share positions

  [[nodiscard]] std::size_t positions() const noexcept { return played.size(); }
};

/// By GPU.
[[nodiscard]] std::vector<LeadingLaunches> leading_launches(const LaunchCosts& costs,
                                                            const StepRepeats& repeats);

/// Main-stream launches of one GPU. Costs are those of LaunchCosts, as means over the steps. A
/// stall costs idle power beyond the least.
class GpuSequence {
 public:
  /// @param launches  at least one
  /// @param length_s  time that a position adds to the length of its run, which latency and dwell
  ///                  ask for; shape [positions x clocks], > 0
  GpuSequence(const LaunchCosts& costs, const ClockGrid& grid, LeadingLaunches launches,
              std::vector<double> length_s);

  [[nodiscard]] const LeadingLaunches& launches() const noexcept { return launches_; }

  /// The cheapest sequence of clocks, but for the change back to the first clock at the end, for
  /// which its last runs are made long enough.
  /// @param flow_w  prices of time, shape [activities]
  [[nodiscard]] std::vector<ClockRun> cheapest(std::span<const double> flow_w,
                                               const SwitchModel& switching) const;

  /// A sequence that no other costs less than, even where changes may take effect within a launch.
  /// The change back at the end is left out. For bounds.
  [[nodiscard]] PricedRuns relaxed(std::span<const double> flow_w,
                                   const SwitchModel& switching) const;

 private:
  [[nodiscard]] std::vector<double> priced_launches(std::span<const double> flow_w) const;
  template <class PriceAt>
  [[nodiscard]] std::vector<double> priced_changes(const PriceAt& price_at) const;
  [[nodiscard]] SwitchingProblem problem(const SwitchModel& switching) const;

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
