#pragma once
// The event loop of GraphSimulator.

#include <algorithm>
#include <cassert>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/graph/replay_cells.hpp"
#include "sim/graph/replay_transfers.hpp"

namespace rubato {

/// One replay under way.
class GraphReplay {
 public:
  GraphReplay(GraphSimulator& simulator, const GraphPlan& plan, const GraphRunOptions& options,
              const std::vector<HeldClock>& held)
      : simulator_(simulator),
        graph_(*simulator.graph_),
        cells_(simulator.cells_),
        plan_(plan),
        options_(options),
        free_changes_(options.switching.is_free()),
        left_(simulator.scratch_.left),
        waits_(simulator.scratch_.waits),
        ready_s_(simulator.scratch_.ready_s),
        order_(simulator.scratch_.order),
        gpus_(graph_.gpus().size()),
        transfers_(simulator, gpus_, events_),
        on_cells_(simulator.cells_, run_, left_) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) gpus_[g].held = held[g];
    for (std::uint32_t g = 0; g < plan.timed.size(); ++g) {
      gpus_[g].timed_clock = plan.timed[g].front().clock;
      for (std::uint32_t k = 0; k < plan.timed[g].size(); ++k)
        events_.push({plan.timed[g][k].from_s, EventKind::clock_asked, g, k});
    }
    waits_ = simulator.waits_;
    ready_s_.assign(graph_.size(), 0.0);
    start_over();
    if (plan.asked_ahead && order_.empty()) order_ = launches_of_gpus(graph_);
  }

  GraphRun run() {
    for (std::uint32_t g = 0; g < gpus_.size(); ++g) {
      if (const HeldClock& held = gpus_[g].held; held.stalled_until_s > 0.0)
        begin_stall(g, 0.0, held.stalled_until_s);
      share(g, 0.0);
    }
    begin(0, 0.0);
    while (!events_.empty()) {
      const Event event = events_.pop();
      switch (event.kind) {
        case EventKind::transfer_ends:
          if (transfers_.ends(event)) end(event.what, event.at_s);
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
          // The run after this one makes changes that are still to come: left_behind.
          if (ended_ < graph_.size() && gpus_[event.what].version == event.version)
            change_clock(event.what, event.at_s);
          break;
      }
    }
    for (std::uint32_t g = 0; g < gpus_.size(); ++g) {
      settle(g, run_.span_s);
      // The next run has the rest of a stall that is not over.
      const double left_s = gpus_[g].stalled_until_s - run_.span_s;
      if (left_s > 0.0) book_stall(run_.gpus[g], gpus_[g], -left_s);
    }
    for (GpuTotals& gpu : run_.gpus) {
      if (cells_ == nullptr) gpu.energy_j += simulator_.model_->host_power_w() * run_.span_s;
      run_.total_energy_j += gpu.energy_j;
    }
    for (const GpuState& gpu : gpus_) {
      run_.left_behind.push_back(
          {gpu.held.clock, gpu.held.free_s - run_.span_s, gpu.stalled_until_s - run_.span_s});
    }
    return std::move(run_);
  }

 private:
  // Begins a run in the memory of an earlier one. Launches with cells are reset as they begin.
  void start_over() {
    const std::size_t size = graph_.size();
    run_ = std::exchange(simulator_.spare_, {});
    run_.start_s.resize(size);
    run_.end_s.resize(size);
    if (cells_ != nullptr) {
      run_.energy_j.resize(size);
      run_.launches.resize(size);
      left_.resize(size);
    } else {
      run_.energy_j.assign(size, 0.0);
      left_ = simulator_.model_->work();
    }
    run_.gpus.assign(gpus_.size(), {});
    run_.changes.clear();
    run_.phases.clear();
    run_.left_behind.clear();
    run_.span_s = run_.total_energy_j = 0.0;
  }

  void begin(std::uint32_t i, double at_s) {
    const Activity& activity = graph_.activities()[i];
    run_.start_s[i] = at_s;
    switch (activity.kind) {
      case ActivityKind::launch:
        if (cells_ != nullptr || left_[i] > 0.0) {
          const std::uint32_t g = gpu_of(activity);
          if (!plan_.asked_ahead || has_clock_of_next(g, at_s)) return begin_launch(i, g, at_s);
          gpus_[g].waiting = i;
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
      case ActivityKind::transfer: transfers_.begin(i, at_s); return;
      case ActivityKind::origin:
      case ActivityKind::host: break;
    }
    end(i, at_s);
  }

  void begin_launch(std::uint32_t i, std::uint32_t g, double at_s) {
    run_.start_s[i] = at_s;
    settle(g, at_s);
    if (cells_ != nullptr) on_cells_.begin_launch(i);
    gpus_[g].running.push_back({i, graph_.activities()[i].kernel.value, false});
    share(g, at_s);
  }

  [[nodiscard]] bool has_clock_of_next(std::uint32_t g, double at_s) const {
    return !gpus_[g].is_stalled(at_s) && !simulator_.differ(asked_clock(g), gpus_[g].held.clock);
  }

  // Ends the collective that a stream has run since its arrival.
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
    if (cells_ != nullptr) {
      const std::uint32_t ended = on_cells_.end_launch(gpu, run_.gpus[g]);
      share(g, at_s);
      return end(ended, at_s);
    }
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

  // Launches per second of a kernel that runs on a GPU, beside the others there.
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
    if (cells_ != nullptr) return on_cells_.settle(gpu, run_.gpus[g], passed_s);
    book_shared(gpu, passed_s, left_, run_.energy_j, run_.gpus[g]);
  }

  [[nodiscard]] ThrottleId throttle_of(std::uint32_t g) const {
    return simulator_.model_->throttle_of(GpuId{g});
  }

  // The launch whose clock a GPU takes; `nobody` if it runs nothing, or only holds collectives.
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

  // The clock that is asked for; the one in force if no launch asks.
  [[nodiscard]] ClockId asked_clock(std::uint32_t g) const {
    const GpuState& gpu = gpus_[g];
    if (gpu.timed_clock) return *gpu.timed_clock;
    if (plan_.asked_ahead)
      return gpu.next < order_[g].size() ? plan_.clock_of_activity[order_[g][gpu.next]]
                                         : gpu.held.clock;
    const std::uint32_t leading = leader(g);
    return leading == nobody ? gpu.held.clock : plan_.clock_of_activity[leading];
  }

  void ask(std::uint32_t g, const TimedClock& timed, double at_s) {
    settle(g, at_s);
    gpus_[g].timed_clock = timed.clock;
    share(g, at_s);
  }

  // A stall ends, or the clock changes, or it is too early for a change, which is put off.
  void change_clock(std::uint32_t g, double at_s) {
    GpuState& gpu = gpus_[g];
    settle(g, at_s);
    if (gpu.stalled_until_s == at_s) {
      gpu.stalled_until_s = -unbounded_s;
      transfers_.stall(gpu, at_s, false);
    }
    const ClockId asked = asked_clock(g);
    if (simulator_.differ(asked, gpu.held.clock) && !gpu.is_stalled(at_s)) {
      const double from_s = earliest_change_s(gpu, asked);
      // Sums of times differ by rounding between a planner and this loop.
      constexpr double rounding = 1e-9;
      const SwitchModel& switching = options_.switching;
      const SwitchCost cost = simulator_.change(switching, gpu.held.clock, asked);
      if (from_s - at_s > rounding * (cost.lead_s + switching.dwell_s)) {
        const std::uint32_t leading = leader(g);
        if (leading != nobody && is_first_delay(leading)) ++run_.gpus[g].late_launches;
        return share(g, at_s, from_s);
      }
      begin_change(g, asked, cost, at_s);
    }
    share(g, at_s);
    if (gpu.waiting && has_clock_of_next(g, at_s)) {
      const std::uint32_t ready = *std::exchange(gpu.waiting, std::nullopt);
      begin_launch(ready, g, at_s);
    }
  }

  [[nodiscard]] bool is_first_delay(std::uint32_t launch) {
    if (cells_ == nullptr) return late_.insert(launch).second;
    return !std::exchange(run_.launches[launch].late, true);
  }

  [[nodiscard]] double earliest_change_s(const GpuState& gpu, ClockId to) const {
    return gpu.held.free_s + simulator_.change(options_.switching, gpu.held.clock, to).lead_s;
  }

  void begin_change(std::uint32_t g, ClockId to, const SwitchCost& cost, double at_s) {
    GpuState& gpu = gpus_[g];
    GpuTotals& totals = run_.gpus[g];
    ++totals.clock_changes;
    totals.energy_j += cost.energy_j;
    totals.switch_energy_j += cost.energy_j;
    const double until_s = at_s + cost.stall_s;
    gpu.held = {to, until_s + options_.switching.dwell_s};
    transfers_.retime(gpu, at_s);
    double stall_j = 0.0;
    if (until_s > at_s) {
      begin_stall(g, at_s, until_s);
      stall_j = cost.stall_s * gpu.stall.idle_w;
    }
    if (cells_ != nullptr)
      run_.changes.push_back(
          {GpuId{g}, at_s - cost.lead_s, at_s, until_s, to, cost.energy_j + stall_j});
  }

  void begin_stall(std::uint32_t g, double at_s, double until_s) {
    GpuState& gpu = gpus_[g];
    gpu.stalled_until_s = until_s;
    gpu.stall.idle_w = simulator_.idle_power_w(gpu.held.clock, GpuId{g});
    book_stall(run_.gpus[g], gpu, until_s - at_s);
    transfers_.stall(gpu, at_s, true);
  }

  // Looks up rates and power of what runs at `at_s`, and queues the next end of a launch or change
  // of clock. @param change_s  earliest change of clock
  void share(std::uint32_t g, double at_s, double change_s = -unbounded_s) {
    GpuState& gpu = gpus_[g];
    const ClockId asked = asked_clock(g);
    const bool another = simulator_.differ(asked, gpu.held.clock);
    if (another && free_changes_) {
      ++run_.gpus[g].clock_changes;
      gpu.held.clock = asked;
      transfers_.retime(gpu, at_s);
      if (cells_ != nullptr) run_.changes.push_back({GpuId{g}, at_s, at_s, at_s, asked, 0.0});
    } else if (!another) {
      gpu.held.clock = asked;  // which is what it holds, under another number at most
    }
    const bool stalled = gpu.is_stalled(at_s);
    const double next_s = cells_ != nullptr ? on_cells_.go_on(gpu, at_s) : run_on_shared(g, at_s);
    ++gpu.version;
    if (stalled) {
      events_.push({gpu.stalled_until_s, EventKind::clock_changes, g, gpu.version});
    } else {
      if (next_s < unbounded_s) events_.push({next_s, EventKind::launch_ends, g, gpu.version});
      if (another && !free_changes_)
        events_.push({std::max(at_s, change_s), EventKind::clock_changes, g, gpu.version});
    }
    if (!options_.phases) return;
    GpuPhase& phase = run_.phases.emplace_back(phase_of(gpu, GpuId{g}, at_s));
    if (cells_ != nullptr) on_cells_.describe(gpu, phase);
  }

  // What runs together goes on at the clock held. @return the next end; unbounded_s in a stall
  [[nodiscard]] double run_on_shared(std::uint32_t g, double at_s) {
    GpuState& gpu = gpus_[g];
    gpu.kernels.clear();
    for (const Running& one : gpu.running) gpu.kernels.push_back(one.kernel);
    std::ranges::sort(gpu.kernels);
    if (gpu.is_stalled(at_s)) {
      gpu.sharing = standing_still(gpu);
      return unbounded_s;
    }
    gpu.sharing = &simulator_.gpu_at(gpu.held.clock, throttle_of(g)).at(gpu.kernels);
    double next_s = unbounded_s;
    for (const Running& one : gpu.running) {
      if (!one.holds) next_s = std::min(next_s, at_s + left_[one.activity] / rate(g, one.kernel));
    }
    return next_s;
  }

  [[nodiscard]] const Sharing* standing_still(GpuState& gpu) const {
    gpu.stall.launches_per_s.assign(gpu.running.size(), 0.0);
    gpu.stall.active_w.assign(gpu.running.size(), 0.0);
    gpu.stall.core_mhz =
        effective_core_mhz(simulator_.model_->spec(), simulator_.clocks_[index(gpu.held.clock)]);
    return &gpu.stall;
  }

  // The GPU of an activity on a stream. (Returning an optional, only to be read, costs time.)
  [[nodiscard]] std::uint32_t gpu_of(const Activity& activity) const {
    assert(activity.stream.has_value());
    return graph_.streams()[*activity.stream].gpu.value;
  }

  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
  static constexpr double unbounded_s = std::numeric_limits<double>::infinity();

  GraphSimulator& simulator_;
  const ExecutionGraph& graph_;
  const LaunchCells* cells_;
  const GraphPlan& plan_;
  GraphRunOptions options_;
  bool free_changes_;
  std::vector<double>& left_;          // work left of each launch, in launches of the model
  std::vector<std::uint32_t>& waits_;  // arcs each activity still waits for
  std::size_t ended_ = 0;              // activities
  std::vector<double>& ready_s_;
  std::vector<std::vector<std::uint32_t>>&
      order_;  // launches of each GPU where clocks are asked ahead
  std::vector<GpuState> gpus_;
  std::unordered_set<std::uint32_t> late_;  // launches that waited for their clock
  EventQueue events_;
  GraphTransfers transfers_;
  GraphRun run_;
  CellLaunches on_cells_;
};

}  // namespace rubato
