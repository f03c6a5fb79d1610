#include "explorer/results/graph_store.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "common/version.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "explorer/results/answers.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/stored_answers.hpp"
#include "traces/capture.hpp"
#include "traces/capture_match.hpp"

namespace rubato {

namespace {

std::int64_t store_run(const SqlConnection& connection, const GraphRequest& request,
                       const GraphExploration& found, bool asked) {
  const ExecutionGraph& graph = found.run->graph;
  const ArcCounts arcs = graph.count_arcs();
  const auto sum = [](const auto& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  };
  std::uint64_t launches = 0;
  for (const auto& of_capture : found.run->activity_of_launch) launches += of_capture.size();
  std::string files;
  for (const std::string& file : request.files) files += (files.empty() ? "" : "\n") + file;
  const GraphRun& baseline = found.planner->baseline();
  const GraphCoverage& c = found.coverage;
  const SwitchModel switching = found.planner->switching().value_or(SwitchModel{});
  const auto of_memory = [&](double SwitchCost::*value) {
    return switching.mem ? SqlValue((*switching.mem).*value) : SqlValue();
  };
  SqlStatement(connection,
               "INSERT INTO graph_runs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
               "?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?)")
      .run(now_utc(), request.command, program_version(), files, found.model->spec().name,
           request.captured_clock, name_of(request.clock_source), found.model->power_limit_w(),
           found.run->activity_of_launch.size(), graph.gpus().size(), launches, graph.size(),
           sum(arcs.read), sum(arcs.inferred), found.captured_span_s, found.reproduced_span_s,
           baseline.span_s, baseline.total_energy_j, c.measured_s, c.anchored_s, c.guessed_split_s,
           c.fixed_s, found.wall_time_s, asked, switching.core.stall_s, switching.core.energy_j,
           switching.core.lead_s, switching.dwell_s, of_memory(&SwitchCost::lead_s),
           of_memory(&SwitchCost::stall_s), of_memory(&SwitchCost::energy_j));
  return connection.last_insert_id();
}

void store_clocks(const SqlConnection& connection, std::int64_t plan_id,
                  const GraphExploration& found, const GraphPlanResult& result) {
  const ExecutionGraph& graph = found.run->graph;
  SqlStatement insert(connection,
                      "INSERT INTO graph_plan_clocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const std::vector<PlanClock> clocks = plan_clocks(*found.model, result);
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    const PlanClock& row = clocks[i];
    const GraphGpu& gpu = graph.gpus()[index(row.gpu)];
    insert.run(plan_id, i, gpu.rank, gpu.device, name_of(row.pass),
               graph.kernels()[index(row.kernel)].name, found.planner->grid().label(row.clock),
               row.launches, row.time_s, row.energy_j,
               kernel_key(graph.kernels()[index(row.kernel)]));
  }
}

void store_segments(const SqlConnection& connection, std::int64_t plan_id,
                    const GraphExploration& found, const GraphPlanOutcome& outcome) {
  const ExecutionGraph& graph = found.run->graph;
  const ClockGrid& grid = found.planner->grid();
  SqlStatement insert(connection,
                      "INSERT INTO graph_segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < outcome.segments.size(); ++i) {
    const PlanSegment& row = outcome.segments[i];
    const GraphGpu& gpu = graph.gpus()[index(row.gpu)];
    insert.run(plan_id, i, gpu.rank, gpu.device,
               row.step ? SqlValue(std::int64_t{*row.step}) : SqlValue(), name_of(row.pass),
               grid.label(row.clock), row.launches, row.start_s, row.time_s, row.energy_j,
               graph.kernels()[index(row.first_kernel)].name, row.first_index);
  }
}

void store_single_clocks(const SqlConnection& connection, std::int64_t run_id,
                         const GraphExploration& found) {
  const GraphPlanner& planner = *found.planner;
  const ClockGrid& grid = planner.grid();
  SqlStatement clock(connection, "INSERT INTO graph_clocks VALUES (?, ?, ?, ?, ?)");
  for (const UniformRun& run : planner.uniform()) {
    clock.run(run_id, grid.label(run.clock), std::int64_t{run.clock == grid.default_clock()},
              run.span_s, run.energy_j);
  }
}

void store_kernels(const SqlConnection& connection, std::int64_t run_id,
                   const GraphExploration& found) {
  const ExecutionGraph& graph = found.run->graph;
  GraphPlanResult defaults;
  defaults.plan = uniform_plan(graph, found.planner->grid().default_clock());
  defaults.run = found.planner->baseline();
  SqlStatement insert(connection,
                      "INSERT INTO graph_kernels VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const std::vector<PlanClock> rows = plan_clocks(*found.model, defaults);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PlanClock& row = rows[i];
    const GraphGpu& gpu = graph.gpus()[index(row.gpu)];
    const auto& kernel = graph.kernels()[index(row.kernel)];
    insert.run(run_id, i, gpu.rank, gpu.device, name_of(row.pass), kernel.name,
               name_of(kernel.kind), row.launches, row.time_s, row.energy_j);
  }
}

void store_marks(const SqlConnection& connection, std::string_view table, std::int64_t id,
                 const std::vector<Mark>& marks) {
  SqlStatement insert(connection, fmt::format("INSERT INTO {} VALUES (?, ?, ?)", table));
  for (const Mark& mark : marks) insert.run(id, name_of(mark.kind), mark.reason);
}

void store_collectives(const SqlConnection& connection, std::int64_t run_id,
                       const GraphExploration& found) {
  SqlStatement insert(connection,
                      "INSERT INTO graph_collectives VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const auto& collectives = found.run->ranks.collectives;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const JoinedCollective& one = collectives[i];
    insert.run(run_id, i, one.name, name_of(one.kind), one.group, one.members.size(),
               last_rank(*found.run, one), static_cast<double>(one.start_skew_ns()) * s_per_ns,
               static_cast<double>(one.end_spread_ns()) * s_per_ns,
               static_cast<double>(one.transfer_ns()) * s_per_ns);
  }
}

}  // namespace

std::string_view name_of(ClockSource value) noexcept {
  switch (value) {
    case ClockSource::given: return "given";
    case ClockSource::power_log: return "power log";
    case ClockSource::gpu_default: break;
  }
  return "default";
}

std::vector<PlanClock> plan_clocks(const GraphModel& model, const GraphPlanResult& result) {
  using Key = std::tuple<GpuId, Pass, KernelId, ClockId>;
  std::map<Key, PlanClock> rows;
  const ExecutionGraph& graph = model.graph();
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (model.work()[i] <= 0.0) continue;
    const Activity& activity = graph.activities()[i];
    const GpuId gpu = *graph.gpu_of(activity);
    const ClockId clock = result.plan.clock_of_activity[i];
    PlanClock& row = rows[{gpu, activity.pass, activity.kernel, clock}];
    row.gpu = gpu;
    row.pass = activity.pass;
    row.kernel = activity.kernel;
    row.clock = clock;
    ++row.launches;
    row.time_s += result.run.end_s[i] - result.run.start_s[i];
    row.energy_j += result.run.energy_j[i];
  }
  std::vector<PlanClock> list;
  for (const auto& [key, row] : rows) list.push_back(row);
  return list;
}

