#include "explorer/pipeline/applied_stages.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace rubato {

bool share_a_clock(const PipelinePass& pass, const PipelineShape& shape, std::size_t option,
                   const std::vector<KernelClocks>& kernel_clocks) {
  std::set<std::string_view> clocks;
  if (kernel_clocks.empty()) return true;
  for (const std::size_t entry : clocks_entries(pass, shape, kernel_clocks.size())) {
    const std::vector<std::string>& of_kernels = kernel_clocks[entry].clock_of_kernel[option];
    clocks.insert(of_kernels.begin(), of_kernels.end());
  }
  return clocks.size() <= 1;
}

PlanVerdict applicable(const PipelineWork& work, const PipelinePlan& plan, const PipelineRun& run,
                       const std::vector<KernelClocks>& kernel_clocks,
                       const SwitchModel& switching) {
  std::vector<AppliedTarget> targets;
  for (const std::vector<PassId>& row : work.schedule.rows()) {
    AppliedTarget& target = targets.emplace_back(fmt::format("stage {}", targets.size()));
    for (std::size_t k = 0; k < row.size(); ++k) {
      const OptionId chosen = plan.option_of_pass[index(row[k])];
      if (!share_a_clock(work.schedule.passes[index(row[k])], work.schedule.shape, index(chosen),
                         kernel_clocks)) {
        return {false,
                fmt::format("{}: clocks differ within a pass, and what those changes take is "
                            "not counted",
                            target.label)};
      }
      const ClockOption& option = work.type_of(row[k]).options[index(chosen)];
      const double begin_s = run.passes[index(row[k])].start_s;
      const double end_s = k + 1 < row.size() ? run.passes[index(row[k + 1])].start_s
                                              : run.time_s + run.passes[index(row[0])].start_s;
      target.step.push_back({.time_s = end_s - begin_s,
                             .clock = {.mem = id_at<MemStateId>(
                                           static_cast<std::size_t>(std::lround(option.mem_mhz))),
                                       .core_mhz = option.core_mhz},
                             .power_limit_w = option.power_limit_w});
    }
  }
  return applicable(targets, switching);
}

}  // namespace rubato
