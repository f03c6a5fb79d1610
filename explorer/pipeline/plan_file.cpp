#include "explorer/pipeline/plan_file.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

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

std::string with_limit(std::string label, double limit_w) {
  return limit_w > 0.0 ? fmt::format("{}, {} W", label, format_number(limit_w)) : label;
}

// Collects what the plans of one pipeline say.
class PipelineFile {
 public:
  explicit PipelineFile(PipelineFileInput input) : input_(std::move(input)) {
    const PipelineShape& shape = input_.work.schedule.shape;
    file_.run = std::move(input_.run);
    file_.run.kind = "pipeline";
    file_.run.gpus = shape.stages;
    file_.run.stages = shape.stages;
    file_.run.default_time_s = input_.baseline.time_s;
    file_.run.default_energy_j = boards_j(input_.baseline.energy_j, input_.baseline.time_s);
    file_.run.host_power_w = input_.work.host_power_w;
    if (input_.spec != nullptr)
      file_.gpu = plan_file_spec(input_.spec->name, input_.spec, input_.spec->power_limit.limit_w);
    file_.switching = plan_file_switching(input_.switching, input_.spec);
  }

  void add(const PipelineResult& result, PlanRole role) {
    const PipelineRun& base = input_.baseline;
    PlanFilePlan plan{
        .role = role,
        .granularity = std::string(name_of(result.granularity)),
        .goal = result.goal ? plan_file_goal(name_of(*result.goal)) : "energy",
        .verdict = result.verdict,
        .promise = {.time_s = result.run.time_s,
                    .energy_j = boards_j(result.energy_j, result.run.time_s),
                    .time = {.value_pct = change_pct(result.run.time_s, base.time_s)},
                    .energy = {.value_pct = boards_change_pct(result.energy_j, result)},
                    .gap_pct = percent * result.gap_frac,
                    .clock_changes = static_cast<std::int64_t>(result.run.clock_switches)}};
    if (!result.goal) plan.slack_pct = percent * (result.deadline_s / base.time_s - 1.0);
    if (result.odds_in_time) plan.promise.odds_in_time_pct = percent * *result.odds_in_time;
    if (file_.run.host_power_w == 0.0 && !result.goal)
      plan.promise.lower_bound_j = result.lower_bound_j;
    if (result.interval) {
      const auto energy_j = [&](double pct) { return (1.0 + pct / percent) * base.energy_j; };
      plan.promise.time.low_pct = result.interval->time.low_pct;
      plan.promise.time.high_pct = result.interval->time.high_pct;
      plan.promise.energy.low_pct =
          boards_change_pct(energy_j(result.interval->energy.low_pct), result);
      plan.promise.energy.high_pct =
          boards_change_pct(energy_j(result.interval->energy.high_pct), result);
    }
    for (const std::vector<PassId>& row : input_.work.schedule.rows())
      plan.gpus.push_back(stage(result, row, role, plan.gpus.size()));
    file_.plans.push_back(std::move(plan));
  }

  [[nodiscard]] PlanFile take() { return std::move(file_); }

 private:
  [[nodiscard]] double boards_j(double energy_j, double time_s) const {
    const double stages = input_.work.schedule.shape.stages;
    return energy_j - stages * input_.work.host_power_w * time_s;
  }

  // Both ends of an interval are taken at the plan's own time.
  [[nodiscard]] double boards_change_pct(double energy_j, const PipelineResult& result) const {
    return change_pct(boards_j(energy_j, result.run.time_s), file_.run.default_energy_j);
  }

