#include "explorer/captured_transfer.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "explorer/graph/plan_segments.hpp"
#include "explorer/results/graph_store.hpp"
#include "explorer/results/plan_choice.hpp"

namespace rubato {

namespace {

// A clock from a share of its pass on; the first is at 0.
struct PassChange {
  double at_frac;
  ClockId clock;
};
using PassClocks = std::vector<PassChange>;

// A GPU's passes of a step by name, in order.
using Score = std::map<std::string, std::vector<PassClocks>, std::less<>>;

Score score_of(const std::vector<StoredSegment>& segments, const ClockGrid& grid) {
  Score score;
  for (std::size_t begin = 0; begin < segments.size();) {
    std::size_t end = begin;
    double total_s = 0.0;
    for (; end < segments.size() && segments[end].pass == segments[begin].pass; ++end)
      total_s += segments[end].time_s;
    PassClocks& clocks = score[segments[begin].pass].emplace_back();
    double before_s = 0.0;
    for (; begin < end; ++begin) {
      clocks.push_back(
          {total_s > 0.0 ? before_s / total_s : 0.0, grid.find(segments[begin].clock).value()});
      before_s += segments[begin].time_s;
    }
  }
  return score;
}

// One GPU of the plan by the capture's rank and device.
Score score_for(const ResultStore& store, std::int64_t plan_id, const GraphGpu& gpu,
                const ClockGrid& grid) {
  std::vector<StoredSegment> segments = stored_segments(store, plan_id, gpu.rank, gpu.device);
  if (segments.empty()) {
    const auto first = store
                           .query(
                               "SELECT rank, device FROM graph_segments WHERE graph_plan_id = ? "
                               "ORDER BY segment_id LIMIT 1",
                               {plan_id})
                           .rows.at(0);
    segments = stored_segments(store, plan_id, whole(first[0]), whole(first[1]));
  }
  return score_of(segments, grid);
}

// The clocks in force over one GPU's run at the default clocks, and how much of it the plan knows.
struct PlayedGpu {
  std::vector<std::pair<double, ClockId>> clock_from_s;
  double known_s = 0.0, all_s = 0.0;

