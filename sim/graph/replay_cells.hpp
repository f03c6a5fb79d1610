#pragma once
// Launches that have cells (LaunchCells) while a graph is replayed: each is alone on its GPU.

#include <cstdint>
#include <vector>

#include "sim/graph/replay_state.hpp"

namespace rubato {

/// The progress of the launches of one replay. A launch that nothing interrupts takes its cell's
/// time and energy to the last bit.
class CellLaunches {
 public:
  /// All arguments must outlive it. @param left  what is left of each launch, as a share
  CellLaunches(const LaunchCells* cells, GraphRun& run, std::vector<double>& left)
      : cells_(cells), run_(run), left_(left) {}

  /// Books what a GPU did in `passed_s`. What is left of a launch at its end, end_launch() books.
  void settle(const GpuState& gpu, GpuTotals& totals, double passed_s) {
    if (!gpu.running.empty()) totals.busy_s += passed_s;
    if (!gpu.runs) {
      totals.energy_j += cells_->idle_power_w(gpu.held.clock) * passed_s;
    } else if (gpu.since_s < gpu.end_s) {
      book(gpu, totals, passed_s / gpu.point.time_s);
    }
  }

  void begin_launch(std::uint32_t i) {
    run_.launches[i] = {};
    left_[i] = 1.0;
  }

  /// Ends the launch that runs. @return its activity
  std::uint32_t end_launch(GpuState& gpu, GpuTotals& totals) {
    const std::uint32_t ended = gpu.running.front().activity;
    book(gpu, totals, left_[ended]);
    gpu.running.clear();
    ++gpu.next;
    return ended;
  }

  /// Goes on at the clock held. @return when the launch ends if nothing comes in between
  [[nodiscard]] double go_on(GpuState& gpu, double at_s) {
    constexpr double never_s = std::numeric_limits<double>::infinity();
    gpu.runs = !gpu.running.empty() && !gpu.is_stalled(at_s);
    if (gpu.running.empty()) return never_s;
    const std::uint32_t i = gpu.running.front().activity;
    gpu.point = cells_->at(i, gpu.held.clock);
    if (!gpu.runs) return never_s;
    LaunchRun& launch = run_.launches[i];
    if (launch.point.time_s == 0.0) {
      launch.begin_s = at_s;
      launch.clock = gpu.held.clock;
      launch.point.core_mhz = gpu.point.core_mhz;
    }
    return gpu.end_s = at_s + left_[i] * gpu.point.time_s;
  }

  /// Power and clock in effect of a phase.
  void describe(const GpuState& gpu, GpuPhase& phase) const {
    phase.power_w =
        gpu.runs ? gpu.point.energy_j / gpu.point.time_s : cells_->idle_power_w(gpu.held.clock);
    phase.core_mhz = gpu.point.core_mhz;
    phase.power_limited = gpu.runs && gpu.point.power_limited;
  }

 private:
  // Books a part of the launch that runs. @param part  as a share of it
  void book(const GpuState& gpu, GpuTotals& totals, double part) {
    const std::uint32_t i = gpu.running.front().activity;
    const double part_s = part * gpu.point.time_s, part_j = part * gpu.point.energy_j;
    OperatingPoint& all = run_.launches[i].point;
    all.time_s += part_s;
    all.energy_j += part_j;
    all.power_limited = all.power_limited || gpu.point.power_limited;
    left_[i] -= part;
    run_.energy_j[i] = all.energy_j;
    totals.energy_j += part_j;
    if (gpu.point.power_limited) totals.power_limited_s += part_s;
  }

  const LaunchCells* cells_;  // null: this object is not used
  GraphRun& run_;
  std::vector<double>& left_;
};

}  // namespace rubato
