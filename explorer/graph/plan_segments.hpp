#pragma once
// The clocks that a plan asks of each GPU over time, in the order of a run: what a plan file plays.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/graph/simulator.hpp"

namespace rubato {

/// A stretch of one GPU with one clock in force, within one pass of one step.
struct PlanSegment {
  GpuId gpu;
  std::optional<std::uint32_t> step;  ///< into the capture's steps
  Pass pass = Pass::unknown;          ///< unknown only where no launch of the step is known
  ClockId clock;                      ///< asked for
  double start_s = 0.0;
  double time_s = 0.0;            ///< until the next segment of the GPU, gaps included
  double energy_j = 0.0;          ///< of the launches that start in it
  std::uint64_t launches = 0;     ///< that start in it, > 0
  KernelId first_kernel;          ///< of the first launch
  std::uint64_t first_index = 0;  ///< its number among launches of that kernel in its step and pass
};

/// Cuts a run where a GPU's clock changes and where its main stream begins another pass or step.
/// Launches that no range of the capture names belong to the pass before them.
/// @param run  of the model, with its phases. Without them it is cut into passes alone, and their
///             clocks mean nothing
/// @return by GPU, then by time
[[nodiscard]] std::vector<PlanSegment> plan_segments(const GraphModel& model, const GraphRun& run);

}  // namespace rubato