  [[nodiscard]] ClockId at(double start_s) const {
    constexpr double rounding_s = 1e-12;
    const auto after =
        std::ranges::upper_bound(clock_from_s, start_s + rounding_s, {},
                                 [](const std::pair<double, ClockId>& from) { return from.first; });
    return std::prev(after)->second;
  }
};

PlayedGpu play(const Score& score, const std::vector<PlanSegment>& passes, ClockId default_clock) {
  PlayedGpu played;
  std::map<std::string_view, std::size_t> seen;  // in this step
  std::optional<std::uint32_t> step;
  ClockId now = default_clock;
  for (const PlanSegment& pass : passes) {
    if (pass.step != step) seen.clear();
    step = pass.step;
    played.all_s += pass.time_s;
    const auto known = score.find(name_of(pass.pass));
    if (known == score.end()) {
      played.clock_from_s.emplace_back(pass.start_s, now);
      continue;
    }
    played.known_s += pass.time_s;
    const std::size_t number = seen[name_of(pass.pass)]++;
    for (const PassChange& change : known->second[std::min(number, known->second.size() - 1)]) {
      now = change.clock;
      played.clock_from_s.emplace_back(pass.start_s + change.at_frac * pass.time_s, now);
    }
  }
  return played;
}

// Without the cuts at changes of clock.
std::vector<PlanSegment> whole_passes(const std::vector<PlanSegment>& segments) {
  std::vector<PlanSegment> passes;
  for (const PlanSegment& one : segments) {
    const bool same = !passes.empty() && passes.back().gpu == one.gpu &&
                      passes.back().step == one.step && passes.back().pass == one.pass;
    if (same) {
      passes.back().time_s += one.time_s;
    } else {
      passes.push_back(one);
    }
  }
  return passes;
}

// Every memory clock of the run's grid beside every core clock of it.
std::string grid_of_run(const ResultStore& store, std::int64_t run_id) {
  std::set<std::string> mems, cores;
  for (const auto& row :
       store.query("SELECT clock FROM graph_clocks WHERE graph_run_id = ?", {run_id}).rows) {
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
              "SELECT r.captures, r.gpu, p.granularity, p.slack_frac, r.graph_run_id, EXISTS "
              "(SELECT 1 FROM "
              "graph_segments s WHERE s.graph_plan_id = p.graph_plan_id) FROM graph_plans p JOIN "
              "graph_runs r USING (graph_run_id) WHERE p.graph_plan_id = ?",
              {plan_id})
          .rows;
  if (rows.empty()) {
    throw UsageError(
        fmt::format("there is no plan graph:{}", plan_id),
        {.in = {}, .hint = "SELECT graph_plan_id, granularity, slack_pct FROM v_graph_plans"});
  }
  if (whole(rows[0][5]) == 0) {
    throw UsageError(fmt::format("of plan graph:{} no order of clocks is stored", plan_id),
                     {.in = {}, .hint = "it was not found, or is older than schema 8"});
  }
  const auto& row = rows[0];
  return {.plan_id = plan_id,
          .captures = text(row[0]),
          .gpu = text(row[1]),
          .grid = grid_of_run(store, whole(row[4])),
          .question = {grain_named(text(row[2])).value_or(GraphGrain::kernel), real(row[3])}};
}

CapturedTransfer transfer(const ResultStore& store, const StoredGraphPlan& plan,
                          GraphExplorationInput input, const RunContext& context) {
  input.questions = {plan.question};
  input.grid = plan.grid;
  const std::optional<SwitchModel> switching = input.switching;
  const GraphExploration found = explore_captured(input, context);
  const ExecutionGraph& graph = found.run->graph;
  const ClockGrid& grid = found.planner->grid();
  const GraphRun& baseline = found.planner->baseline();

  std::vector<Score> scores;
  for (const GraphGpu& gpu : graph.gpus())
    scores.push_back(score_for(store, plan.plan_id, gpu, grid));

  // Shares of a pass are those of its time under the plan, which playing it learns.
  constexpr int learning_steps = 8;
  GraphSimulator simulator(*found.model, grid);
  GraphPlanResult played;
  played.plan = uniform_plan(graph, grid.default_clock());
  played.switching = switching.value_or(SwitchModel{});
  played.run = baseline;
  double known_s = 0.0, all_s = 0.0;
  for (int i = 0; i < learning_steps; ++i) {
    const std::vector<PlanSegment> passes = whole_passes(plan_segments(*found.model, grid, played));
    std::vector<PlayedGpu> gpus;
    for (std::size_t g = 0; g < graph.gpus().size(); ++g) {
      std::vector<PlanSegment> own = passes;
      std::erase_if(own, [&](const PlanSegment& pass) { return pass.gpu != id_at<GpuId>(g); });
      gpus.push_back(play(scores[g], own, grid.default_clock()));
      known_s += i == 0 ? gpus[g].known_s : 0.0;
      all_s += i == 0 ? gpus[g].all_s : 0.0;
    }
    for (std::size_t a = 0; a < graph.size(); ++a) {
      if (found.model->work()[a] <= 0.0) continue;
      const GpuId gpu = *graph.gpu_of(graph.activities()[a]);
      played.plan.clock_of_activity[a] = gpus[index(gpu)].at(played.run.start_s[a]);
    }
    played.run = simulator.run(played.plan, {.switching = played.switching});
  }
  const GraphRun& run = played.run;
  CapturedTransfer result{.baseline = {baseline.span_s, baseline.total_energy_j},
                          .played = {run.span_s, run.total_energy_j},
                          .own = {},
                          .deadline_s = (1.0 + plan.question.slack_frac) * baseline.span_s,
                          .clock_changes = 0,
                          .known_frac = all_s > 0.0 ? known_s / all_s : 0.0};
  for (const GpuTotals& gpu : run.gpus) result.clock_changes += gpu.clock_changes;
  if (!found.plans.empty() && found.plans.front().result.found()) {
    const GraphPlanOutcome& own = found.plans.front();
    const PlanChange& change = own.counted ? own.counted->change : own.change;
    result.own = {(1.0 + change.time_frac) * baseline.span_s,
                  (1.0 + change.energy_frac) * baseline.total_energy_j};
  }
  return result;
}

}  // namespace rubato
