#pragma once
// A lower bound on the energy of every plan that knows contention: kernels that share a GPU slow
// each other down and run at one clock. docs/graphs.md, section 5.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/contention/paid_graph.hpp"

namespace rubato {

/// Bounds for one graph, by Lagrangian duality with two kinds of prices: of time, and of progress.
/// Each launch and each collective is paid for all it has to do. No set of launches that may run at
/// once is, at any clock, paid more a second than the power of the GPU and the prices of their
/// time. Then all payments together, taken over any replay, are no more than its energy.
class ContendedBound {
 public:
  /// @param alone  costs of launches alone, must outlive this
  ContendedBound(const LaunchCosts& alone, const ClockGrid& grid);

  /// Whether anything can run beside a launch of a GPU's main stream.
  [[nodiscard]] bool matters() const noexcept;

  /// Whether other streams of a GPU than the main one run anything, shape [gpus].
  [[nodiscard]] std::vector<bool> shared_gpus() const;

  /// No plan that ends by the deadline takes less energy in the simulator, J. Not covered: three or
  /// more streams of a GPU whose launches reach the power limit together.
  /// @param start  prices of time to begin with: any flow, but better ones give a higher bound
  /// @param units  launches that share a clock; null: each has its own
  [[nodiscard]] double least_j(const ContendedDeadline& deadline, ArcFlow start,
                               const LaunchUnits* units, const RunContext& context = {});

  /// The launches of the graph, for PaidGraph::pay() to pay. This must outlive them.
  [[nodiscard]] PaidGraph paid_by(const ContendedDeadline& deadline);

  /// Whether kernels that run together were seen to reach the power limit. Then the bound of
  /// launches alone is none.
  [[nodiscard]] bool jointly_limited() const noexcept { return pairs_.jointly_limited(); }

 private:
  [[nodiscard]] std::vector<GpuLanes> narrowed(const ContendedDeadline& deadline);
  [[nodiscard]] const std::vector<double>& most_s();
  [[nodiscard]] const std::vector<double>& passed_s(std::uint32_t gpu);
  void leave_out_far_ones(std::vector<GpuLanes>& lanes) const;
  [[nodiscard]] std::vector<double> least_holds_s(const std::vector<GpuLanes>& lanes,
                                                  const ContendedDeadline& deadline,
                                                  std::span<const double> latest_s) const;

  const LaunchCosts& costs_;
  const ExecutionGraph& graph_;
  PairCosts pairs_;
  std::vector<double> least_s_;  // of activities alone
  std::vector<GpuLanes> lanes_;  // what may run beside what, as the arcs say, shape [gpus]
  std::optional<std::vector<double>> most_s_;  // longest_times_s(), once asked for
  std::vector<std::vector<double>> passed_s_;  // most_passed_s(), shape [gpus], once asked for
};

}  // namespace rubato
