#pragma once
// The event loop of GraphSimulator.

#include <algorithm>
#include <cassert>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/graph/replay_state.hpp"

namespace rubato {

/// One replay under way.
class GraphReplay {
 public:
  GraphReplay(GraphSimulator& simulator, const GraphPlan& plan, const GraphRunOptions& options,
              const std::vector<HeldClock>& held)
      : simulator_(simulator),
        graph_(simulator.model_->graph()),
        plan_(plan),
        options_(options),
        free_changes_(options.switching.is_free()),
        left_(simulator.model_->work()),
        waits_(simulator.waits_),
        ready_s_(graph_.size(), 0.0),
        gpus_(graph_.gpus().size()) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) gpus_[g].held = held[g];
    for (std::uint32_t g = 0; g < plan.timed.size(); ++g) {
      gpus_[g].timed_clock = plan.timed[g].front().clock;
      for (std::uint32_t k = 0; k < plan.timed[g].size(); ++k)
        events_.push({plan.timed[g][k].from_s, EventKind::clock_asked, g, k});
    }
    run_.start_s.resize(graph_.size());
    run_.end_s.resize(graph_.size());
    run_.energy_j.resize(graph_.size(), 0.0);
    run_.gpus.resize(gpus_.size());
  }

  GraphRun run() {
    for (std::uint32_t g = 0; g < gpus_.size(); ++g) share(g, 0.0);
    begin(0, 0.0);
    while (!events_.empty()) {
      const Event event = events_.pop();
      switch (event.kind) {
        case EventKind::transfer_ends:
          if (transfers_[event.what].version == event.version) end(event.what, event.at_s);
          break;
        case EventKind::launch_ends:
          if (gpus_[event.what].version == event.version) end_next_launch(event.what, event.at_s);
          break;
        case EventKind::begins: begin(event.what, event.at_s); break;
        case EventKind::clock_asked:
          if (ended_ < graph_.size())
            ask(event.what, plan_.timed[event.what][event.version], event.at_s);
          break;
        case EventKind::clock_changes:
          if (gpus_[event.what].version == event.version) change_clock(event.what, event.at_s);
          break;
      }
    }
    for (std::uint32_t g = 0; g < gpus_.size(); ++g) settle(g, run_.span_s);
    for (GpuTotals& gpu : run_.gpus) {
      gpu.energy_j += simulator_.model_->host_power_w() * run_.span_s;
      run_.total_energy_j += gpu.energy_j;
    }
    for (const GpuState& gpu : gpus_)
      run_.left_behind.push_back({gpu.held.clock, gpu.held.free_s - run_.span_s});
    return std::move(run_);
  }

 private:
  void begin(std::uint32_t i, double at_s) {
    const Activity& activity = graph_.activities()[i];
    run_.start_s[i] = at_s;
    switch (activity.kind) {
      case ActivityKind::launch:
        if (left_[i] > 0.0) {
          const std::uint32_t g = gpu_of(activity);
          settle(g, at_s);
          gpus_[g].running.push_back({i, activity.kernel.value, false});
          share(g, at_s);
          return;
        }
        break;
      case ActivityKind::arrival: {
        const std::uint32_t g = gpu_of(activity);
        settle(g, at_s);
        gpus_[g].running.push_back({i, activity.kernel.value, true});
        share(g, at_s);
        break;
      }
      case ActivityKind::departure: leave(activity, at_s); break;
      case ActivityKind::transfer: begin_transfer(i, at_s); return;
      case ActivityKind::origin:
      case ActivityKind::host: break;
    }
    end(i, at_s);
  }

  void begin_transfer(std::uint32_t i, double at_s) {
    TransferState& transfer = transfers_[i];
    transfer.begun = true;
    transfer.left_s = transfer.all_s = transfer_s(i);
    transfer.since_s = at_s;
    for (const GraphArc& arc : graph_.arcs_into(ActivityId{i})) {
      const auto gpu = graph_.gpu_of(graph_[arc.from]);
      if (gpu && is_stalled(gpus_[index(*gpu)], at_s)) ++transfer.stalls;
    }
    end_transfer_if_nothing_stalls(i, at_s);
  }

  // At the clocks its GPUs have.
  [[nodiscard]] double transfer_s(std::uint32_t i) const {
    const GraphModel& model = *simulator_.model_;
    if (!model.transfers_follow_clocks()) return model.transfer_s(i);
    double slowest_mhz = model.spec().core.max_mhz;
    for (const GraphArc& arc : graph_.arcs_into(ActivityId{i})) {
      const auto gpu = graph_.gpu_of(graph_[arc.from]);
      if (!gpu) continue;
      const ClockPair held = model.held_clock(simulator_.grid_[gpus_[index(*gpu)].held.clock],
                                              model.throttle_of(*gpu));
      slowest_mhz = std::min(slowest_mhz, effective_core_mhz(model.spec(), held));
    }
    return model.transfer_s(i, slowest_mhz);
  }

  void end_transfer_if_nothing_stalls(std::uint32_t i, double at_s) {
    const TransferState& transfer = transfers_[i];
    if (transfer.stalls == 0)
      events_.push({at_s + transfer.left_s, EventKind::transfer_ends, i, transfer.version});
  }

  // What is left of the transfers that a GPU takes part in goes on at its new clock.
  void retime_transfers(const GpuState& gpu, double at_s) {
    if (!simulator_.model_->transfers_follow_clocks()) return;
    for (const Running& one : gpu.running) {
      if (!one.holds) continue;
      const std::uint32_t i = simulator_.transfer_of_[one.activity];
      TransferState& transfer = transfers_[i];
      if (!transfer.begun || transfer.all_s <= 0.0) continue;
      const double all_s = transfer_s(i);
      if (all_s == transfer.all_s) continue;
      if (transfer.stalls == 0) transfer.left_s -= at_s - transfer.since_s;
      transfer.left_s = std::max(transfer.left_s, 0.0) * (all_s / transfer.all_s);
      transfer.all_s = all_s;
      transfer.since_s = at_s;
      ++transfer.version;
      end_transfer_if_nothing_stalls(i, at_s);
    }
  }

  // Transfers that a GPU takes part in stand still, or go on.
  void stall_transfers(const GpuState& gpu, double at_s, bool begins) {
    for (const Running& one : gpu.running) {
      if (!one.holds) continue;
      const std::uint32_t i = simulator_.transfer_of_[one.activity];
      TransferState& transfer = transfers_[i];
      if (!transfer.begun) continue;
      if (begins && transfer.stalls++ == 0) {
        transfer.left_s = std::max(transfer.left_s - (at_s - transfer.since_s), 0.0);
        ++transfer.version;
      } else if (!begins && --transfer.stalls == 0) {
        transfer.since_s = at_s;
        end_transfer_if_nothing_stalls(i, at_s);
      }
    }
  }

  // The collective that a stream has run since its arrival.
  void leave(const Activity& departure, double at_s) {
    const std::uint32_t g = gpu_of(departure);
    settle(g, at_s);
    std::erase_if(gpus_[g].running, [&](const Running& one) {
      return one.holds && graph_.activities()[one.activity].stream == departure.stream;
    });
    share(g, at_s);
  }

  void end_next_launch(std::uint32_t g, double at_s) {
    settle(g, at_s);
    GpuState& gpu = gpus_[g];
    const auto done = std::ranges::min_element(gpu.running, {}, [&](const Running& one) {
      return one.holds ? unbounded_s : left_[one.activity] / rate(g, one.kernel);
    });
    const std::uint32_t activity = done->activity;
    gpu.running.erase(done);
    share(g, at_s);
    end(activity, at_s);
  }

  void end(std::uint32_t i, double at_s) {
    ++ended_;
    run_.end_s[i] = at_s;
    run_.span_s = std::max(run_.span_s, at_s);
    for (std::uint32_t a = simulator_.first_out_[i]; a < simulator_.first_out_[i + 1]; ++a) {
      const std::uint32_t to = simulator_.out_[a];
      ready_s_[to] = std::max(ready_s_[to], at_s + simulator_.out_lag_s_[a]);
      if (--waits_[to] == 0) events_.push({ready_s_[to], EventKind::begins, to, 0});
    }
  }

  // Launches of a kernel a second, as one of those that run on a GPU.
  [[nodiscard]] double rate(std::uint32_t g, std::uint32_t kernel) const {
    const GpuState& gpu = gpus_[g];
    const auto at = std::ranges::lower_bound(gpu.kernels, kernel) - gpu.kernels.begin();
    return gpu.sharing->launches_per_s[static_cast<std::size_t>(at)];
  }

  // Books what a GPU did since its running set last changed.
  void settle(std::uint32_t g, double to_s) {
    GpuState& gpu = gpus_[g];
    const double passed_s = to_s - gpu.since_s;
    if (passed_s <= 0.0) return;
    gpu.since_s = to_s;
    const Sharing& now = *gpu.sharing;
    const double idle_share_w = now.idle_w / std::max(1.0, static_cast<double>(gpu.running.size()));
    for (const Running& one : gpu.running) {
      const auto at = std::ranges::lower_bound(gpu.kernels, one.kernel) - gpu.kernels.begin();
      const auto k = static_cast<std::size_t>(at);
      if (!one.holds) {
        left_[one.activity] = std::max(left_[one.activity] - now.launches_per_s[k] * passed_s, 0.0);
      }
      run_.energy_j[one.activity] += passed_s * (now.active_w[k] + idle_share_w);
    }
    GpuTotals& totals = run_.gpus[g];
    totals.energy_j += now.power_w() * passed_s;
    if (!gpu.running.empty()) totals.busy_s += passed_s;
    if (now.power_limited) totals.power_limited_s += passed_s;
  }

  [[nodiscard]] ThrottleId throttle_of(std::uint32_t g) const {
    return simulator_.model_->throttle_of(GpuId{g});
  }

  // Whose clock a GPU takes; `nobody` if it runs nothing, or only holds collectives.
  [[nodiscard]] std::uint32_t leader(std::uint32_t g) const {
    std::uint32_t oldest = nobody;
    for (const Running& one : gpus_[g].running) {
      if (one.holds) continue;
      if (graph_.activities()[one.activity].stream == simulator_.main_stream_[g])
        return one.activity;
      if (oldest == nobody && !plan_.only_main_streams_ask) oldest = one.activity;
    }
    return oldest;
  }

  [[nodiscard]] static bool is_stalled(const GpuState& gpu, double at_s) {
    return at_s < gpu.stalled_until_s;
  }

  // The clock that is asked for; the one in force if none is.
  [[nodiscard]] ClockId asked_clock(std::uint32_t g) const {
    const GpuState& gpu = gpus_[g];
    if (gpu.timed_clock) return *gpu.timed_clock;
    const std::uint32_t leading = leader(g);
    return leading == nobody ? gpu.held.clock : plan_.clock_of_activity[leading];
  }

  void ask(std::uint32_t g, const TimedClock& timed, double at_s) {
    settle(g, at_s);
    gpus_[g].timed_clock = timed.clock;
    share(g, at_s);
  }

  // A stall ends, or the clock changes, or it is too early for that.
  void change_clock(std::uint32_t g, double at_s) {
    GpuState& gpu = gpus_[g];
    settle(g, at_s);
    if (gpu.stalled_until_s == at_s) {
      gpu.stalled_until_s = -unbounded_s;
      stall_transfers(gpu, at_s, false);
    }
    const ClockId asked = asked_clock(g);
    if (asked != gpu.held.clock && !is_stalled(gpu, at_s)) {
      const double from_s = earliest_change_s(gpu, asked);
      // Sums of times differ by rounding between a planner and this loop.
      constexpr double rounding = 1e-9;
      const SwitchModel& switching = options_.switching;
      const SwitchCost cost =
          switching.change(simulator_.grid_[gpu.held.clock], simulator_.grid_[asked]);
      if (from_s - at_s > rounding * (cost.lead_s + switching.dwell_s)) {
        const std::uint32_t leading = leader(g);
        if (leading != nobody && late_.insert(leading).second) ++run_.gpus[g].late_launches;
        return share(g, at_s, from_s);
      }
      begin_change(g, asked, cost, at_s);
    }
    share(g, at_s);
  }

  [[nodiscard]] double earliest_change_s(const GpuState& gpu, ClockId to) const {
    return gpu.held.free_s +
           options_.switching.change(simulator_.grid_[gpu.held.clock], simulator_.grid_[to]).lead_s;
  }

  void begin_change(std::uint32_t g, ClockId to, const SwitchCost& cost, double at_s) {
    GpuState& gpu = gpus_[g];
    GpuTotals& totals = run_.gpus[g];
    const double idle_w =
        cost.stall_s > 0.0 ? simulator_.model_->idle_power_w(simulator_.grid_[to], throttle_of(g))
                           : 0.0;
    ++totals.clock_changes;
    totals.energy_j += cost.energy_j;
    totals.stalled_s += cost.stall_s;
    totals.switch_energy_j += cost.energy_j + cost.stall_s * idle_w;
    const double until_s = at_s + cost.stall_s;
    gpu.held = {to, until_s + options_.switching.dwell_s};
    retime_transfers(gpu, at_s);
    if (until_s <= at_s) return;
    gpu.stalled_until_s = until_s;
    gpu.stall.idle_w = idle_w;
    stall_transfers(gpu, at_s, true);
  }

  // Looks up rates and power of what runs now, and says when the next launch ends or the clock may
  // change. @param change_s  not before
  void share(std::uint32_t g, double at_s, double change_s = -unbounded_s) {
    GpuState& gpu = gpus_[g];
    const ClockId asked = asked_clock(g);
    const bool another = asked != gpu.held.clock;
    if (another && free_changes_) {
      ++run_.gpus[g].clock_changes;
      gpu.held.clock = asked;
      retime_transfers(gpu, at_s);
    }
    gpu.kernels.clear();
    for (const Running& one : gpu.running) gpu.kernels.push_back(one.kernel);
    std::ranges::sort(gpu.kernels);
    const bool stalled = is_stalled(gpu, at_s);
    gpu.sharing = stalled ? standing_still(gpu)
                          : &simulator_.gpu_at(gpu.held.clock, throttle_of(g)).at(gpu.kernels);
    ++gpu.version;
    if (stalled) {
      events_.push({gpu.stalled_until_s, EventKind::clock_changes, g, gpu.version});
    } else {
      double next_s = unbounded_s;
      for (const Running& one : gpu.running) {
        if (!one.holds) next_s = std::min(next_s, at_s + left_[one.activity] / rate(g, one.kernel));
      }
      if (next_s < unbounded_s) events_.push({next_s, EventKind::launch_ends, g, gpu.version});
      if (another && !free_changes_)
        events_.push({std::max(at_s, change_s), EventKind::clock_changes, g, gpu.version});
    }
    if (!options_.phases) return;
    const Sharing& now = *gpu.sharing;
    run_.phases.push_back({at_s, GpuId{g}, static_cast<std::uint32_t>(gpu.running.size()),
                           now.power_w(), now.core_mhz, now.power_limited, gpu.held.clock});
  }

  [[nodiscard]] const Sharing* standing_still(GpuState& gpu) const {
    gpu.stall.launches_per_s.assign(gpu.running.size(), 0.0);
    gpu.stall.active_w.assign(gpu.running.size(), 0.0);
    gpu.stall.core_mhz =
        effective_core_mhz(simulator_.model_->spec(), simulator_.grid_[gpu.held.clock]);
    return &gpu.stall;
  }

  // Of an activity on a stream. (An optional, made to be read at once, would be waited for.)
  [[nodiscard]] std::uint32_t gpu_of(const Activity& activity) const {
    assert(activity.stream.has_value());
    return graph_.streams()[*activity.stream].gpu.value;
  }

  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
  static constexpr double unbounded_s = std::numeric_limits<double>::infinity();

  GraphSimulator& simulator_;
  const ExecutionGraph& graph_;
  const GraphPlan& plan_;
  GraphRunOptions options_;
  bool free_changes_;
  std::vector<double> left_;          // of each launch, in launches of the model
  std::vector<std::uint32_t> waits_;  // arcs each activity still waits for
  std::size_t ended_ = 0;             // activities
  std::vector<double> ready_s_;
  std::vector<GpuState> gpus_;
  std::unordered_map<std::uint32_t, TransferState> transfers_;
  std::unordered_set<std::uint32_t> late_;  // launches that waited for their clock
  EventQueue events_;
  GraphRun run_;
};

}  // namespace rubato
