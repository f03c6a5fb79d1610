#include "tools/commands/plans/capture_screen.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/answers.hpp"
#include "traces/graph/step_clocks.hpp"

namespace rubato {

namespace {

// Only launches that take a clock count.
std::string plan_clocks_text(const GraphExploration& found, const GraphPlanResult& result) {
  std::vector<ClockId> clocks;
  for (const PlanClock& row : plan_clocks(*found.model, result)) clocks.push_back(row.clock);
  return clocks_text(found.planner->grid(), clocks);
}

// The multiple of a tenth of its power of ten that lies outside, to the one side or the other.
double two_digits(double value, double (*outwards)(double)) {
  if (!(value > 0.0)) return 0.0;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1.0);
  return outwards(value / unit) * unit;
}

// "1703 J (no power log; 90 %: 1300 to 1800)": captured times say nothing of absolute power.
std::string energy_text(const GraphRequest& request, const GraphExploration& found) {
  const std::string text = fmt::format("{:.5g} J", found.planner->baseline().total_energy_j);
  const auto range_j = default_energy_range_j(request, found);
  return range_j ? text + fmt::format(" (no power log; 90 %: {:.10g} to {:.10g})",
                                      two_digits(range_j->first, std::floor),
                                      two_digits(range_j->second, std::ceil))
                 : text;
}

std::string planned_text(const GraphExplorationInput& input, const GraphRequest& request,
                         const GraphExploration& found) {
  const GraphRun& baseline = found.planner->baseline();
  const GpuSpec& spec = found.model->spec();
  const ClockGrid& grid = found.planner->grid();
  const std::size_t files = request.files.size(), gpus = found.run->graph.gpus().size();
  std::string text = fmt::format(
      "{}{}, {} GPU{}, on {}, {} W, {} clocks: {} and {} at the default clocks ({}), GPU{} "
      "busy {:.0f} %; captured: {} at {} ({})",
      printable(request.files.front()), files > 1 ? fmt::format(" and {} more", files - 1) : "",
      gpus, gpus == 1 ? "" : "s", spec.title,
      format_number(input.power_limit_w.value_or(spec.power_limit.limit_w)), grid.size(),
      time_text(baseline.span_s), energy_text(request, found),
      clock_words(grid.label(grid.default_clock())), gpus == 1 ? "" : "s",
      percent * busy_share(baseline), time_text(found.captured_span_s), request.captured_clock,
      request.clock_source == ClockSource::gpu_default
          ? "clocks not recorded, the default is assumed: --captured-clock, --power"
          : std::string(name_of(request.clock_source)));
  if (found.model->host_power_w() > 0.0)
    text += fmt::format("; {} W per GPU for the rest of the node counted",
                        format_number(found.model->host_power_w()));
  if (found.undisturbed_span_s)
    text += fmt::format(
        "; slowed as asked, the default clocks take {} longer; every change is against that",
        time_text(baseline.span_s - *found.undisturbed_span_s));
  return text;
}

std::string rests_on_text(const GraphExploration& found) {
  const GraphCoverage& c = found.coverage;
  const double total_s = std::max(c.total_s(), 1e-12);
  std::string text =
      "times of kernels: " +
      shares_text({{percent * c.measured_s / total_s, "measured"},
                   {percent * c.anchored_s / total_s, "anchored (captured time, modelled split)"},
                   {percent * c.guessed_split_s / total_s, "of it with a guessed split"},
                   {percent * c.fixed_s / total_s, "independent of clocks"}});
  const SwitchModel& switching = *found.planner->switching();
  text += switching.is_free() ? "; switches are free, as asked for"
                              : fmt::format("; a switch takes {}", change_text(switching));
  if (found.host_time_factor < 1.0)
    text += fmt::format("; the host takes {:.2f} times its captured time, for --step-time",
                        found.host_time_factor);
  constexpr double worth_saying = 0.5;
  const double off_pct = change_pct(found.reproduced_span_s, found.captured_span_s);
  if (std::abs(off_pct) > worth_saying && found.host_time_factor == 1.0)
    text += fmt::format("; its graph takes {} % of the captured time", format_signed(off_pct, 1));
  return text;
}

// The clock of each GPU, where each has one; else empty.
std::vector<TargetClock> clock_of_each_gpu(const GraphExploration& found,
                                           const GraphPlanOutcome& plan) {
  std::map<GpuId, std::set<ClockId>> clocks;
  for (const PlanClock& row : plan_clocks(*found.model, plan.result))
    clocks[row.gpu].insert(row.clock);
  const std::vector<GraphGpu>& gpus = found.run->graph.gpus();
  const bool by_rank =
      std::ranges::adjacent_find(gpus, {}, &GraphGpu::rank) == gpus.end() && gpus.size() > 1;
  const auto all = static_cast<std::int64_t>(gpus.size());
  std::vector<TargetClock> targets;
  for (const auto& [id, of_gpu] : clocks) {
    const GraphGpu& gpu = gpus[index(id)];
    if (of_gpu.size() > 1) return {};
    const auto number = static_cast<std::int64_t>(by_rank ? gpu.rank : index(id));
    std::vector<std::int64_t> indices = gpus_of_target(number, 1, all);
    targets.push_back({.kind = indices.empty() ? "rank" : "GPU",
                       .number = number,
                       .gpus = std::move(indices),
                       .clock = found.planner->grid()[*of_gpu.begin()]});
  }
  return targets;
}

std::string setting_of(const GraphExploration& found, const GraphPlanOutcome& plan,
                       const std::string& db, const std::string& plan_file) {
  const GpuSpec& spec = found.model->spec();
  const std::string sms = plan.comm_sms
                              ? fmt::format(
                                    ", collectives beside compute on {} SMs (NCCL_MIN_CTAS and "
                                    "NCCL_MAX_CTAS; what that changes is known of {})",
                                    *plan.comm_sms, CollectiveSharing::measured_in)
                              : "";
  const std::string clocks = plan_clocks_text(found, plan.result);
  const std::vector<TargetClock> targets = clock_of_each_gpu(found, plan);
  const bool one = std::ranges::all_of(
      targets, [&](const TargetClock& target) { return target.clock == targets.front().clock; });
  if (!targets.empty() && one)
    return fmt::format("{}{}\n {}", clock_words(clocks), sms,
                       one_clock_line(spec, targets.front().clock));
  if (!targets.empty())
    return fmt::format("{}{}\n {}", clocks_by_target_text(spec, targets), sms,
                       clocks_by_target_lines(spec, targets));
  const std::string_view grain = name_of(plan.result.question.grain);
  return fmt::format("{}, one per {}{}; {:.2g} switches/s{}\n{}", clocks, grain, sms,
                     changes_per_s(plan.result), plan.counted ? "" : ", taken as free",
                     play_text(grain, plan.asked_goal(), db, plan_file));
}

SavingInterval interval_of(const GraphPlanOutcome& plan) {
  const auto of = [&](double PlanChange::*frac) {
    return Interval{.low_pct = percent * (plan.interval.low.*frac),
                    .median_pct = percent * (plan.change.*frac),
                    .high_pct = percent * (plan.interval.high.*frac)};
  };
  return {.time = of(&PlanChange::time_frac), .energy = of(&PlanChange::energy_frac)};
}

ShownPlan shown_plan(const GraphExploration& found, const GraphPlanOutcome& plan,
                     const std::string& db, const std::string& plan_file) {
  const GraphPlanResult& result = plan.result;
  const GraphRun& base = found.planner->baseline();
  ShownPlan shown{.as = contender_of(found, plan),
                  .goal = plan.asked_goal(),
                  .status = result.status,
                  .found = result.found(),
                  .bolder = plan.bolder,
                  .marks = plan.marks};
  if (!result.found()) return shown;
  shown.planned = {result.run.span_s, result.run.total_energy_j};
  shown.clock_switches = changes_per_s(result) * result.run.span_s;
  if (plan.counted) {
    const CountedChanges& counted = *plan.counted;
    shown.counted = Cost{(1.0 + counted.change.time_frac) * base.span_s,
                         (1.0 + counted.change.energy_frac) * base.total_energy_j};
    shown.clock_switches = static_cast<double>(counted.clock_changes);
    shown.late_launches = static_cast<double>(counted.late_launches);
    shown.stalled_s = counted.stalled_s;
  }
  shown.interval = interval_of(plan);
  if (result.lower_bound_j > 0.0) shown.bound_j = result.lower_bound_j;
  if (result.lower_bound_j > 0.0 || (plan.goal && result.status != SolveStatus::time_limit))
    shown.gap_frac = result.gap_frac;
  shown.clocks = plan_clocks_text(found, result);
  shown.setting = setting_of(found, plan, db, plan_file);
  return shown;
}

}  // namespace

double busy_share(const GraphRun& run) {
  double busy_s = 0.0;
  for (const GpuTotals& gpu : run.gpus) busy_s += gpu.busy_s;
  return busy_s / std::max(run.span_s * static_cast<double>(run.gpus.size()), 1e-12);
}

ShownRun shown_run(const GraphExplorationInput& input, const GraphRequest& request,
                   const GraphExploration& found, const std::string& db,
                   const std::string& plan_file) {
  const GraphRun& base = found.planner->baseline();
  const ClockGrid& grid = found.planner->grid();
  ShownRun run{.planned = planned_text(input, request, found),
               .rests_on = rests_on_text(found),
               .default_clock = grid.label(grid.default_clock()),
               .defaults = {base.span_s, base.total_energy_j},
               .gpus = static_cast<double>(found.run->graph.gpus().size()),
               .odds_frac = found.odds_frac,
               .marks = found.baseline_marks,
               .interrupted = found.interrupted};
  for (const GraphPlanOutcome& plan : found.plans)
    run.plans.push_back(shown_plan(found, plan, db, plan_file));
  return run;
}

}  // namespace rubato
