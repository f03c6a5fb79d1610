#pragma once
// A lower bound on the energy of every plan that knows what runs beside what: kernels that share a
// GPU slow each other down and run at one clock. docs/graphs.md, section 5.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/contention/paid_graph.hpp"

namespace rubato {

/// Bounds for one graph. Prices of progress: each launch and each collective is paid for all it has
/// to do, and no set of launches that may run at once, at any clock, is paid more a second than
/// the GPU draws then and its time is worth. Then all payments together bound the energy.
class ContendedBound {
 public:
  /// @param alone  costs of launches alone, must outlive this
  ContendedBound(const LaunchCosts& alone, const ClockGrid& grid);

  /// Whether anything can run beside a launch of a GPU's main stream.
  [[nodiscard]] bool matters() const noexcept;

  /// By what waits for what alone, shape [gpus].
  [[nodiscard]] const std::vector<GpuLanes>& lanes() const noexcept { return lanes_; }

  /// Whether streams of a GPU beside the main one run anything, shape [gpus].
  [[nodiscard]] std::vector<bool> shared_gpus() const;

  /// No plan that ends by the deadline takes less energy. Held to the simulator's rules, unless
  /// launches that run together reach the power limit and three streams of a GPU or more run some.
  /// @param start  prices of time to begin with, any flow: the better, the higher the bound
  /// @param units  launches that share a clock; null: each has its own
  [[nodiscard]] double least_j(const ContendedDeadline& deadline, ArcFlow start,
                               const LaunchUnits* units, const RunContext& context = {});

  /// Nothing is paid yet. This outlives it.
  [[nodiscard]] PaidGraph paid_by(const ContendedDeadline& deadline);

  /// Whether some that run together were seen to reach the power limit: bounds of launches alone
  /// are none then.
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
  std::vector<GpuLanes> lanes_;
  std::optional<std::vector<double>> most_s_;
  std::vector<std::vector<double>> passed_s_;  // shape [gpus][activities], once asked for
};

}  // namespace rubato