std::vector<StoredSegment> stored_segments(const ResultStore& store, std::int64_t plan_id,
                                           std::int64_t rank, std::int64_t device) {
  const auto steps = store
                         .query(
                             "SELECT DISTINCT step FROM graph_segments WHERE graph_plan_id = ? "
                             "AND rank = ? AND device = ? AND step NOT NULL ORDER BY step",
                             {plan_id, rank, device})
                         .rows;
  const SqlValue played = steps.empty() ? SqlValue() : steps[played_position(steps.size())].front();
  std::vector<StoredSegment> found;
  for (const auto& row :
       store
           .query("SELECT pass, clock, launches, time_s, energy_j, first_kernel, first_index FROM "
                  "graph_segments WHERE graph_plan_id = ?1 AND rank = ?2 AND device = ?3 AND "
                  "(?4 IS NULL OR step = ?4) ORDER BY segment_id",
                  {plan_id, rank, device, played})
           .rows) {
    found.push_back({text(row[0]), text(row[1]), whole(row[2]), real(row[3]), real(row[4]),
                     text(row[5]), whole(row[6])});
  }
  return found;
}

std::int64_t store_graph_setting(const SqlConnection& connection, const GraphRequest& request,
                                 const GraphExploration& found, bool asked) {
  const std::int64_t run_id = store_run(connection, request, found, asked);
  store_marks(connection, "graph_run_marks", run_id, found.baseline_marks);
  store_single_clocks(connection, run_id, found);
  store_kernels(connection, run_id, found);
  store_collectives(connection, run_id, found);
  return run_id;
}

