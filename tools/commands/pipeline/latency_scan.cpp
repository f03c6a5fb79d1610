// rubato pipeline latency-scan: what changes of clock leave of a saving.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/drawing/latency.hpp"

namespace rubato {

namespace {

struct LatencyOptions {
  PipelineInput input;
  std::vector<double> latencies_us{1, 10, 100, 1000, 10'000, 100'000, 500'000};
  std::vector<double> slacks_pct{0};
  OutputFormat format = OutputFormat::table;
};

// The latency is a stall. With `ahead` changes are asked for before the pass: the latency is a
// lead, in which kernels run on.
SwitchModel switching_at(const LatencyOptions& o, double latency_s, bool ahead) {
  SwitchModel switching = switch_model(o.input.switching, {});
  (ahead ? switching.core.lead_s : switching.core.stall_s) = latency_s;
  return switching;
}

void check(const LatencyOptions& o) {
  const SwitchModel given = switch_model(o.input.switching, {});
  if (asks_for_spec(o.input.switching) || given.core.latency_s() > 0.0) {
    throw UsageError("latency-scan sets latency and stall itself",
                     {.in = {}, .hint = "--latencies-us lists them"});
  }
  for (const double latency_us : o.latencies_us) {
    if (latency_us >= 0.0 && std::isfinite(latency_us)) continue;
    throw UsageError(
        fmt::format("--latencies-us has {}; expected numbers >= 0", format_number(latency_us)));
  }
}

// Both plans at one latency: waited out, and asked for ahead of time.
using PlansAtLatency = std::array<PipelineResult, 2>;

// A plan that ends in time with long changes of clock does so with short ones. One that ends in
// time and waits for its changes does so without waiting. So plans are made from the longest
// latency on, and an earlier plan is kept where it is cheaper than the one made there.
std::vector<PlansAtLatency> plans_for(const LatencyOptions& o, const PipelineWork& work,
                                      double deadline_s, const RunContext& context) {
  std::vector<std::size_t> longest_first(o.latencies_us.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::ranges::sort(longest_first, std::greater(),
                    [&](std::size_t i) { return o.latencies_us[i]; });
  std::vector<PlansAtLatency> plans(o.latencies_us.size());
  std::vector<PipelinePlan> known;
  for (const std::size_t i : longest_first) {
    for (const bool ahead : {false, true}) {
      PlannerOptions options = planner_options(o.input);
      options.switching = switching_at(o, o.latencies_us[i] / us_per_s, ahead);
      const PipelinePlanner planner(work, options, context);
      PipelineResult plan = planner.plan({&deadline_s, 1}, AfterEnd::go_on, context).front();
      for (const PipelinePlan& other : known) plan = planner.cheaper_of(std::move(plan), other);
      if (plan.found()) known.push_back(plan.plan);
      plans[i][ahead ? 1 : 0] = std::move(plan);
    }
  }
  return plans;
}

std::vector<Cell> row_of(const LatencyOptions& o, const PlansAtLatency& plans,
                         const PipelineRun& base, double slack_pct, double latency_us,
                         const std::optional<PipelineIntervals>& intervals,
                         std::vector<LatencySaving>& savings) {
  std::vector<Cell> row{slack_pct, latency_us, time_text(latency_us / us_per_s)};
  for (const bool ahead : {false, true}) {
    const SwitchModel switching = switching_at(o, latency_us / us_per_s, ahead);
    const PipelineResult& plan = plans[ahead ? 1 : 0];
    if (!plan.found()) {
      row.resize(row.size() + 6);
      continue;
    }
    savings.push_back(
        {latency_us, !ahead, change_pct(plan.energy_j, base.energy_j),
         energy_interval(intervals, plan.plan,
                         {.against = nullptr, .until_vs_default = {}, .switching = &switching})});
    row.emplace_back(savings.back().energy_change_pct);
    add_interval(row, savings.back().interval);
    row.emplace_back(percent * plan.gap_frac);
    row.emplace_back(static_cast<std::int64_t>(plan.run.clock_switches));
  }
  return row;
}

ExitStatus run_sweep(const LatencyOptions& o, const RunContext& context) {
  check(o);
  const LoadedPipeline loaded = load_pipeline(o.input);
  const PipelineWork& work = loaded.work;
  const auto intervals = intervals_of(loaded, {});
  const PipelineRun base = simulate(work, highest_clocks(work));
  OutputTable table({{"slack_pct", "slack %", 2, o.slacks_pct.size() == 1},
                     {.key = "latency_us", .for_programs = true},
                     {.key = "latency", .for_people = true},
                     {"stall_energy_change_pct", "stalls, energy %", 2},
                     {.key = "stall_energy_change_low_pct", .for_programs = true},
                     {.key = "stall_energy_change_high_pct", .for_programs = true},
                     range_column(intervals.has_value()),
                     {"stall_gap_pct", "gap %", 2},
                     {"stall_changes", "changes"},
                     {"ahead_energy_change_pct", "ahead, energy %", 2},
                     {.key = "ahead_energy_change_low_pct", .for_programs = true},
                     {.key = "ahead_energy_change_high_pct", .for_programs = true},
                     range_column(intervals.has_value()),
                     {"ahead_gap_pct", "gap %", 2},
                     {"ahead_changes", "changes"}});
  std::vector<LatencySaving> first_savings;  // of the first slack that has plans
  std::vector<PlansAtLatency> all;
  for (const double slack_pct : o.slacks_pct) {
    std::vector<LatencySaving> savings;
    const double deadline_s = base.time_s * (1.0 + slack_pct / percent);
    const std::vector<PlansAtLatency> plans = plans_for(o, work, deadline_s, context);
    for (std::size_t i = 0; i < plans.size(); ++i)
      table.add_row(row_of(o, plans[i], base, slack_pct, o.latencies_us[i], intervals, savings));
    all.insert(all.end(), plans.begin(), plans.end());
    if (first_savings.empty()) first_savings = std::move(savings);
  }
  std::vector<const PipelinePlan*> shown;
  for (const PlansAtLatency& plans : all)
    for (const PipelineResult& plan : plans) shown.push_back(&plan.plan);
  print_answered(
      fmt::format("{}; in at most {:.4g} % more time than the {}", describe(o.input, work),
                  fmt::join(o.slacks_pct, ", "), baseline_name(o.input)),
      latency_answer(first_savings, "stage"), table,
      "\nStalls: a stage waits out the latency of each change. Ahead: the change is asked for "
      "while the pass before runs, which the latency does not slow down.\n" +
          interval_note(loaded, shown),
      o.format);
  return ExitStatus::done;
}

}  // namespace

Action setup_pipeline_latency_scan(CommandLine& app) {
  auto o = std::make_shared<LatencyOptions>();
  add_pipeline_options(app, o->input);
  app.add_option("--latencies-us", o->latencies_us, "Latencies, us (several with commas)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--slack", o->slacks_pct,
                 "Time allowed beyond the highest clocks, % (several with commas)")
      ->delimiter(',')
      ->capture_default_str();
  add_format_options(app, o->format);
  return [o](const RunContext& context) { return run_sweep(*o, context); };
}

}  // namespace rubato
