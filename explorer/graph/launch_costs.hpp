#pragma once
// What solvers read of an execution graph: time and energy of every kernel at every clock, alone.

#include <cstddef>
#include <span>
#include <vector>

#include "explorer/pipeline/frontier.hpp"
#include "sim/graph/simulator.hpp"
#include "traces/pipeline/profile.hpp"

namespace rubato {

/// Costs of launches at clocks. A GPU draws power even with nothing running. The least of that over
/// all clocks (and less where some kernel puts parts of the GPU to sleep) is taken to be drawn by
/// every GPU over the whole run, see least_idle_w(). A launch's cost is its energy beyond that.
class LaunchCosts {
 public:
  /// @param model     must outlive the costs
  /// @param slowdown  factor on the time of each activity, >= 1, for what runs beside it; shape
  ///                  [activities], empty: 1
  LaunchCosts(const GraphModel& model, const ClockGrid& grid, std::vector<double> slowdown = {});

  /// Costs for bounds: no launch takes less time or costs less, whatever runs beside it. That is as
  /// alone, but where launches reach the power limit together.
  [[nodiscard]] static LaunchCosts for_bounds(const GraphModel& model, const ClockGrid& grid);

  [[nodiscard]] const GraphModel& model() const noexcept { return *model_; }
  [[nodiscard]] std::size_t clocks() const noexcept { return clocks_; }

  /// What a second costs whatever is done in it, W: the least idle power of all GPUs, and the power
  /// of the rest of their nodes.
  [[nodiscard]] double least_idle_w() const noexcept { return least_idle_w_; }

  /// Whether an activity is a launch that takes time, and so gets a clock. The time of most follows
  /// it; that of some, such as copies over PCIe, does not.
  [[nodiscard]] bool is_clocked(std::size_t activity) const {
    return model_->work()[activity] > 0.0;
  }

  /// Whether an activity runs on the main stream of its GPU, whose launches decide the GPU's clock.
  /// Others may run at the clock of what runs beside them.
  [[nodiscard]] bool leads(std::size_t activity) const { return on_main_[activity]; }

  /// Time of an activity alone, times its slowdown, s. Where no clock matters: its own time.
  [[nodiscard]] double time_s(std::size_t activity, ClockId clock) const {
    if (!is_clocked(activity)) return fixed_s_[activity];
    return slowdown_[activity] * model_->work()[activity] * time_s_[cell(activity, clock)];
  }

  /// Time of an activity over that of one launch of its kernel alone, at any clock.
  [[nodiscard]] double amount(std::size_t activity) const {
    return slowdown_[activity] * model_->work()[activity];
  }

  /// Kernels of the graph x throttles of its GPUs: a throttled GPU has times of its own.
  [[nodiscard]] std::size_t kernels() const noexcept { return time_s_.size() / clocks_; }
  /// Position of an activity's kernel among these, < kernels().
  [[nodiscard]] std::uint32_t kernel_of(std::size_t activity) const { return kernel_of_[activity]; }
  /// Time of one launch of a kernel alone, by clock.
  [[nodiscard]] std::span<const double> kernel_times_s(std::uint32_t kernel) const {
    return {time_s_.data() + kernel * clocks_, clocks_};
  }

  /// Cost of an activity, J; 0 where no clock matters. Never more than what it adds to the GPU's
  /// energy. Idle power beyond the least is drawn once, so it counts on the main stream only. Where
  /// that stream has all launches of its GPU, the clock is held through the lag until the next one:
  /// that idle power counts too. The slowdown does not.
  [[nodiscard]] double cost_j(std::size_t activity, ClockId clock) const {
    if (!is_clocked(activity)) return 0.0;
    const std::size_t at = cell(activity, clock);
    return model_->work()[activity] *
               (active_j_[at] + (on_main_[activity] ? surplus_j_[at] : 0.0)) +
           held_after_s_[activity] * surplus_w(kernel_of_[activity], clock);
  }

  /// The Pareto front of an activity's clocks: those that no other beats in both time and cost.
  /// Fastest first.
  /// @pre is_clocked(activity)
  [[nodiscard]] std::span<const ClockId> useful_clocks(std::size_t activity) const {
    const auto set = held_after_s_[activity] > 0.0 ? Useful::holding
                     : on_main_[activity]          ? Useful::on_main
                                                   : Useful::beside;
    return useful_[useful_sets * kernel_of_[activity] + static_cast<std::size_t>(set)];
  }

 private:
  // Which idle power counts as a launch's cost, as in cost_j(): none, that while it runs, or also
  // that through the lag behind it.
  enum class Useful { beside, on_main, holding };
  static constexpr std::size_t useful_sets = 3;

  void add_kernel(const ClockGrid& grid, std::size_t kernel);
  void compare_clocks();
  void find_useful_clocks(std::size_t kernel);
  void find_held_lags();
  [[nodiscard]] std::size_t cell(std::size_t activity, ClockId clock) const {
    return kernel_of_[activity] * clocks_ + index(clock);
  }
  // Idle power beyond the least, of a GPU with the throttle of a kernel.
  [[nodiscard]] double surplus_w(std::size_t kernel, ClockId clock) const {
    return idle_w_[kernel / model_->graph().kernels().size() * clocks_ + index(clock)] - least_w_;
  }

  const GraphModel* model_;
  std::size_t clocks_;
  std::vector<double> slowdown_;                       // shape [activities]
  std::vector<double> time_s_, active_j_, surplus_j_;  // shape [kernels() x clocks], of one launch
  std::vector<double> running_w_;                      // idle power while it runs, the same shape
  std::vector<std::vector<ClockId>> useful_;           // shape [kernels() x useful_sets]
  std::vector<double> idle_w_;                         // waiting, shape [throttles x clocks]
  std::vector<std::uint32_t> kernel_of_;               // shape [activities]
  std::vector<double> held_after_s_;                   // shape [activities]
  std::vector<double> fixed_s_;                        // shape [activities]
  std::vector<bool> on_main_;                          // shape [activities]
  double least_w_ = 0.0;                               // of one GPU
  double least_idle_w_ = 0.0;
};

/// How much longer each activity took than alone at the same clock, >= 1.
/// @param run  of the graph at one clock
[[nodiscard]] std::vector<double> slowdown_in(const LaunchCosts& costs, const GraphRun& run,
                                              ClockId clock);

/// Longest path from the start of each activity to the last end, s, shape [activities].
[[nodiscard]] std::vector<double> times_to_end_s(const ExecutionGraph& graph,
                                                 const std::vector<double>& duration_s);

/// The graph in the terms of explorer/pipeline, whose frontier and rounding work on it. Each
/// activity is a pass, and each of its useful clocks an option, in their order. An activity without
/// a clock has one option.
[[nodiscard]] PipelineWork launch_work(const LaunchCosts& costs);

}  // namespace rubato
