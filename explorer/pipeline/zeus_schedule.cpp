#include "explorer/pipeline/zeus_schedule.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

namespace {

// A mean of equal clocks may differ from them in the last digits.
constexpr double rounding_mhz = 1e-3;

void check_pass(const PipelinePass& pass, const ClockOption& option, const ClockOption& first) {
  if (pass.kind != PassKind::forward && pass.kind != PassKind::backward) {
    throw UsageError(
        fmt::format("Zeus schedules hold forward and backward passes; found {}", describe(pass)),
        {.in = {}, .hint = "schedules gpipe, 1f1b and interleaved have no other"});
  }
  if (option.power_limit_w != first.power_limit_w) {
    throw UsageError(
        fmt::format("Zeus sets core clocks only; {} has a power limit of {:.0f} W, others "
                    "one of {:.0f} W",
                    describe(pass), option.power_limit_w, first.power_limit_w),
        {.in = {}, .hint = "plan with clocks only, or write --plan-file"});
  }
  if (std::abs(option.mem_mhz - first.mem_mhz) > rounding_mhz) {
    throw UsageError(
        fmt::format(
            "Zeus leaves memory clocks alone; {} runs at memory {:.0f} MHz, others at {:.0f}",
            describe(pass), option.mem_mhz, first.mem_mhz),
        {.in = {},
         .hint =
             "plan with one memory clock (--clocks 'mem=auto core=auto'), or write --plan-file"});
  }
}

}  // namespace

std::string zeus_schedule(const PipelineWork& work, const PipelinePlan& plan,
                          const PipelineRun& run) {
  std::string text = "[\n";
  bool rounded = false;
  const ClockOption& first = work.type_of(PassId{0}).options[index(plan.option_of_pass[0])];
  for (const auto& row : work.schedule.rows()) {
    text += "    [";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const PipelinePass& pass = work.schedule.passes[index(row[i])];
      if (ends_step(pass.kind)) continue;  // after all others; PointSolution knows no such pass
      const ClockOption& option =
          work.type_of(row[i]).options[index(plan.option_of_pass[index(row[i])])];
      check_pass(pass, option, first);
      rounded |= std::abs(option.core_mhz - std::round(option.core_mhz)) > rounding_mhz;
      text +=
          fmt::format("{}('{}', {:.0f})", i > 0 ? ", " : "", name_of(pass.kind), option.core_mhz);
    }
    text += "],\n";
  }
  text += "]\n";
  if (rounded) text += "# Core clocks rounded to whole MHz\n";
  text += fmt::format("# Iteration time: {} s\n# Energy of one GPU per stage: {} J\n", run.time_s,
                      run.energy_j);
  if (first.mem_mhz > 0.0)
    text += fmt::format("# Memory clock, to be set once: {:.0f} MHz\n", first.mem_mhz);
  if (first.power_limit_w > 0.0)
    text += fmt::format("# Power limit, to be set once: {:.0f} W\n", first.power_limit_w);
  return text;
}

std::string zeus_file_name(std::size_t number) {
  return fmt::format("freqs_pipeline_{:05d}.py", number);
}

}  // namespace rubato
