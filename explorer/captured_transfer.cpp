
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "explorer/graph/playing.hpp"
#include "explorer/results/first_row.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/transfer.hpp"
#include "sim/graph/comm_sms.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {

namespace {

// The clocks of the plan's GPU with this rank and device; of its first GPU if it has none.
StepScore score_for(const ResultStore& store, std::int64_t plan_id, const GraphGpu& gpu,
                    const ClockGrid& grid) {
  std::vector<StoredSegment> segments = stored_segments(store, plan_id, gpu.rank, gpu.device);
  if (segments.empty()) {
    const auto first =
        first_row(store.query("SELECT rank, device FROM v_segments WHERE plan_id = ? "
                              "ORDER BY segment_id LIMIT 1",
                              {plan_id}));
    segments = stored_segments(store, plan_id, whole(first[0]), whole(first[1]));
  }
  std::vector<StepStretch> step;
  for (const StoredSegment& one : segments)
    step.push_back({one.pass, grid.find(one.clock).value(), one.time_s});
  return StepScore(step);
}

// A grid with all clocks of the run's: every memory clock with every core clock.
std::string grid_of_run(const ResultStore& store, std::int64_t run_id) {
  std::set<std::string> mems, cores;
  for (const auto& row :
       store.query("SELECT clock FROM v_clocks WHERE run_id = ?", {run_id}).rows) {
    const std::vector<std::string_view> parts = split(text(row[0]), '/');
    mems.emplace(parts.at(0));
    cores.emplace(parts.at(1));
  }
  return fmt::format("mem={} core={}", fmt::join(mems, ","), fmt::join(cores, ","));
}

}  // namespace

StoredGraphPlan load_graph_plan(const ResultStore& store, std::int64_t plan_id) {
  const auto rows =
      store
          .query(
              "SELECT gpu, granularity, slack_pct / 100, run_id, goal, comm_sms, work, "
              "planned_time_s, aggregation FROM v_plans WHERE plan_id = ? AND kind = 'capture'",
              {plan_id})
          .rows;
  if (rows.empty()) {
    throw UsageError(fmt::format("there is no plan {} of a captured run", plan_id),
                     {.in = {},
                      .hint = "SELECT plan_id, granularity, slack_pct FROM v_plans WHERE kind = "
                              "'capture'"});
  }
  const auto& row = rows[0];
  if (!real_or_none(row[7])) {
    throw UsageError(fmt::format("plan {} has no clocks", plan_id),
                     {.in = {}, .hint = "no plan was found for that question"});
  }
  if (!names_waste(text(row[4]))) {
    throw UsageError(
        fmt::format("plan {} is of goal {}, which is not transferred", plan_id, text(row[4])),
        {.in = {}, .hint = "plan on the other capture with 'rubato explore --goal'"});
  }
  return {.plan_id = plan_id,
          .captures = text(row[6]),
          .gpu = text(row[0]),
          .grid = grid_of_run(store, whole(row[3])),
          .question = {granularity_of("granularity", text(row[1])),
                       aggregation_of("aggregation", text(row[8])), LeastWaste{real(row[2])}},
          .comm_sms = real_or_none(row[5]),
          .host_power_w = stored_host_power_w(store, whole(row[3]))};
}

Transfer transfer(const ResultStore& store, const StoredGraphPlan& plan,
                  GraphExplorationInput input, const RunContext& context) {
  input.questions = {plan.question};
  input.grid = plan.grid;
  input.host_power_w = plan.host_power_w;
  input.odds_frac = 0.0;  // what there is in the same time
  std::vector<std::string> notes;
  if (plan.comm_sms) {
    // Asked for only where there is a collective to move; else the exploration would refuse it.
    const CaptureGraph run = capture_graph(input.captures);
    if (overlapping_collectives(run, input.captures, input.spec.sm_count).empty()) {
      notes.push_back(fmt::format(
          "the plan puts collectives beside compute on {} SMs; none runs beside compute "
          "here, so they stay on those they were captured on",
          *plan.comm_sms));
    } else {
      input.comm_sms = std::vector<double>{*plan.comm_sms};
    }
  }
  const std::optional<SwitchModel> switching = input.switching;
  const GraphExploration found = explore_captured(input, context);
  const ExecutionGraph& graph = found.run->graph;
  const ClockGrid& grid = found.planner->grid();
  const GraphRun& baseline = found.planner->baseline();

  std::vector<StepScore> scores;
  for (const GraphGpu& gpu : graph.gpus())
    scores.push_back(score_for(store, plan.plan_id, gpu, grid));
  const GraphModel& model = found.comm_sms.empty() ? *found.model : *found.comm_sms.front().model;
  GraphSimulator simulator(model, grid);
  const PlayedRun played = play(model, simulator, scores, grid.default_clock(),
                                switching.value_or(SwitchModel{}), baseline);
  const GraphRun& run = played.run;
  Transfer result;
  result.baseline = {baseline.span_s, baseline.total_energy_j};
  result.transferred = {run.span_s, run.total_energy_j};
  result.deadline_s = (1.0 + allowed_frac(plan.question).value_or(0.0)) * baseline.span_s;
  result.known_frac = played.known_frac;
  result.notes = std::move(notes);
  for (const GpuTotals& gpu : run.gpus) result.clock_changes += gpu.clock_changes;
  if (!found.plans.empty() && found.plans.front().result.found()) {
    const PlanChange& change = found.plans.front().change_as_played();
    result.own = Cost{(1.0 + change.time_frac) * baseline.span_s,
                      (1.0 + change.energy_frac) * baseline.total_energy_j};
  }
  return result;
}

}  // namespace rubato
