#pragma once
// A second simulator of execution graphs, as slow and as plain as it can be.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/graph/simulator.hpp"

namespace rubato {

/// The rules of docs/graphs.md, section 4, written down a second time: from moment to moment, all
/// GPUs and all activities looked through at each.
class SlowReplay {
 public:
  SlowReplay(const GraphModel& model, const ClockGrid& grid, const GraphPlan& plan,
             const SwitchModel& switching = {})
      : model_(model),
        graph_(model.graph()),
        grid_(grid),
        plan_(plan),
        switching_(switching),
        free_(switching.is_free()),
        state_(graph_.size()) {
    for (std::size_t g = 0; g < graph_.gpus().size(); ++g)
      gpus_.push_back({.clock = first_clock(g)});
  }

  /// Before the first launch, the clock that the last one of each GPU asks for: of its main stream,
  /// if that has any.
  void hold_last_clocks() {
    const auto main = main_streams(graph_);
    for (const bool on_main : {false, true}) {
      for (std::size_t i = 0; i < graph_.size(); ++i) {
        if (!works(i)) continue;
        const std::size_t g = index(*graph_.gpu_of(at(i)));
        if (!on_main || at(i).stream == main[g]) gpus_[g].clock = plan_.clock_of_activity[i];
      }
    }
  }

