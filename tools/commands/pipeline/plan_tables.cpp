#include "tools/commands/pipeline/plan_tables.hpp"

#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "tools/commands/pipeline/subcommands.hpp"

namespace rubato {

OutputTable passes_table(const PipelineWork& work, const std::vector<PipelineResult>& plans) {
  OutputTable table({{"deadline_s", "deadline s", 4},
                     {"stage"},
                     {"pass"},
                     {"chunk"},
                     {"microbatch"},
                     {"core_mhz", "core MHz", 0},
                     {"mem_mhz", "memory MHz", 0},
                     {"power_limit_w", "limit W", 0, !has_power_limits(work)},
                     {"start_s", "start s", 4},
                     {"end_s", "end s", 4},
                     {"energy_j", "energy J", 2},
                     {"power_w", "W", 1},
                     {"critical"},
                     {"switched"}});
  for (const PipelineResult& plan : plans) {
    for (std::size_t i = 0; i < plan.run.passes.size(); ++i) {
      const PipelinePass& pass = work.schedule.passes[i];
      const TimedPass& timed = plan.run.passes[i];
      const ClockOption& option =
          work.type_of(id_at<PassId>(i)).options[index(plan.plan.option_of_pass[i])];
      const auto chosen = [](double value) { return value > 0.0 ? Cell(value) : Cell(); };
      table.add_row({plan.deadline_s, std::int64_t{pass.stage}, std::string(name_of(pass.kind)),
                     std::int64_t{pass.chunk}, std::int64_t{pass.microbatch}, timed.core_mhz,
                     chosen(option.mem_mhz), chosen(option.power_limit_w), timed.start_s,
                     timed.end_s, timed.energy_j, timed.power_w(), timed.critical, timed.switched});
    }
  }
  return table;
}

OutputTable kernels_table(const PipelineWork& work, const std::vector<PipelineResult>& plans,
                          const std::vector<KernelClocks>& kernel_clocks) {
  OutputTable table({{"deadline_s", "deadline s", 4},
                     {"stage"},
                     {"chunk"},
                     {"pass"},
                     {"option"},
                     {"microbatches"},
                     {"kernel"},
                     {"clock"}});
  for (const PipelineResult& plan : plans) {
    // Microbatches by stage, chunk, kind and option.
    std::map<std::tuple<std::uint32_t, std::uint32_t, PassKind, std::size_t>, std::string> users;
    for (std::size_t i = 0; i < plan.plan.option_of_pass.size(); ++i) {
      const PipelinePass& pass = work.schedule.passes[i];
      std::string& list =
          users[{pass.stage, pass.chunk, pass.kind, index(plan.plan.option_of_pass[i])}];
      list += fmt::format("{}{}", list.empty() ? "" : " ", pass.microbatch);
    }
    for (const auto& [key, microbatches] : users) {
      const auto& [stage, chunk, kind, option] = key;
      for (const std::size_t entry :
           clocks_entries({stage, chunk, 0, kind}, work.schedule.shape, kernel_clocks.size())) {
        const KernelClocks& clocks = kernel_clocks[entry];
        for (std::size_t k = 0; k < clocks.kernels.size(); ++k)
          table.add_row({plan.deadline_s, std::int64_t{stage}, std::int64_t{chunk},
                         std::string(name_of(kind)), static_cast<std::int64_t>(option),
                         microbatches, clocks.kernels[k], clocks.clock_of_kernel[option][k]});
      }
    }
  }
  return table;
}

}  // namespace rubato
