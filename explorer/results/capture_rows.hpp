#pragma once
// An exploration of captured runs as rows of a result database.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "explorer/graph/exploration.hpp"
#include "explorer/results/run_writer.hpp"

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
  std::string grid = {};                 ///< name or selection of the clocks
  std::optional<std::string> hash = {};  ///< of the files' bytes, where it is known
  std::string disturbance = {};          ///< what goes otherwise than in the capture, in words
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

/// The 90 % interval of the energy at the default clocks, J. Nothing where powers were logged:
/// captured times say nothing of absolute power.
[[nodiscard]] std::optional<std::pair<double, double>> default_energy_range_j(
    const GraphRequest& request, const GraphExploration& found);

/// The run of an exploration. Its lower bound of energy over time is not in it.
[[nodiscard]] RunRows capture_rows(const GraphRequest& request, const GraphExploration& found);

/// A plan of it.
[[nodiscard]] PlanRows capture_plan_rows(const GraphExploration& found,
                                         const GraphPlanOutcome& outcome);

/// All its plans.
[[nodiscard]] std::vector<PlanRows> capture_plans_rows(const GraphExploration& found);

/// No plan takes less energy by a time, the same whichever plans were asked for. Empty where no
/// plan of several clocks was asked for, and where launches that run at once reach the power limit.
[[nodiscard]] std::vector<StoredFrontPoint> capture_front(const GraphExploration& found);

/// Stores one exploration in one transaction; makes the database if there is none. @return run_id
/// @throws IoError; nothing is stored then
std::int64_t store_graph_run(const std::filesystem::path& database, const GraphRequest& request,
                             const GraphExploration& found);

}  // namespace rubato
