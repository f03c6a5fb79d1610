#pragma once
// Collectives of several ranks while a graph is replayed: from the arrival of the last rank on.

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/graph/replay_state.hpp"

namespace rubato {

/// The transfers of one replay. Each takes the time that the model says for the clocks of its GPUs,
/// and stands still while one of them stalls.
class GraphTransfers {
 public:
  /// All arguments must outlive it.
  GraphTransfers(const GraphSimulator& simulator, const std::vector<GpuState>& gpus,
                 EventQueue& events)
      : simulator_(simulator), graph_(*simulator.graph_), gpus_(gpus), events_(events) {}

  void begin(std::uint32_t i, double at_s) {
    TransferState& transfer = of_activity_[i];
    transfer.begun = true;
    transfer.left_s = transfer.all_s = transfer_s(i);
    transfer.since_s = at_s;
    for (const GraphArc& arc : graph_.arcs_into(ActivityId{i})) {
      const auto gpu = graph_.gpu_of(graph_[arc.from]);
      if (gpu && gpus_[index(*gpu)].is_stalled(at_s)) ++transfer.stalls;
    }
    end_unless_stalled(i, at_s);
  }

  /// Whether an end that was queued is still valid.
  [[nodiscard]] bool ends(const Event& event) const {
    return of_activity_.at(event.what).version == event.version;
  }

  // Times again what is left of the transfers that a GPU takes part in, at its new clock.
  void retime(const GpuState& gpu, double at_s) {
    if (simulator_.cells_ != nullptr || !simulator_.model_->transfers_follow_clocks()) return;
    for (const Running& one : gpu.running) {
      if (!one.holds) continue;
      const std::uint32_t i = simulator_.transfer_of_[one.activity];
      TransferState& transfer = of_activity_[i];
      if (!transfer.begun || transfer.all_s <= 0.0) continue;
      const double all_s = transfer_s(i);
      if (all_s == transfer.all_s) continue;
      if (transfer.stalls == 0) transfer.left_s -= at_s - transfer.since_s;
      transfer.left_s = std::max(transfer.left_s, 0.0) * (all_s / transfer.all_s);
      transfer.all_s = all_s;
      transfer.since_s = at_s;
      ++transfer.version;
      end_unless_stalled(i, at_s);
    }
  }

  // Stops the transfers that a GPU takes part in where its stall begins; else lets them go on.
  void stall(const GpuState& gpu, double at_s, bool begins) {
    for (const Running& one : gpu.running) {
      if (!one.holds) continue;
      const std::uint32_t i = simulator_.transfer_of_[one.activity];
      TransferState& transfer = of_activity_[i];
      if (!transfer.begun) continue;
      if (begins && transfer.stalls++ == 0) {
        transfer.left_s = std::max(transfer.left_s - (at_s - transfer.since_s), 0.0);
        ++transfer.version;
      } else if (!begins && --transfer.stalls == 0) {
        transfer.since_s = at_s;
        end_unless_stalled(i, at_s);
      }
    }
  }

 private:
  // Time of a transfer at the clocks that its GPUs have.
  [[nodiscard]] double transfer_s(std::uint32_t i) const {
    const GraphModel& model = *simulator_.model_;
    if (!model.transfers_follow_clocks()) return model.transfer_s(i);
    double slowest_mhz = model.spec().core.max_mhz;
    for (const GraphArc& arc : graph_.arcs_into(ActivityId{i})) {
      const auto gpu = graph_.gpu_of(graph_[arc.from]);
      if (!gpu) continue;
      const ClockPair held = model.held_clock(
          simulator_.clocks_[index(gpus_[index(*gpu)].held.clock)], model.throttle_of(*gpu));
      slowest_mhz = std::min(slowest_mhz, effective_core_mhz(model.spec(), held));
    }
    return model.transfer_s(i, slowest_mhz);
  }

  void end_unless_stalled(std::uint32_t i, double at_s) {
    const TransferState& transfer = of_activity_.at(i);
    if (transfer.stalls == 0)
      events_.push({at_s + transfer.left_s, EventKind::transfer_ends, i, transfer.version});
  }

  const GraphSimulator& simulator_;
  const ExecutionGraph& graph_;
  const std::vector<GpuState>& gpus_;
  EventQueue& events_;
  std::unordered_map<std::uint32_t, TransferState> of_activity_;
};

}  // namespace rubato
