#include "tools/commands/pipeline/plan_tables.hpp"

#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "tools/commands/pipeline/subcommands.hpp"

namespace rubato {

OutputTable stage_kernels_table(const PipelineWork& work, const std::vector<PipelineResult>& plans,
                                const std::vector<KernelClocks>& kernel_clocks) {
  OutputTable table({{"granularity", "one clock for"},
                     {"deadline_s", "deadline s", 4},
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
          table.add_row({std::string(name_of(plan.granularity)), plan.deadline_s,
                         std::int64_t{stage}, std::int64_t{chunk}, std::string(name_of(kind)),
                         static_cast<std::int64_t>(option), microbatches, clocks.kernels[k],
                         clocks.clock_of_kernel[option][k]});
      }
    }
  }
  return table;
}

}  // namespace rubato
