#pragma once
// What the activities of an execution graph take at each clock: kernels bound to GPUs, captured
// durations anchored. docs/graphs.md, section 3.

#include <optional>
#include <vector>

#include "models/gpu/clock_grid.hpp"
#include "models/kernel/anchor.hpp"
#include "models/kernel/model.hpp"
#include "sim/graph/comm_sms.hpp"
#include "sim/sharing/shared_gpu.hpp"
#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// What holds a GPU back whatever clock it is asked for: heat, or whoever runs it.
struct GpuThrottle {
  std::optional<double> core_mhz = {};       ///< no higher core clock
  std::optional<double> power_limit_w = {};  ///< beside the run's

  friend bool operator==(const GpuThrottle&, const GpuThrottle&) = default;
};

using ThrottleId = Id<struct GpuThrottleTag>;  ///< into the throttles of a GraphModel

/// The GPUs of a graph, all of one type and captured at one clock. Refers to the graph, which must
/// live as long.
class GraphModel {
 public:
  /// @param captured_clock  clocks the run was captured at
  /// @param power_limit_w  of the runs to come; captures ran under the spec's
  /// @throws UsageError if the power limit is outside the spec's range
  GraphModel(const ExecutionGraph& graph, GpuSpec spec, const ClockPair& captured_clock,
             std::optional<double> power_limit_w = {});

  [[nodiscard]] const ExecutionGraph& graph() const noexcept { return *graph_; }
  [[nodiscard]] const GpuSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const ClockPair& captured_clock() const noexcept { return captured_clock_; }
  [[nodiscard]] double power_limit_w() const noexcept { return power_limit_w_; }

  /// Coefficients per launch of each kernel, shape [kernels]; at the captured clock a launch alone
  /// takes the mean of the captured times.
  [[nodiscard]] const std::vector<KernelCoefficients>& coefficients() const noexcept {
    return coefficients_;
  }

  /// What the split of a kernel's captured time rests on.
  [[nodiscard]] SplitSource split(KernelId kernel) const { return splits_[index(kernel)]; }

  /// The same GPUs with the captured times split otherwise where that is open.
  /// @param lean  0: as much bound by memory as the work of the kernels leaves open, 1: by the core
  [[nodiscard]] GraphModel with_split(double lean) const;

  /// The same GPUs with other coefficients where there are some; launches do as much of them as
  /// before. @param coefficients  shape [kernels]
  [[nodiscard]] GraphModel with_coefficients(
      const std::vector<std::optional<KernelCoefficients>>& coefficients) const;

  /// The same GPUs with other coefficients where there are some: launches of such a kernel then do
  /// one launch of it each, whatever they took as captured.
  /// @param coefficients  shape [kernels]
  [[nodiscard]] GraphModel with_whole_launches(
      const std::vector<std::optional<KernelCoefficients>>& coefficients) const;

  /// The same GPUs where activities take longer than captured, at every clock: launches do so much
  /// more, transfers are so much slower. Energy grows with what launches do.
  /// @param factor  shape [activities], each > 0
  /// @pre collectives are on their captured SMs
  [[nodiscard]] GraphModel with_slowdown(std::vector<double> factor) const;

  /// The same graph on GPUs some of which are throttled, from now on: not while it was captured.
  /// @param of_gpu  shape [gpus]
  /// @throws UsageError for a clock or power limit outside the spec's range
  [[nodiscard]] GraphModel with_throttles(const std::vector<GpuThrottle>& of_gpu) const;

  /// The same GPUs with the rest of the node counted: so many watts per GPU for as long as a run
  /// takes, in its totals and not in what its activities take.
  [[nodiscard]] GraphModel with_host_power(double host_power_w) const;
  [[nodiscard]] double host_power_w() const noexcept { return host_power_w_; }

  /// Throttles that differ, at least one: the first is none.
  [[nodiscard]] std::size_t throttles() const noexcept { return throttles_.size(); }
  [[nodiscard]] ThrottleId throttle_of(GpuId gpu) const {
    return throttle_of_gpu_.empty() ? ThrottleId{} : throttle_of_gpu_[index(gpu)];
  }