std::int64_t store_graph_plan(const SqlConnection& connection, std::int64_t run_id,
                              const GraphExploration& found, const GraphPlanOutcome& outcome) {
  const GraphPlanResult& result = outcome.result;
  SqlStatement insert(connection,
                      "INSERT INTO graph_plans (graph_run_id, granularity, slack_frac, status, "
                      "deadline_s, time_s, energy_j, lower_bound_j, gap_frac, time_change_frac, "
                      "time_change_low_frac, time_change_high_frac, energy_change_frac, "
                      "energy_change_low_frac, energy_change_high_frac, clock_changes, "
                      "counted_clock_changes, counted_late_launches, counted_time_change_frac, "
                      "counted_energy_change_frac, counted_in_time, comm_sms) VALUES "
                      "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const SqlValue null;
  const auto if_found = [&](double value) { return result.found() ? SqlValue(value) : null; };
  const std::optional<CountedChanges>& counted = outcome.counted;
  const auto if_counted = [&](std::uint64_t CountedChanges::*count) {
    return counted ? SqlValue(static_cast<std::int64_t>((*counted).*count)) : null;
  };
  const bool has_gap =
      result.lower_bound_j > 0.0 || (outcome.goal && result.status != SolveStatus::time_limit);
  SqlValue changes;
  if (result.found()) {
    std::int64_t sum = 0;
    for (const GpuTotals& gpu : result.run.gpus)
      sum += static_cast<std::int64_t>(gpu.clock_changes);
    changes = sum;
  }
  insert.run(run_id, name_of(result.question.grain), result.question.slack_frac,
             name_of(result.status), result.deadline_s, if_found(result.run.span_s),
             if_found(result.run.total_energy_j),
             result.lower_bound_j > 0.0 ? if_found(result.lower_bound_j) : null,
             has_gap ? if_found(result.gap_frac) : null, if_found(outcome.change.time_frac),
             if_found(outcome.interval.low.time_frac), if_found(outcome.interval.high.time_frac),
             if_found(outcome.change.energy_frac), if_found(outcome.interval.low.energy_frac),
             if_found(outcome.interval.high.energy_frac), changes,
             if_counted(&CountedChanges::clock_changes), if_counted(&CountedChanges::late_launches),
             counted ? SqlValue(counted->change.time_frac) : null,
             counted ? SqlValue(counted->change.energy_frac) : null,
             counted ? SqlValue(std::int64_t{counted->in_time}) : null,
             outcome.comm_sms ? SqlValue(*outcome.comm_sms) : null);
  const std::int64_t plan_id = connection.last_insert_id();
  store_contender(connection, RunKind::capture, plan_id, contender_of(found, outcome));
  if (!result.found()) return plan_id;
  store_marks(connection, "graph_plan_marks", plan_id, outcome.marks);
  store_clocks(connection, plan_id, found, result);
  store_segments(connection, plan_id, found, outcome);
  return plan_id;
}

std::vector<GraphFrontPoint> graph_front(const GraphExploration& found) {
  GraphPlanner& planner = *found.planner;
  if (!planner.has_frontier() || planner.limited_together()) return {};
  // After Ctrl-C the frontier is not swept once more.
  const Frontier frontier =
      found.interrupted ? planner.frontier() : planner.frontier_of_no_question();
  double least_s = planner.baseline().span_s;
  for (const UniformRun& run : planner.uniform()) least_s = std::min(least_s, run.span_s);
  // Enough points for a line on a page.
  constexpr int points = 80;
  constexpr double longest = 1.3;  // of the default time
  std::vector<GraphFrontPoint> front;
  for (int i = 0; i <= points; ++i) {
    const double share = static_cast<double>(i) / points;
    const double time_s = least_s + share * (longest * planner.baseline().span_s - least_s);
    front.push_back({time_s, planner.bound_of_launches_j(frontier, time_s)});
  }
  return front;
}

void store_graph_front(const SqlConnection& connection, std::int64_t run_id,
                       std::span<const GraphFrontPoint> front) {
  SqlStatement point(connection, "INSERT OR IGNORE INTO graph_front VALUES (?, ?, ?, ?)");
  for (std::size_t i = 0; i < front.size(); ++i)
    point.run(run_id, i, front[i].time_s, front[i].bound_j);
}

std::int64_t store_graph_run(const std::filesystem::path& path, const GraphRequest& request,
                             const GraphExploration& found) {
  const std::vector<GraphFrontPoint> front = graph_front(found);
  SqlConnection connection = open_result_database(path);
  SqlTransaction transaction(connection);
  constexpr bool asked = true;
  const std::int64_t run_id = store_graph_setting(connection, request, found, asked);
  for (const GraphPlanOutcome& outcome : found.plans)
    store_graph_plan(connection, run_id, found, outcome);
  store_answers(connection, RunKind::capture, run_id);
  store_graph_front(connection, run_id, front);
  if (found.interrupted) {
    SqlStatement(connection, "INSERT INTO graph_run_marks VALUES (?, 'search ended early', ?)")
        .run(run_id, "by Ctrl-C or a time limit: plans are the best known by then");
  }
  transaction.commit();
  return run_id;
}

}  // namespace rubato
