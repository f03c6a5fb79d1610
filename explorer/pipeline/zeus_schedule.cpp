#include "explorer/pipeline/zeus_schedule.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

namespace {

void check_pass(const PipelinePass& pass, const ClockOption& option) {
  if (pass.kind != PassKind::forward && pass.kind != PassKind::backward) {
    throw UsageError(
        fmt::format("Zeus schedules hold forward and backward passes; found {}", describe(pass)),
        {.in = {}, .hint = "schedules gpipe, 1f1b and interleaved have no other"});
  }
  if (option.mem_mhz != 0.0 || option.core_mhz != std::round(option.core_mhz)) {
    throw UsageError(
        fmt::format("Zeus sets core clocks in whole MHz; {} runs at {} MHz, memory at {}",
                    describe(pass), option.core_mhz, option.mem_mhz),
        {.in = {}, .hint = "plan from a measured profile"});
  }
}

}  // namespace

std::string zeus_schedule(const PipelineWork& work, const PipelinePlan& plan,
                          const PipelineRun& run) {
  std::string text = "[\n";
  for (const auto& row : work.schedule.rows()) {
    text += "    [";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const PipelinePass& pass = work.schedule.passes[index(row[i])];
      const ClockOption& option =
          work.type_of(row[i]).options[index(plan.option_of_pass[index(row[i])])];
      check_pass(pass, option);
      text +=
          fmt::format("{}('{}', {:.0f})", i > 0 ? ", " : "", name_of(pass.kind), option.core_mhz);
    }
    text += "],\n";
  }
  text += "]\n";
  text += fmt::format("# Iteration time: {} s\n# Energy of one GPU per stage: {} J\n", run.time_s,
                      run.energy_j);
  return text;
}

std::string zeus_file_name(std::size_t number) {
  return fmt::format("freqs_pipeline_{:05d}.py", number);
}

}  // namespace rubato
