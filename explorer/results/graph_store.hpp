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

/// What a plan asks of one GPU, in order. Of a capture with several steps it is what the middle one
/// asks, since every step is played like it.
/// @return empty if the plan does not have the GPU
[[nodiscard]] std::vector<StoredSegment> stored_segments(const ResultStore& store,
                                                         std::int64_t plan_id, std::int64_t rank,
                                                         std::int64_t device);

/// Stores a captured run without its plans, in an open transaction.
/// @param asked  by somebody, not by an experiment
/// @return its graph_run_id
std::int64_t store_graph_setting(const SqlConnection& connection, const GraphRequest& request,
                                 const GraphExploration& found, bool asked = false);

/// Stores a plan of a stored captured run. @return its graph_plan_id
std::int64_t store_graph_plan(const SqlConnection& connection, std::int64_t run_id,
                              const GraphExploration& found, const GraphPlanOutcome& outcome);

/// A lower bound: no plan of the run that ends by time_s takes less energy than bound_j.
struct GraphFrontPoint {
  double time_s = 0.0, bound_j = 0.0;
};

/// The lower bound of energy over time, the same whichever plans were asked for. Empty where no
/// plan of several clocks was asked for, and where launches that run at once reach the power limit.
[[nodiscard]] std::vector<GraphFrontPoint> graph_front(const GraphExploration& found);

/// Stores the points of graph_front() that the captured run does not have yet.
void store_graph_front(const SqlConnection& connection, std::int64_t run_id,
                       std::span<const GraphFrontPoint> front);

/// Stores one exploration in the tables graph_*; the database is created where there is none.
/// @return its graph_run_id
/// @throws IoError; nothing is stored then
std::int64_t store_graph_run(const std::filesystem::path& path, const GraphRequest& request,
                             const GraphExploration& found);

}  // namespace rubato
