#pragma once
// What plans of a pipeline set, kernel by kernel.

#include <vector>

#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// The clock of every kernel under the options that plans use, and the microbatches that use them.
[[nodiscard]] OutputTable stage_kernels_table(const PipelineWork& work,
                                              const std::vector<PipelineResult>& plans,
                                              const std::vector<KernelClocks>& kernel_clocks);

}  // namespace rubato
