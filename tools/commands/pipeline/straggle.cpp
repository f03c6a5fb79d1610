// rubato pipeline straggle: what the others save while one pipeline is slow.

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/pipeline/straggler.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"

namespace rubato {

namespace {

struct StraggleOptions {
  PipelineInput input;
  std::vector<double> times_s, factors, throttles;
  std::vector<double> input_delays_ms;
  std::uint32_t throttled_stage = 0;
  bool lost_stage = false;
  std::string db;
  OutputFormat format = OutputFormat::table;
};

struct Cause {
  std::string what;
  double time_s = 0.0;
};

// What makes one pipeline slow, and how slow: given, or simulated at the highest clocks.
std::vector<Cause> causes(const StraggleOptions& o, const PipelinePlanner& planner) {
  const PipelineWork& work = planner.work();
  const double base_s = planner.baseline().time_s;
  std::vector<Cause> list;
  for (const double time_s : o.times_s) list.push_back({"given time", time_s});
  for (const double factor : o.factors) {
    list.push_back({fmt::format("x {:.4g}", factor), factor * base_s});
  }
  const auto simulated = [&](const PipelineDisturbance& disturbance) {
    return simulate(work, highest_clocks(work), {.disturbance = disturbance}).time_s;
  };
  for (const double factor : o.throttles) {
    if (o.throttled_stage >= work.schedule.shape.stages) {
      throw UsageError(fmt::format("--throttled-stage is {}; expected 0 to {}", o.throttled_stage,
                                   work.schedule.shape.stages - 1));
    }
    PipelineDisturbance disturbance;
    disturbance.slowdown_of_stage.assign(work.schedule.shape.stages, 1.0);
    disturbance.slowdown_of_stage[o.throttled_stage] = factor;
    list.push_back({fmt::format("stage {} throttled x {:.4g}", o.throttled_stage, factor),
                    simulated(disturbance)});
  }
  for (const double delay_ms : o.input_delays_ms) {
    PipelineDisturbance disturbance;
    disturbance.input_delay_s = delay_ms * 1e-3;
    list.push_back({fmt::format("input late by {:.4g} ms", delay_ms), simulated(disturbance)});
  }
  if (o.lost_stage) {
    const PipelineWork left = without_one_stage(work);
    list.push_back({"one stage lost, re-partitioned", simulate(left, highest_clocks(left)).time_s});
  }
  return list;
}

std::string replicas_text(const PipelineInput& input) {
  if (input.data_parallel < 2) return "";
  return fmt::format(" All replicas: {} pipelines without the straggler, {} GPU{} per stage.",
                     input.data_parallel - 1, input.tensor_parallel,
                     input.tensor_parallel == 1 ? "" : "s");
}

// What a pipeline that waits saves, least to most, and what it would have saved by itself.
// @param intervals  of the points' changes of energy
std::string straggle_answer(const std::vector<Cause>& causes,
                            const std::vector<StragglerPoint>& points,
                            const std::vector<std::optional<Interval>>& intervals) {
  const auto change = [](const StragglerPoint& point) {
    return change_pct(point.result.energy_j, point.baseline_energy_j);
  };
  const auto alone = [](const StragglerPoint& point) {
    return change_pct(point.intrinsic_energy_j, point.baseline_energy_j);
  };
  const auto [most, least] = std::ranges::minmax_element(points, {}, change);
  const auto say = [&](std::string& answer, const StragglerPoint& point) {
    const auto at = static_cast<std::size_t>(&point - points.data());
    answer.append(change_words(change(point), intervals[at]))
        .append(fmt::format(" for '{}'", causes[at].what));
  };
  std::string answer;
  answer.append("A pipeline that waits for a slower one: energy ");
  say(answer, *least);
  if (points.size() > 1) say(answer.append(" to "), *most);
  const auto [alone_most, alone_least] = std::ranges::minmax_element(points, {}, alone);
  answer.append(fmt::format(". With the plan that knows only its own: {}{}.",
                            change_words(alone(*alone_least)),
                            points.size() > 1 ? " to " + change_words(alone(*alone_most)) : ""));
  return answer;
}

OutputTable empty_table(const PipelineInput& input, bool with_interval) {
  return OutputTable({{.key = "straggler", .whole = true},
                      {"straggler_time_s", "its time s", 4},
                      {"time_vs_baseline", "x", 4, false, Room::spare},
                      {"baseline_energy_j", baseline_name(input) + " J", 1, false, Room::spare},
                      {"intrinsic_change_pct", "intrinsic %", 2},
                      {"energy_j", "energy J", 1, false, Room::spare},
                      {"energy_change_pct", "energy %", 2},
                      {.key = "energy_change_low_pct", .for_programs = true},
                      {.key = "energy_change_high_pct", .for_programs = true},
                      range_column(with_interval),
                      {"time_s", "time s", 4},
                      {"gap_pct", "gap %", 3},
                      {"cluster_saving_j", "all replicas save J", 1, input.data_parallel < 2}});
}

ExitStatus run_straggle(StraggleOptions o, const RunContext& context) {
  const LoadedPipeline loaded = load_pipeline(o.input);
  const PipelineWork& work = loaded.work;
  if (!o.db.empty()) check_storable(work);
  const PlannerOptions options = planner_options(o.input);
  const PipelinePlanner planner(work, options, context);
  const auto intervals = intervals_of(loaded, options.switching);
  if (o.times_s.empty() && o.factors.empty() && o.throttles.empty() && o.input_delays_ms.empty() &&
      !o.lost_stage) {
    o.factors = {1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.45, 1.5};
  }
  const std::vector<Cause> list = causes(o, planner);
  std::vector<double> times_s;
  for (const Cause& cause : list) times_s.push_back(cause.time_s);
  const std::vector<StragglerPoint> points = straggle(planner, times_s, context);
  OutputTable table = empty_table(o.input, intervals.has_value());
  const double others = static_cast<double>(o.input.data_parallel - 1) * o.input.tensor_parallel;
  std::vector<PipelineResult> plans;
  std::vector<std::optional<Interval>> energies;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const StragglerPoint& point = points[i];
    plans.push_back(point.result);
    const double base_j = point.baseline_energy_j, energy_j = point.result.energy_j;
    const double factor = point.time_s / planner.baseline().time_s;
    std::vector<Cell> row{list[i].what,
                          point.time_s,
                          factor,
                          base_j,
                          change_pct(point.intrinsic_energy_j, base_j),
                          energy_j,
                          change_pct(energy_j, base_j)};
    energies.push_back(
        energy_interval(intervals, point.result.plan,
                        {.against = nullptr, .until_vs_default = factor, .switching = nullptr}));
    add_interval(row, energies.back());
    row.insert(row.end(), {point.result.run.time_s, percent * point.result.gap_frac,
                           others * (base_j - energy_j)});
    table.add_row(std::move(row));
  }
  std::vector<const PipelinePlan*> shown;
  for (const PipelineResult& plan : plans) shown.push_back(&plan.plan);
  print_answered(
      describe(o.input, work), straggle_answer(list, points, energies), table,
      fmt::format("\nEach row is a pipeline that waits for a slower one, until that one is done, "
                  "against the {}; 'intrinsic' is the plan that knows only its own pipeline. "
                  "Beyond {:.5g} s slower passes save nothing more.{}\n",
                  baseline_name(o.input), planner.frontier().slowest_time_s,
                  replicas_text(o.input)) +
          interval_note(loaded, shown),
      o.format);
  if (!o.db.empty()) store_pipeline(o.db, planner, plans, o.input, loaded, context);
  return ExitStatus::done;
}

}  // namespace

Action setup_pipeline_straggle(CommandLine& app) {
  auto o = std::make_shared<StraggleOptions>();
  add_pipeline_options(app, o->input);
  app.add_option("--time", o->times_s, "Iteration times of the slowest pipeline, s")
      ->delimiter(',');
  app.add_option("--factor", o->factors,
                 "Its times as multiples of the highest clocks' [1 to 1.5 if nothing is given]")
      ->delimiter(',');
  app.add_option("--throttle", o->throttles,
                 "Simulate: passes of one stage take this many times as long")
      ->delimiter(',');
  app.add_option("--throttled-stage", o->throttled_stage, "The stage of --throttle")
      ->capture_default_str();
  app.add_option("--input-delay-ms", o->input_delays_ms,
                 "Simulate: each microbatch waits this long for its input, ms")
      ->delimiter(',');
  app.add_flag("--lost-stage", o->lost_stage,
               "Simulate: a stage failed, its layers went to the others");
  app.add_option("--db", o->db, "Store pipeline, frontier and plans in this SQLite database");
  add_format_options(app, o->format);
  return [o](const RunContext& context) { return run_straggle(*o, context); };
}

}  // namespace rubato
