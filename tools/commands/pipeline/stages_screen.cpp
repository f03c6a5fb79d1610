#include "tools/commands/pipeline/stages_screen.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/results/answers.hpp"
#include "tools/commands/pipeline/plan_setting.hpp"

namespace rubato {

namespace {

std::string planned_text(const PipelineInput& input, const PipelinePlanner& planner) {
  const PipelineWork& work = planner.work();
  const PipelineRun& base = planner.baseline();
  std::string text = fmt::format(
      "{}: {} and {:.5g} J a step at the {}; no plan is faster than {}, least energy at "
      "about "
      "{}",
      describe(input, work), time_text(base.time_s), base.energy_j, baseline_name(input),
      time_text(planner.least_time_s()), time_text(planner.cheapest_time_s()));
  const std::string all = multiply_note(input, work);
  return all.empty() ? text : text + ". " + all.substr(0, all.size() - 2);
}

std::string rests_on_text(const PipelineInput& input, const LoadedPipeline& loaded,
                          const SwitchModel& switching) {
  std::string text =
      loaded.modelled
          ? "the kernel model of the GPU"
          : "times and energies of the profile, which has no repeats: no interval, no odds";
  text += fmt::format("; a stage that waits draws {:.4g} W", loaded.work.blocked_power_w);
  text += switching.is_free() ? "; switches are taken as free"
                              : fmt::format("; a switch takes {}", change_text(switching));
  return input.host_power_w.value_or(0.0) > 0.0
             ? text + fmt::format("; {} W per GPU for the rest of the node counted",
                                  format_number(*input.host_power_w))
             : text;
}

std::string next_text(const PipelineInput& input, const LoadedPipeline& loaded,
                      const SwitchModel& switching) {
  if (loaded.modelled) return "measure the stages: rubato capture stages, then explore its CSV";
  if (input.gpu.empty() && switching.is_free())
    return "name the GPU (--gpu NAME): the cost of its switches is then counted";
  return switching.guess.empty() ? "" : "how long a switch takes: sudo -E rubato latency";
}

// "870 to 1410 MHz".
std::string range_text(const PipelineRun& run) {
  const auto [low, high] = std::ranges::minmax_element(run.passes, {}, &TimedPass::core_mhz);
  return low->core_mhz == high->core_mhz
             ? fmt::format("{:.0f} MHz", low->core_mhz)
             : fmt::format("{:.0f} to {:.0f} MHz", low->core_mhz, high->core_mhz);
}

std::string setting_of(const PipelineInput& input, const LoadedPipeline& loaded,
                       const PipelinePlanner& planner, const PipelineResult& plan,
                       const std::string& db, const std::string& plan_file) {
  std::string lines = stage_lines(input, planner, plan, loaded);
  if (!lines.empty()) return lines;
  const Goal goal = plan.goal.value_or(LeastWaste{});
  return fmt::format("{}, a clock for each {}; {} switches a step\n{}", range_text(plan.run),
                     plan.granularity == Granularity::kernel ? "kernel of each pass" : "pass",
                     plan.run.clock_switches,
                     play_text(name_of(plan.granularity), goal, db, plan_file));
}

}  // namespace

ShownRun shown_run(const PipelineInput& input, const LoadedPipeline& loaded,
                   const PipelinePlanner& planner, const std::vector<PipelineResult>& plans,
                   double jitter_frac, double odds_frac, const std::string& db,
                   const std::string& plan_file) {
  constexpr std::uint32_t jittered_runs = 200;
  const PipelineRun& base = planner.baseline();
  const SwitchModel switching = switch_model(input);
  ShownRun run{
      .planned = planned_text(input, planner),
      .rests_on = rests_on_text(input, loaded, switching),
      .next = next_text(input, loaded, switching),
      .default_name = baseline_name(input),
      .default_clock = baseline_name(input),
      .defaults = {base.time_s, base.energy_j},
      .gpus = static_cast<double>(planner.work().schedule.shape.stages),
      .odds_frac = odds_frac,
      .marks = marks_of(loaded, highest_clocks(planner.work())),
      .fastest = fmt::format("nothing; no plan is faster than {:.6g} s", planner.least_time_s())};
  for (const PipelineResult& plan : plans) {
    ShownPlan& shown = run.plans.emplace_back();
    shown.as = contender_of(planner, plan);
    shown.goal = asked_goal(planner, plan);
    shown.status = plan.status;
    shown.deadline_s = plan.deadline_s;
    shown.bolder = plan.bolder;
    shown.found = plan.found();
    if (!plan.found()) continue;
    shown.planned = {plan.run.time_s, plan.energy_j};
    shown.interval = plan.interval;
    shown.clock_switches = static_cast<double>(plan.run.clock_switches);
    if (!plan.goal) shown.bound_j = plan.lower_bound_j;
    shown.gap_frac = plan.gap_frac;
    shown.clocks = range_text(plan.run);
    shown.setting = setting_of(input, loaded, planner, plan, db, plan_file);
    shown.marks = marks_of(loaded, plan.plan);
    if (!plan.verdict.applicable)
      shown.marks.push_back({MarkKind::not_applicable, plan.verdict.because});
    if (jitter_frac == 0.0) continue;
    const JitterSummary jittered = simulate_jitter(
        planner.work(), plan.plan,
        {.switching = switching, .disturbance = {.jitter_frac = jitter_frac, .seed = 1}},
        jittered_runs);
    shown.jittered_s = std::pair(jittered.mean_time_s, jittered.p95_time_s);
  }
  return run;
}

}  // namespace rubato