  /// The same GPUs with collectives on other SMs than captured: what runs beside them has the
  /// others, and they copy slower or faster. Launches do as much of them as before.
  /// @param comm_sms  of each of them, >= 1, below the spec's
  /// @pre collectives are on their captured SMs
  [[nodiscard]] GraphModel with_comm_sms(std::vector<OverlappingCollective> collectives,
                                         double comm_sms) const;

  /// A kernel's coefficients as they are on the SMs of this model: those of collectives that were
  /// moved and run by themselves copy slower or faster, others are what is given.
  /// @param captured  of one launch on the SMs it was captured on
  [[nodiscard]] KernelCoefficients on_its_sms(KernelId kernel,
                                              const KernelCoefficients& captured) const;

  /// How long a transfer takes; 0 for others. As captured no clock changes it; what fewer SMs add
  /// follows the core clock of its slowest GPU, from moment to moment.
  [[nodiscard]] double transfer_s(std::size_t activity, double core_mhz) const;
  /// Not shorter at any clock.
  [[nodiscard]] double transfer_s(std::size_t activity) const {
    return transfer_s(activity, spec_.core.max_mhz);
  }
  [[nodiscard]] bool transfers_follow_clocks() const noexcept { return !moved_.empty(); }

  /// How much each activity does, in launches of the model: so that the captured clocks give the
  /// captured duration back, what ran beside it counted. 0 where no clock matters. Shape
  /// [activities].
  [[nodiscard]] const std::vector<double>& work() const noexcept { return work_; }

  /// What a GPU does when asked for a clock: no more than its throttle lets it.
  [[nodiscard]] ClockPair held_clock(const ClockPair& asked, ThrottleId throttle) const;

  /// The kernels of this graph, running together at a requested clock. One object serves one
  /// thread.
  [[nodiscard]] SharedGpu shared_gpu(const ClockPair& clock, ThrottleId throttle = {}) const {
    return {spec_, coefficients_, demands_, held_clock(clock, throttle), limit_w(throttle)};
  }

  /// What of it any others that run too leave true: beside a collective kernels get on no faster,
  /// and it no faster beside them, as far as its SMs and their load go. Its DRAM traffic, which
  /// more kernels may slow down, counts for nothing, and no power limit does.
  [[nodiscard]] SharedGpu gpu_of_many(const ClockPair& clock, ThrottleId throttle = {}) const;

  /// Time and energy of one launch alone, no power but idle shared.
  [[nodiscard]] OperatingPoint evaluate(KernelId kernel, const ClockPair& clock,
                                        ThrottleId throttle = {}) const {
    return operating_point(spec_, coefficients_[index(kernel)], held_clock(clock, throttle),
                           limit_w(throttle));
  }

  /// Board power while nothing runs, W.
  [[nodiscard]] double idle_power_w(const ClockPair& clock, ThrottleId throttle = {}) const;

 private:
  void bind_kernels(double lean);
  void anchor_work();
  [[nodiscard]] double limit_w(ThrottleId throttle) const {
    return throttles_[index(throttle)].power_limit_w.value_or(power_limit_w_);
  }
  void move_collectives();

  const ExecutionGraph* graph_;
  GpuSpec spec_;
  ClockPair captured_clock_;
  double power_limit_w_;
  double host_power_w_ = 0.0;
  std::vector<KernelCoefficients> coefficients_;
  std::vector<SplitSource> splits_;
  std::vector<SmDemand> demands_;
  std::vector<OverlappingCollective> moved_;
  double comm_sms_ = 0.0;         // of those that moved
  std::vector<double> added_;     // share of captured time, shape [kernels]; empty: none
  std::vector<bool> launched_;    // some launch of it is no transfer, shape [kernels]; as added_
  std::vector<double> slowdown_;  // shape [activities], empty: 1
  std::vector<GpuThrottle> throttles_{GpuThrottle{}};  // that differ
  std::vector<ThrottleId> throttle_of_gpu_;            // shape [gpus], empty: none
  std::vector<double> work_;
};

}  // namespace rubato