  /// As if `before` had just run.
  void follow(const SlowReplay& before) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      gpus_[g].clock = before.gpus_[g].clock;
      gpus_[g].free_s = before.gpus_[g].free_s - before.now_s;
      gpus_[g].stall_end_s = before.gpus_[g].stall_end_s - before.now_s;
      gpus_[g].stalled_s = std::max(gpus_[g].stall_end_s, 0.0);
    }
  }

  void run() {
    now_s = 0.0;
    while (true) {
      while (act_now() || change_clocks()) {
      }
      const double next_s = next_moment();
      if (next_s == infinity) break;
      pass_until(next_s);
    }
  }

  double now_s = 0.0, energy_j = 0.0;
  struct State {
    bool begun = false, ended = false;
    double start_s = 0.0, end_s = 0.0, left = 0.0, energy_j = 0.0;
  };
  [[nodiscard]] const State& state(std::size_t i) const { return state_[i]; }
  [[nodiscard]] std::uint64_t changes(std::size_t g) const { return gpus_[g].changes; }
  [[nodiscard]] std::uint64_t late(std::size_t g) const { return gpus_[g].late.size(); }
  [[nodiscard]] double stalled_s(std::size_t g) const { return gpus_[g].stalled_s; }

 private:
  // Work left that is divided and multiplied again.
  static constexpr double rounding = 1e-9;
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Gpu {
    std::vector<std::size_t> running = {};  // oldest first; an arrival until its departure
    ClockId clock;
    std::uint64_t changes = 0;
    double free_s = -infinity, stall_end_s = -infinity, stalled_s = 0.0;
    std::set<std::size_t> late = {};
  };

  [[nodiscard]] const Activity& at(std::size_t i) const { return graph_.activities()[i]; }
  [[nodiscard]] bool holds(std::size_t i) const { return at(i).kind == ActivityKind::arrival; }
  [[nodiscard]] bool works(std::size_t i) const {
    return at(i).kind == ActivityKind::launch && model_.work()[i] > 0.0;
  }

  [[nodiscard]] ClockId first_clock(std::size_t gpu) const {
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      if (works(i) && index(*graph_.gpu_of(at(i))) == gpu) return plan_.clock_of_activity[i];
    }
    return {};
  }

  // When everything before it has ended.
  [[nodiscard]] double ready_s(std::size_t i) const {
    double ready = 0.0;
    for (const GraphArc& arc : graph_.arcs_into(id_at<ActivityId>(i))) {
      const State& from = state_[index(arc.from)];
      if (!from.ended) return infinity;
      ready = std::max(ready, from.end_s + arc.lag_s);
    }
    return ready;
  }

  // Who sets the clock: the main stream's launch, else the oldest one.
  [[nodiscard]] std::optional<std::size_t> leader(const Gpu& gpu) const {
    const auto main = main_streams(graph_);
    for (const std::size_t i : gpu.running) {
      if (!holds(i) && at(i).stream == main[index(*graph_.gpu_of(at(i)))]) return i;
    }
    for (const std::size_t i : gpu.running) {
      if (!holds(i) && !plan_.only_main_streams_ask) return i;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<ClockId> wanted(const Gpu& gpu) const {
    const auto leading = leader(gpu);
    if (!leading || plan_.clock_of_activity[*leading] == gpu.clock) return std::nullopt;
    return plan_.clock_of_activity[*leading];
  }

  void set_clock(Gpu& gpu) {
    const auto to = wanted(gpu);
    if (!free_ || !to) return;
    take_clock(gpu, *to);
  }

  // Of what takes longer or shorter at the clocks there are now, as large a share is left.
  void take_clock(Gpu& gpu, ClockId to) {
    const auto each_transfer = [&](auto change) {
      for (std::size_t i = 0; i < graph_.size(); ++i) {
        if (at(i).kind == ActivityKind::transfer && state_[i].begun && !state_[i].ended &&
            transfer_s(i) > 0.0)
          state_[i].left = change(state_[i].left, transfer_s(i));
      }
    };
    each_transfer(std::divides<>());
    gpu.clock = to;
    ++gpu.changes;
    each_transfer(std::multiplies<>());
  }

  // At the clocks of its GPUs.
  [[nodiscard]] double transfer_s(std::size_t transfer) const {
    double mhz = model_.spec().core.max_mhz;
    for (const GraphArc& arc : graph_.arcs_into(id_at<ActivityId>(transfer))) {
      if (const auto gpu = graph_.gpu_of(graph_[arc.from]))
        mhz = std::min(mhz, grid_[gpus_[index(*gpu)].clock].core_mhz.value_or(mhz));
    }
    return model_.transfer_s(transfer, mhz);
  }

  [[nodiscard]] bool stalls(const Gpu& gpu) const { return now_s < gpu.stall_end_s; }

  // When the change that a GPU wants may take effect.
  [[nodiscard]] double change_s(const Gpu& gpu) const {
    const auto to = wanted(gpu);
    if (free_ || !to || stalls(gpu)) return infinity;
    return std::max(now_s, gpu.free_s + switching_.change(grid_[gpu.clock], grid_[*to]).lead_s);
  }

  // Changes that are due. @return whether there was one
  bool change_clocks() {
    bool any = false;
    for (Gpu& gpu : gpus_) {
      const double at_s = change_s(gpu);
      if (at_s == infinity) continue;
      const ClockId to = *wanted(gpu);
      const SwitchCost cost = switching_.change(grid_[gpu.clock], grid_[to]);
      if (at_s > now_s + rounding * (cost.lead_s + switching_.dwell_s)) {
        gpu.late.insert(*leader(gpu));
        continue;
      }
      take_clock(gpu, to);
      energy_j += cost.energy_j;
      gpu.stalled_s += cost.stall_s;
      gpu.stall_end_s = now_s + cost.stall_s;
      gpu.free_s = gpu.stall_end_s + switching_.dwell_s;
      any = true;
    }
    return any;
  }

  // While a GPU that takes part stalls, a transfer stands still.
  [[nodiscard]] bool stands_still(std::size_t transfer) const {
    for (const GraphArc& arc : graph_.arcs_into(id_at<ActivityId>(transfer))) {
      const auto gpu = graph_.gpu_of(graph_[arc.from]);
      if (gpu && stalls(gpus_[index(*gpu)])) return true;
    }
    return false;
  }

  // Ends first, then the first activity that can begin. @return whether anything happened
  bool act_now() {
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      State& state = state_[i];
      if (!state.begun || state.ended) continue;
      const bool transfers = at(i).kind == ActivityKind::transfer;
      if (!(transfers || works(i)) || state.left > 0.0) continue;
      end(i);
      return true;
    }
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      if (state_[i].begun || ready_s(i) > now_s) continue;
      begin(i);
      return true;
    }
    return false;
  }

  void begin(std::size_t i) {
    State& state = state_[i];
    state.begun = true;
    state.start_s = now_s;
    const bool transfers = at(i).kind == ActivityKind::transfer;
    state.left = transfers ? transfer_s(i) : model_.work()[i];
    if (const auto gpu = graph_.gpu_of(at(i))) {
      auto& running = gpus_[index(*gpu)].running;
      if (works(i) || holds(i)) running.push_back(i);
      if (at(i).kind == ActivityKind::departure)
        std::erase_if(running,
                      [&](std::size_t j) { return holds(j) && at(j).stream == at(i).stream; });
      set_clock(gpus_[index(*gpu)]);
    }
    if (!works(i) && !transfers) end(i);
  }

  void end(std::size_t i) {
    state_[i].ended = true;
    state_[i].end_s = now_s;
    if (!works(i)) return;
    Gpu& gpu = gpus_[index(*graph_.gpu_of(at(i)))];
    std::erase(gpu.running, i);
    set_clock(gpu);
  }

  struct Rates {
    Sharing sharing;
    std::map<std::uint32_t, std::size_t> place;  // of a kernel
  };
  [[nodiscard]] Rates rates(const Gpu& gpu) {
    std::vector<std::uint32_t> kernels;
    for (const std::size_t i : gpu.running) kernels.push_back(at(i).kernel.value);
    std::ranges::sort(kernels);
    auto& shared = shared_[gpu.clock.value];
    if (!shared) shared = std::make_unique<SharedGpu>(model_.shared_gpu(grid_[gpu.clock]));
    Rates found{shared->at(kernels), {}};
    if (stalls(gpu)) {
      found.sharing.launches_per_s.assign(kernels.size(), 0.0);
      found.sharing.active_w.assign(kernels.size(), 0.0);
      found.sharing.idle_w = model_.idle_power_w(grid_[gpu.clock]);
    }
    for (std::size_t k = 0; k < kernels.size(); ++k) found.place.emplace(kernels[k], k);
    return found;
  }

  [[nodiscard]] double next_moment() {
    double next_s = infinity;
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      if (!state_[i].begun) next_s = std::min(next_s, ready_s(i));
      const bool transfers = at(i).kind == ActivityKind::transfer;
      if (state_[i].begun && !state_[i].ended && transfers && !stands_still(i))
        next_s = std::min(next_s, now_s + state_[i].left);
    }
    for (const Gpu& gpu : gpus_) {
      next_s = std::min(next_s, stalls(gpu) ? gpu.stall_end_s : change_s(gpu));
      const Rates now = rates(gpu);
      for (const std::size_t i : gpu.running) {
        if (holds(i)) continue;
        const double rate = now.sharing.launches_per_s[now.place.at(at(i).kernel.value)];
        if (rate > 0.0) next_s = std::min(next_s, now_s + state_[i].left / rate);
      }
    }
    return next_s;
  }

  void pass_until(double next_s) {
    const double passed_s = next_s - now_s;
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      if (at(i).kind != ActivityKind::transfer || !state_[i].begun || state_[i].ended) continue;
      if (stands_still(i)) continue;
      double& left_s = state_[i].left;
      left_s = now_s + left_s <= next_s * (1.0 + 1e-15) ? 0.0 : left_s - passed_s;
    }
    for (const Gpu& gpu : gpus_) {
      const Rates now = rates(gpu);
      double power_w = now.sharing.idle_w;
      for (const std::size_t i : gpu.running) {
        const std::size_t k = now.place.at(at(i).kernel.value);
        const double active_w = now.sharing.active_w[k];
        power_w += active_w;
        state_[i].energy_j +=
            passed_s * (active_w + now.sharing.idle_w / static_cast<double>(gpu.running.size()));
        if (holds(i)) continue;
        const double done = now.sharing.launches_per_s[k] * passed_s;
        // Who ends at the next moment is over, whatever rounding leaves.
        const double rate = now.sharing.launches_per_s[k];
        const bool over = rate > 0.0 && now_s + state_[i].left / rate <= next_s * (1.0 + 1e-15);
        state_[i].left = over ? 0.0 : state_[i].left - done;
      }
      energy_j += power_w * passed_s;
    }
    now_s = next_s;
  }

  const GraphModel& model_;
  const ExecutionGraph& graph_;
  const ClockGrid& grid_;
  const GraphPlan& plan_;
  SwitchModel switching_;
  bool free_;
  std::vector<State> state_;
  std::vector<Gpu> gpus_;
  std::map<std::uint32_t, std::unique_ptr<SharedGpu>> shared_;
};

}  // namespace rubato
