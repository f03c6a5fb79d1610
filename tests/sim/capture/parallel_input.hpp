#pragma once
// Steps of parallel training for tests: a small model on a cluster of one link.

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "sim/capture/parallel_step.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

inline constexpr double fast = 1e9, usual = 50.0, slow = 1e-3;  // GB/s

/// gpt3-small with llm.c's kernels, batch 4, on 64 GPUs, all in one node.
inline ParallelStepInput parallel_input(double bus_gbs) {
  ParallelStepInput input{.shape = {.model = load_model_shape("gpt3-small"),
                                    .batch = 4,
                                    .seq = 1024,
                                    .kernels = KernelStyle::llm_c,
                                    .optimizer = false},
                          .spec = load_gpu_spec("a100-sxm4-80gb")};
  input.spec.cluster = ClusterSpec{.name = "made-up",
                                   .title = "made up",
                                   .gpus_per_node = 64,
                                   .nodes = 1,
                                   .inside = {LinkKind::nvlink, bus_gbs, "made up", 1e-9},
                                   .between = {},
                                   .in_switch_gbs = {}};
  return input;
}

/// The same in pipeline stages.
inline ParallelStepInput staged_input(double bus_gbs, std::uint32_t stages,
                                      std::uint32_t microbatches) {
  ParallelStepInput input = parallel_input(bus_gbs);
  input.pipeline.stages = stages;
  input.pipeline.microbatches = microbatches;
  return input;
}

/// A GPT of another width.
inline void widen(ModelShape& model, std::uint64_t hidden) {
  model.hidden = hidden;
  model.ffn = 4 * hidden;
}

/// Launches of kernels with that name, of a stage.
inline std::size_t count_launches(const Capture& stage, std::string_view kernel) {
  std::size_t count = 0;
  for (const CapturedLaunch& launch : stage.launches)
    count += stage.kernels[index(launch.kernel)].name == kernel ? 1U : 0U;
  return count;
}

/// Of collectives of a kind that a stage launches, bytes and launches.
struct Sent {
  double bytes = 0.0;
  std::size_t launches = 0;
};
/// @param prefix  of the kernels' names
inline Sent sent(const Capture& stage, CollectiveKind kind, std::string_view prefix = {}) {
  Sent sum;
  for (const CapturedLaunch& launch : stage.launches) {
    const Kernel& kernel = stage.kernels[index(launch.kernel)];
    const auto& collective = kernel.collective;
    if (!collective || collective->kind != kind || !kernel.name.starts_with(prefix)) continue;
    sum.bytes += collective->message_bytes;
    ++sum.launches;
  }
  return sum;
}

/// The stages' captures say what waits for what, and take as long as the step.
inline void expect_read_as_made(const ParallelStep& step, double tolerance = 0.005) {
  const CaptureGraph made = capture_graph(std::span(step.stages));
  for (const std::uint64_t inferred : made.graph.count_arcs().inferred) EXPECT_EQ(inferred, 0U);
  EXPECT_TRUE(made.ranks.notes.empty());
  std::vector<double> durations, starts(made.graph.size());
  for (const Activity& activity : made.graph.activities()) durations.push_back(activity.duration_s);
  EXPECT_NEAR(earliest_starts(made.graph, durations, starts) / step.times.step_s, 1.0, tolerance);
}

/// How long a launch of a kernel takes alone; of a message its shortest launch.
inline double time_of(const Capture& stage, std::string_view kernel) {
  double least_s = 1e9;
  for (const CapturedLaunch& launch : stage.launches)
    if (stage.kernels[index(launch.kernel)].name == kernel)
      least_s = std::min(least_s, static_cast<double>(launch.duration_ns) * s_per_ns);
  return least_s;
}

}  // namespace rubato
