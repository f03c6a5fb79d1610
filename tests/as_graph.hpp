#pragma once
// Pipelines whose passes are kernels of the model of a graph: clocks of pipelines are compared on
// them with clocks of graphs.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/graph_model.hpp"
#include "traces/graph/graph_builder.hpp"
#include "traces/pipeline/profile.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// A GPU for each stage, a launch of a kernel of its own for each pass. `launch` of an activity is
/// its pass.
/// @param time_s     of each pass as captured, shape [passes]
/// @param release_s  no pass starts before; shape [passes], empty: 0
inline ExecutionGraph as_graph(const PipelineSchedule& schedule, std::span<const double> time_s,
                               std::span<const double> release_s = {}) {
  GraphBuilder builder;
  for (std::uint32_t stage = 0; stage < schedule.shape.stages; ++stage)
    builder.add_stream({builder.add_gpu({stage, 0, {}}), 0});
  std::vector<std::vector<Dependency>> into(schedule.passes.size());
  for (const Dependency& one : schedule.dependencies) into[index(one.to)].push_back(one);
  std::vector<DraftId> draft(schedule.passes.size());
  for (const PassId pass : topological_order(schedule)) {
    Kernel kernel;
    kernel.name = kernel.label = "pass " + std::to_string(pass.value);
    kernel.kind = pass.value % 2 == 0 ? KernelClass::gemm : KernelClass::elementwise;
    const double least_s = release_s.empty() ? 0.0 : release_s[index(pass)];
    double start_s = least_s;
    for (const Dependency& one : into[index(pass)])
      start_s = std::max(start_s, builder[draft[index(one.from)]].end_s() + one.lag_s);
    draft[index(pass)] = builder.add({.kind = ActivityKind::launch,
                                      .stream = schedule.passes[index(pass)].stage,
                                      .kernel = builder.add_kernel(kernel),
                                      .rank = schedule.passes[index(pass)].stage,
                                      .launch = pass.value,
                                      .start_s = start_s,
                                      .duration_s = time_s[index(pass)]});
    for (const Dependency& one : into[index(pass)])
      builder.add_arc(draft[index(one.from)], draft[index(pass)], one.lag_s, ArcKind::event);
    if (least_s > 0.0)
      builder.add_arc(GraphBuilder::origin, draft[index(pass)], least_s, ArcKind::release);
  }
  return std::move(builder).build("pipeline").graph;
}

/// The pipeline of such a graph: each pass has an option for each clock of the grid.
/// @pre idle power is that of the first clock at all of them
inline PipelineWork as_pipeline(PipelineSchedule schedule, const GraphModel& model,
                                const ClockGrid& grid) {
  PipelineWork work{.schedule = std::move(schedule),
                    .types = {},
                    .type_of_pass = {},
                    .blocked_power_w = model.idle_power_w(grid[ClockId{0}])};
  work.types.resize(work.schedule.passes.size());
  for (const Activity& activity : model.graph().activities()) {
    if (activity.kind != ActivityKind::launch) continue;
    const PipelinePass& pass = work.schedule.passes[*activity.launch];
    PassType& type = work.types[*activity.launch];
    type = {pass.stage, pass.kind, {}};
    for (const ClockPair& clock : grid.pairs()) {
      const OperatingPoint point = model.evaluate(activity.kernel, clock);
      type.options.push_back({.core_mhz = clock.core_mhz.value_or(model.spec().core.max_mhz),
                              .time_s = point.time_s,
                              .energy_j = point.energy_j,
                              .mem_mhz = model.spec().mem_states[index(clock.mem)].mem_mhz});
    }
  }
  for (std::size_t i = 0; i < work.types.size(); ++i)
    work.type_of_pass.push_back(id_at<PassTypeId>(i));
  return work;
}

/// Idle power that no clock changes, which is what pipelines know of it.
inline GpuSpec with_steady_idle_power(GpuSpec spec) {
  spec.shared.leakage_w = 0.0;
  spec.shared.clock_w_per_mhz = 0.0;
  spec.waiting.reset();
  return spec;
}

}  // namespace rubato
