#include "sim/graph/replay_state.hpp"

#include <algorithm>

namespace rubato {

void book_stall(GpuTotals& totals, const GpuState& gpu, double stall_s) {
  totals.stalled_s += stall_s;
  totals.switch_energy_j += stall_s * gpu.stall.idle_w;
}

void book_shared(const GpuState& gpu, double passed_s, std::vector<double>& left,
                 std::vector<double>& energy_j, GpuTotals& totals) {
  const Sharing& now = *gpu.sharing;
  const double idle_share_w = now.idle_w / std::max(1.0, static_cast<double>(gpu.running.size()));
  for (const Running& one : gpu.running) {
    const auto at = std::ranges::lower_bound(gpu.kernels, one.kernel) - gpu.kernels.begin();
    const auto k = static_cast<std::size_t>(at);
    if (!one.holds) {
      double& left_here = left[one.activity];
      left_here = std::max(left_here - now.launches_per_s[k] * passed_s, 0.0);
    }
    energy_j[one.activity] += passed_s * (now.active_w[k] + idle_share_w);
  }
  totals.energy_j += now.power_w() * passed_s;
  if (!gpu.running.empty()) totals.busy_s += passed_s;
  if (now.power_limited) totals.power_limited_s += passed_s;
}

GpuPhase phase_of(const GpuState& gpu, GpuId id, double at_s) {
  GpuPhase phase{.start_s = at_s,
                 .gpu = id,
                 .running = static_cast<std::uint32_t>(gpu.running.size()),
                 .clock = gpu.held.clock};
  if (gpu.sharing == nullptr) return phase;
  phase.power_w = gpu.sharing->power_w();
  phase.core_mhz = gpu.sharing->core_mhz;
  phase.power_limited = gpu.sharing->power_limited;
  return phase;
}

std::vector<std::vector<std::uint32_t>> launches_of_gpus(const ExecutionGraph& graph) {
  std::vector<std::vector<std::uint32_t>> launches(graph.gpus().size());
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (activity.kind == ActivityKind::launch) launches[graph.gpu_of(activity)->value].push_back(i);
  }
  return launches;
}

std::vector<HeldClock> asked_clocks(const ExecutionGraph& graph,
                                    std::span<const std::uint32_t> main,
                                    std::span<const double> work, const GraphPlan& plan,
                                    RunEnd end) {
  std::vector<HeldClock> clocks(graph.gpus().size());
  for (std::size_t g = 0; g < plan.timed.size(); ++g)
    clocks[g].clock = (end == RunEnd::first ? plan.timed[g].front() : plan.timed[g].back()).clock;
  if (!plan.timed.empty()) return clocks;
  std::vector<int> known(clocks.size(), 0);  // a clock from: 1 any stream, 2 the main one
  const bool only_main = end == RunEnd::last || plan.only_main_streams_ask;
  const int best = only_main ? 2 : 1;
  // From that end of the run on, until no GPU's clock can still change.
  std::size_t open = clocks.size();
  for (std::size_t k = 0; k < graph.size() && open > 0; ++k) {
    const std::size_t i = end == RunEnd::first ? k : graph.size() - 1 - k;
    const Activity& activity = graph.activities()[i];
    const auto gpu = graph.gpu_of(activity);
    if (!gpu || (!work.empty() && work[i] <= 0.0)) continue;
    const std::size_t g = index(*gpu);
    const int rank = only_main && activity.stream == main[g] ? 2 : 1;
    if (known[g] >= rank) continue;
    known[g] = rank;
    clocks[g].clock = plan.clock_of_activity[i];
    if (rank == best) --open;
  }
  return clocks;
}

}  // namespace rubato
