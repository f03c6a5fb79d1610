#pragma once
// What the activities of an execution graph take at each clock: kernels bound to a GPU's spec,
// captured durations anchored (returned at the captured clock). docs/graphs.md, section 3.

#include <optional>
#include <vector>

#include "models/gpu/clock_grid.hpp"
#include "models/kernel/anchor.hpp"
#include "models/kernel/model.hpp"
#include "sim/graph/comm_sms.hpp"
#include "sim/sharing/shared_gpu.hpp"
#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// How a GPU differs from the others whatever clock it is asked for: heat, the chip, whoever runs
/// it.
struct GpuThrottle {
  std::optional<double> core_mhz = {};       ///< highest core clock
  std::optional<double> power_limit_w = {};  ///< the lower of this and the run's limit counts
  double power_factor = 1.0;  ///< it draws so many times as much, so its limit slows it down more

  friend bool operator==(const GpuThrottle&, const GpuThrottle&) = default;
};

using ThrottleId = Id<struct GpuThrottleTag>;  ///< into the throttles of a GraphModel

/// The GPUs of a graph, all of one type and captured at one clock. The graph must outlive it.
class GraphModel {
 public:
  /// @param captured_clock  clocks the run was captured at
  /// @param power_limit_w   limit in the runs to come, W; captures ran under the spec's
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

  /// The same GPUs with the captured times split differently where the split is open.
  /// @param lean  as of anchored(), 0 to 1. 0: as much bound by memory as the work of the kernels
  ///              leaves open; 1: by the core
  [[nodiscard]] GraphModel with_split(double lean) const;

  /// The same GPUs with the given coefficients in place of their own. work() stays.
  /// @param coefficients  shape [kernels]; nothing: the kernel keeps its own
  [[nodiscard]] GraphModel with_coefficients(
      const std::vector<std::optional<KernelCoefficients>>& coefficients) const;

  /// As with_coefficients, and launches of such a kernel get work() 1: each takes what the
  /// coefficients say, whatever it took as captured.
  [[nodiscard]] GraphModel with_whole_launches(
      const std::vector<std::optional<KernelCoefficients>>& coefficients) const;

  /// The same GPUs where activities take `factor` times as long as captured, at every clock.
  /// Launches do so much more work, and use so much more energy. Transfers are so much slower.
  /// @param factor  shape [activities], each > 0
  /// @pre collectives are on their captured SMs
  [[nodiscard]] GraphModel with_slowdown(std::vector<double> factor) const;

  /// The same graph on GPUs some of which are throttled in the runs to come. They were not while it
  /// was captured.
  /// @param of_gpu  shape [gpus]
  /// @throws UsageError for a clock or power limit outside the spec's range
  [[nodiscard]] GraphModel with_throttles(const std::vector<GpuThrottle>& of_gpu) const;

  /// The same GPUs with host power counted: so many watts per GPU for as long as a run takes. It is
  /// in the totals of a run, not in the energy of its activities.
  [[nodiscard]] GraphModel with_host_power(double host_power_w) const;
  [[nodiscard]] double host_power_w() const noexcept { return host_power_w_; }

  /// How many different throttles there are, at least one: the first is no throttle.
  [[nodiscard]] std::size_t throttles() const noexcept { return throttles_.size(); }
  [[nodiscard]] ThrottleId throttle_of(GpuId gpu) const {
    return throttle_of_gpu_.empty() ? ThrottleId{} : throttle_of_gpu_[index(gpu)];
  }

  /// The same GPUs with collectives on another number of SMs than captured: what runs beside them
  /// has the rest of the SMs, and they copy slower or faster. work() stays.
  /// @param comm_sms  SMs of each of them, >= 1, below the spec's
  /// @pre collectives are on their captured SMs
  [[nodiscard]] GraphModel with_comm_sms(std::vector<OverlappingCollective> collectives,
                                         double comm_sms) const;

  /// A kernel's coefficients on the SMs of this model. They differ from `captured` only for
  /// collectives that were moved to other SMs and were not joined over ranks: these copy slower or
  /// faster.
  /// @param captured  of one launch on the SMs it was captured on
  [[nodiscard]] KernelCoefficients on_its_sms(KernelId kernel,
                                              const KernelCoefficients& captured) const;

  /// How long a transfer takes, s; 0 for other activities. No clock changes its captured time. What
  /// fewer SMs add to it follows the core clock of the slowest GPU that takes part.
  /// @param core_mhz  that clock, in effect
  [[nodiscard]] double transfer_s(std::size_t activity, double core_mhz) const;
  /// The least that a transfer takes at any clock, s.
  [[nodiscard]] double transfer_s(std::size_t activity) const {
    return transfer_s(activity, spec_.core.max_mhz);
  }
  [[nodiscard]] bool transfers_follow_clocks() const noexcept { return !moved_.empty(); }

  /// The work of each activity, in launches of the model, shape [activities]. For example 1.1: as
  /// much as 1.1 launches with the mean time. It is such that at the captured clocks the activity
  /// takes its captured time, with what ran beside it. 0 where no clock matters.
  [[nodiscard]] const std::vector<double>& work() const noexcept { return work_; }

  /// How many times as much a GPU draws.
  [[nodiscard]] double power_factor(ThrottleId throttle) const {
    return throttles_[index(throttle)].power_factor;
  }

  /// The power limit of a GPU at a clock, W.
  [[nodiscard]] double limit_w(const ClockPair& clock, ThrottleId throttle = {}) const;

  /// What a GPU does when asked for a clock: no more than its throttle allows. The limit is that
  /// for a GPU that draws as much as others.
  [[nodiscard]] ClockPair held_clock(const ClockPair& asked, ThrottleId throttle) const;

  /// The kernels of this graph, running together at a requested clock. One object serves one
  /// thread.
  [[nodiscard]] SharedGpu shared_gpu(const ClockPair& clock, ThrottleId throttle = {}) const {
    SharedGpu gpu(spec_, coefficients_, demands_, held_clock(clock, throttle), power_limit_w_);
    gpu.draw(power_factor(throttle));
    return gpu;
  }

  /// Time and energy of one launch alone on its GPU.
  [[nodiscard]] OperatingPoint evaluate(KernelId kernel, const ClockPair& clock,
                                        ThrottleId throttle = {}) const {
    OperatingPoint point = operating_point(spec_, coefficients_[index(kernel)],
                                           held_clock(clock, throttle), power_limit_w_);
    point.energy_j *= power_factor(throttle);
    return point;
  }

  /// Board power while nothing runs, W.
  [[nodiscard]] double idle_power_w(const ClockPair& clock, ThrottleId throttle = {}) const;

 private:
  void bind_kernels(double lean);
  void anchor_work();
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
  double comm_sms_ = 0.0;         // SMs of moved_
  std::vector<double> added_;     // added_frac, shape [kernels]; empty: none
  std::vector<bool> launched_;    // some launch of it is no transfer, shape [kernels]; as added_
  std::vector<double> slowdown_;  // shape [activities], empty: 1
  std::vector<GpuThrottle> throttles_{GpuThrottle{}};  // each once; the first is no throttle
  std::vector<ThrottleId> throttle_of_gpu_;            // shape [gpus], empty: none
  std::vector<double> work_;
};

}  // namespace rubato
