#include "explorer/pipeline/plan_file.hpp"

#include <cmath>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// A mean of equal clocks may differ from them in the last digits; the hardware takes whole MHz.
double shown_mhz(double mhz) {
  constexpr double rounding_mhz = 1e-3;
  const double whole = std::round(mhz);
  return std::abs(mhz - whole) <= rounding_mhz ? whole : mhz;
}

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

Json kernels_of(const PipelinePass& pass, const PipelineShape& shape, std::size_t option,
                const std::vector<KernelClocks>& kernel_clocks) {
  Json list = Json::array();
  for (const std::size_t entry : clocks_entries(pass, shape, kernel_clocks.size())) {
    const KernelClocks& clocks = kernel_clocks[entry];
    for (std::size_t k = 0; k < clocks.kernels.size(); ++k)
      list.push_back({{"kernel", clocks.kernels[k]}, {"clock", clocks.clock_of_kernel[option][k]}});
  }
  return {
      {"pass", name_of(pass.kind)}, {"chunk", pass.chunk}, {"option", option}, {"clocks", list}};
}

Json stage_json(const PipelineWork& work, const PipelinePlan& plan, const std::vector<PassId>& row,
                const std::vector<KernelClocks>& kernel_clocks) {
  Json passes = Json::array(), kernels = Json::array();
  std::set<std::tuple<std::uint32_t, PassKind, std::size_t>> listed;
  for (const PassId id : row) {
    const PipelinePass& pass = work.schedule.passes[index(id)];
    const std::size_t o = index(plan.option_of_pass[index(id)]);
    const ClockOption& option = work.type_of(id).options[o];
    // Where kernels have different clocks, the option's are means that nothing runs at.
    const bool shared = share_a_clock(pass, work.schedule.shape, o, kernel_clocks);
    const auto clock = [&](double mhz) {
      return shared && mhz > 0.0 ? Json(shown_mhz(mhz)) : Json();
    };
    passes.push_back({{"pass", name_of(pass.kind)},
                      {"microbatch", pass.microbatch},
                      {"chunk", pass.chunk},
                      {"option", o},
                      {"core_mhz", clock(option.core_mhz)},
                      {"mem_mhz", clock(option.mem_mhz)}});
    if (option.power_limit_w > 0.0) passes.back()["power_limit_w"] = option.power_limit_w;
    if (kernel_clocks.empty() || !listed.emplace(pass.chunk, pass.kind, o).second) continue;
    kernels.push_back(kernels_of(pass, work.schedule.shape, o, kernel_clocks));
  }
  Json stage{{"stage", work.schedule.passes[index(row.front())].stage}, {"passes", passes}};
  if (!kernel_clocks.empty()) stage["kernels"] = kernels;
  return stage;
}

}  // namespace

PlanVerdict applicable(const PipelineWork& work, const PipelinePlan& plan, const PipelineRun& run,
                       const std::vector<KernelClocks>& kernel_clocks,
                       const SwitchModel& switching) {
  std::vector<AppliedTarget> targets;
  for (const std::vector<PassId>& row : work.schedule.rows()) {
    AppliedTarget& target =
        targets.emplace_back(AppliedTarget{fmt::format("stage {}", targets.size()), {}});
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

std::string pipeline_plan_json(const PipelineWork& work, std::span<const PipelineResult> plans,
                               const std::vector<KernelClocks>& kernel_clocks) {
  Json file{{"schema", 1}, {"kind", "pipeline_plan"}, {"plans", Json::array()}};
  const auto rows = work.schedule.rows();
  for (const PipelineResult& result : plans) {
    if (!result.found()) continue;
    Json stages = Json::array();
    for (const auto& row : rows) {
      stages.push_back(stage_json(work, result.plan, row, kernel_clocks));
    }
    file["plans"].push_back(
        {{"deadline_s", result.deadline_s},
         {"time_s", result.run.time_s},
         {"energy_j", result.energy_j},
         {"applicable", result.verdict.applicable},
         {"because", result.verdict.applicable ? Json() : Json(result.verdict.because)},
         {"stages", stages}});
  }
  return json_text(file, 1) + "\n";
}

}  // namespace rubato