  PlanFileGpu stage(const PipelineResult& result, const std::vector<PassId>& row, PlanRole role,
                    std::size_t position) {
    const PipelineWork& work = input_.work;
    const std::int64_t number = work.schedule.passes[index(row.front())].stage;
    PlanFileGpu gpu{.label = fmt::format("stage {}", number), .stage = number};
    std::vector<std::tuple<std::uint32_t, PassKind, std::size_t>> listed;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const PipelinePass& pass = work.schedule.passes[index(row[k])];
      const TimedPass& timed = result.run.passes[index(row[k])];
      const double next_s = k + 1 < row.size()
                                ? result.run.passes[index(row[k + 1])].start_s
                                : result.run.time_s + result.run.passes[index(row.front())].start_s;
      const double time_s = next_s - timed.start_s;
      const double waits_s = time_s - (timed.end_s - timed.start_s);
      const std::size_t option = index(result.plan.option_of_pass[index(row[k])]);
      PlanFileSegment& segment = gpu.segments.emplace_back(PlanFileSegment{
          .pass = std::string(name_of(pass.kind)),
          .microbatch = pass.microbatch,
          .chunk = pass.chunk,
          .time_s = time_s,
          .energy_j =
              timed.energy_j + work.blocked_power_w * waits_s - work.host_power_w * time_s});
      // Where kernels have different clocks, the option's are means that nothing runs at.
      if (share_a_clock(pass, work.schedule.shape, option, input_.kernel_clocks)) {
        segment.clock =
            file_.clock_id(clock_of(pass, work.type_of(row[k]).options[option], option));
      }
      if (kernels_of(pass).empty()) continue;
      const std::tuple key{pass.chunk, pass.kind, option};
      const auto known = std::ranges::find(listed, key);
      segment.choice = known - listed.begin();
      if (known != listed.end()) continue;
      listed.push_back(key);
      if (role == PlanRole::answer) add_kernels(pass, option, position, segment);
    }
    return gpu;
  }

  // Entries of the model's kernel clocks; empty: a measured pass, or one without kernels.
  [[nodiscard]] std::vector<std::size_t> kernels_of(const PipelinePass& pass) const {
    if (input_.kernel_clocks.empty()) return {};
    return clocks_entries(pass, input_.work.schedule.shape, input_.kernel_clocks.size());
  }

  [[nodiscard]] PlanFileClock clock_of(const PipelinePass& pass, const ClockOption& option,
                                       std::size_t chosen) const {
    const auto given = [](double value) {
      return value > 0.0 ? std::optional(shown_mhz(value)) : std::nullopt;
    };
    PlanFileClock clock;
    if (input_.kernel_clocks.empty()) {
      clock.mem_mhz = given(option.mem_mhz);
      clock.core_mhz = given(option.core_mhz);
      clock.label = fmt::format("{}/{}", clock.mem_mhz ? format_number(*clock.mem_mhz) : "auto",
                                clock.core_mhz ? format_number(*clock.core_mhz) : "auto");
    } else {
      // Passes without kernels, such as the reduction of embeddings, have the options of others.
      const std::vector<std::size_t> entries = kernels_of(pass);
      const KernelClocks& clocks = input_.kernel_clocks[entries.empty() ? 0 : entries.front()];
      const std::string& label = clocks.clock_of_kernel[chosen].front();
      clock = plan_file_clock(label.substr(0, label.find(',')), input_.spec);
    }
    clock.power_limit_w = given(option.power_limit_w);
    clock.label = with_limit(clock.label, option.power_limit_w);
    return clock;
  }

  void add_kernels(const PipelinePass& pass, std::size_t option, std::size_t gpu,
                   const PlanFileSegment& segment) {
    for (const std::size_t entry : kernels_of(pass)) {
      const KernelClocks& clocks = input_.kernel_clocks[entry];
      for (std::size_t k = 0; k < clocks.kernels.size(); ++k) {
        const PlanFileClock own = plan_file_clock(clocks.clock_of_kernel[option][k], input_.spec);
        file_.kernels.push_back({.gpu = gpu,
                                 .pass = segment.pass,
                                 .name = clocks.kernels[k],
                                 .choice = segment.choice,
                                 .clock = segment.clock ? *segment.clock : file_.clock_id(own)});
      }
    }
  }

  PipelineFileInput input_;
  PlanFile file_;
};

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
                                       .core_mhz = option.core_mhz,
                                       .power_limit_w = option.power_limit_w}});
    }
  }
  return applicable(targets, switching);
}

PlanFile pipeline_plan_file(PipelineFileInput input, std::span<const PipelineResult* const> plans) {
  PipelineFile file(std::move(input));
  for (const PipelineResult* plan : plans) {
    file.add(*plan, plan == plans.front()                             ? PlanRole::answer
                    : plan->granularity != plans.front()->granularity ? PlanRole::coarser
                                                                      : PlanRole::slower);
  }
  return file.take();
}

}  // namespace rubato
