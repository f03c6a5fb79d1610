#pragma once
// Explorations of captured runs in a result database.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "explorer/graph/exploration.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// How the clocks of a capture are known.
enum class ClockSource { given, power_log, gpu_default };
[[nodiscard]] std::string_view name_of(ClockSource value) noexcept;

/// What an exploration of a captured run was asked.
struct GraphRequest {
  std::vector<std::string> files;
  std::string captured_clock;  ///< label, memory/core
  ClockSource clock_source = ClockSource::gpu_default;
  std::string command;
};

/// Launches of a plan that share GPU, pass, kernel and clock.
struct PlanClock {
  GpuId gpu;
  Pass pass = Pass::unknown;
  KernelId kernel;
  ClockId clock;
  std::uint64_t launches = 0;
  double time_s = 0.0;  ///< sum over the launches
  double energy_j = 0.0;
};

/// @return in order of GPU, pass, kernel and clock
[[nodiscard]] std::vector<PlanClock> plan_clocks(const GraphModel& model,
                                                 const GraphPlanResult& result);

/// A row of graph_segments.
struct StoredSegment {
  std::string pass, clock;  ///< clock by label
  std::int64_t launches = 0;
  double time_s = 0.0, energy_j = 0.0;
  std::string first_kernel;
  std::int64_t first_index = 0;
};

/// What a plan asks of one GPU in order; of a capture with several steps in the one in the middle,
/// for every step is played like it.
/// @return empty if the plan does not have the GPU, or was stored before schema 8
[[nodiscard]] std::vector<StoredSegment> stored_segments(const ResultStore& store,
                                                         std::int64_t plan_id, std::int64_t rank,
                                                         std::int64_t device);

/// A captured run without its plans, in an open transaction. @return its graph_run_id
std::int64_t store_graph_setting(const SqlConnection& connection, const GraphRequest& request,
                                 const GraphExploration& found);

/// A plan of a stored captured run. @return its graph_plan_id
std::int64_t store_graph_plan(const SqlConnection& connection, std::int64_t run_id,
                              const GraphExploration& found, const GraphPlanOutcome& outcome);

/// No plan of the run takes less energy by a time.
struct GraphFrontPoint {
  double time_s = 0.0, bound_j = 0.0;
};

/// The bound over time, the same whichever plans were asked for; empty where none of several
/// clocks were.
[[nodiscard]] std::vector<GraphFrontPoint> graph_front(const GraphExploration& found);

/// The bound over time of a stored captured run, where it is not there yet.
void store_graph_front(const SqlConnection& connection, std::int64_t run_id,
                       std::span<const GraphFrontPoint> front);

/// One exploration in the tables graph_*; the database is created where there is none.
/// @return its graph_run_id
/// @throws IoError; nothing is stored then
std::int64_t store_graph_run(const std::filesystem::path& path, const GraphRequest& request,
                             const GraphExploration& found);

}  // namespace rubato
