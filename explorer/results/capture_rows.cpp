#include "explorer/results/capture_rows.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "explorer/graph/plan_interval.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "explorer/results/answers.hpp"
#include "models/calibration/capture_fit.hpp"
#include "traces/capture.hpp"
#include "traces/capture_match.hpp"

namespace rubato {

namespace {

/// The units of a captured run: kernels in a pass on a GPU, at the default clocks.
class CapturedUnits {
 public:
  explicit CapturedUnits(const GraphExploration& found) : model_(*found.model) {
    GraphPlanResult defaults;
    defaults.plan = uniform_plan(found.run->graph, found.planner->grid().default_clock());
    defaults.run = found.planner->baseline();
    units_ = plan_clocks(model_, defaults);
  }

  [[nodiscard]] const std::vector<PlanClock>& all() const { return units_; }

  [[nodiscard]] std::vector<PlanUnitRow> under(const GraphPlanResult& plan) const {
    std::vector<PlanUnitRow> list;
    for (const PlanClock& row : plan_clocks(model_, plan)) {
      list.push_back({unit_of(row.gpu, row.pass, row.kernel), index(row.clock), row.launches,
                      row.time_s, row.energy_j});
    }
    return list;
  }

  // Launches that no range names belong to the pass before them: then the kernel's unit is another.
  [[nodiscard]] std::size_t unit_of(GpuId gpu, Pass pass, KernelId kernel) const {
    const auto exact = std::ranges::lower_bound(units_, std::tuple(gpu, pass, kernel), {}, key_of);
    if (exact != units_.end() && key_of(*exact) == std::tuple(gpu, pass, kernel))
      return static_cast<std::size_t>(exact - units_.begin());
    const auto any = std::ranges::find_if(
        units_, [&](const PlanClock& one) { return one.gpu == gpu && one.kernel == kernel; });
    return static_cast<std::size_t>(any - units_.begin());
  }

 private:
  static std::tuple<GpuId, Pass, KernelId> key_of(const PlanClock& unit) {
    return {unit.gpu, unit.pass, unit.kernel};
  }

  const GraphModel& model_;
  std::vector<PlanClock> units_;  // in order
};

std::string_view source_of(SplitSource split) {
  switch (split) {
    case SplitSource::fit: return "measured";
    case SplitSource::link: return "fixed";
    case SplitSource::counters:
    case SplitSource::work:
    case SplitSource::class_prior: break;
  }
  return "anchored";
}

void add_coverage(Columns& columns, const GraphCoverage& c) {
  const auto share = [&](double part_s) {
    return SqlValue(c.total_s() > 0.0 ? percent * part_s / c.total_s() : 0.0);
  };
  columns.emplace_back("measured_pct", share(c.measured_s));
  columns.emplace_back("anchored_pct", share(c.anchored_s));
  for (const std::string_view none : {"scaled_pct", "derived_pct", "guessed_pct"})
    columns.emplace_back(none, 0.0);
  columns.emplace_back("fixed_pct", share(c.fixed_s));
  columns.emplace_back("guessed_split_pct", share(c.guessed_split_s));
}

void add_captured_gpus(RunRows& rows, const ExecutionGraph& graph) {
  std::set<std::uint32_t> ranks;
  for (const GraphGpu& gpu : graph.gpus()) ranks.insert(gpu.rank);
  const bool one_rank = ranks.size() == 1, one_each = ranks.size() == graph.gpus().size();
  for (const GraphGpu& gpu : graph.gpus()) {
    rows.gpus.push_back({.label = one_rank   ? fmt::format("GPU {}", gpu.device)
                                  : one_each ? fmt::format("rank {}", gpu.rank)
                                             : fmt::format("rank {} GPU {}", gpu.rank, gpu.device),
                         .rank = gpu.rank,
                         .device = gpu.device});
  }
}

void add_captured_clocks(RunRows& rows, const GraphExploration& found) {
  const ClockGrid& grid = found.planner->grid();
  for (std::size_t c = 0; c < grid.size(); ++c) {
    const auto id = id_at<ClockId>(c);
    rows.clocks.push_back({.label = grid.label(id),
                           .mem_mhz = found.model->spec().mem_states[index(grid[id].mem)].mem_mhz,
                           .core_mhz = grid[id].core_mhz,
                           .power_limit_w = grid[id].power_limit_w,
                           .is_default = id == grid.default_clock()});
  }
  for (const UniformRun& run : found.planner->uniform()) {
    rows.clocks[index(run.clock)].time_s = run.span_s;
    rows.clocks[index(run.clock)].energy_j = run.energy_j;
  }
}

void add_captured_units(RunRows& rows, const GraphExploration& found) {
  const GraphModel& model = *found.model;
  const ClockGrid& grid = found.planner->grid();
  std::map<std::pair<KernelId, ThrottleId>, std::size_t> cells;  // a mean launch of a kernel
  const CapturedUnits units(found);
  for (const PlanClock& sum : units.all()) {
    const Kernel& kernel = found.run->graph.kernels()[index(sum.kernel)];
    const auto [known, fresh] =
        cells.try_emplace({sum.kernel, model.throttle_of(sum.gpu)}, rows.cells.size());
    if (fresh) {
      std::vector<OperatingPoint> at;
      for (std::size_t c = 0; c < grid.size(); ++c) {
        at.push_back(model.evaluate(sum.kernel, grid[id_at<ClockId>(c)], known->first.second));
        if (at.back().energy_j <= 0.0) at.back() = {};
      }
      rows.cells.push_back(stored_cells(std::move(at)));
    }
    rows.units.push_back({.gpu = index(sum.gpu),
                          .columns = {{"pass", std::string(name_of(sum.pass))},
                                      {"name", kernel.name},
                                      {"class", std::string(name_of(kernel.kind))},
                                      {"dtype", std::string(name_of(kernel.dtype))},
                                      {"kernel_key", kernel_key(kernel)},
                                      {"launches", sql_value(sum.launches)},
                                      {"flops", sql_value(kernel.flops)},
                                      {"dram_bytes", sql_value(kernel.dram_bytes)},
                                      {"source", std::string(source_of(model.split(sum.kernel)))},
                                      {"default_time_s", sum.time_s},
                                      {"default_energy_j", sum.energy_j}},
                          .cells = known->second});
  }
}

void add_collectives(RunRows& rows, const GraphExploration& found) {
  for (const JoinedCollective& one : found.run->ranks.collectives) {
    rows.collectives.push_back(
        {{"name", one.name},
         {"kind", std::string(name_of(one.kind))},
         {"process_group", one.group},
         {"ranks", sql_value(one.members.size())},
         {"last_rank", std::int64_t{last_rank(*found.run, one)}},
         {"start_skew_s", static_cast<double>(one.start_skew_ns()) * s_per_ns},
         {"end_spread_s", static_cast<double>(one.end_spread_ns()) * s_per_ns},
         {"transfer_s", static_cast<double>(one.transfer_ns()) * s_per_ns}});
  }
}

std::int64_t steps_of(const ExecutionGraph& graph) {
  std::set<std::uint32_t> steps;
  for (const Activity& activity : graph.activities()) {
    if (activity.step) steps.insert(*activity.step);
  }
  return std::max<std::int64_t>(1, std::ssize(steps));
}

// Of each GPU the segments of the step that is set in all steps; all of them where there are none.
std::vector<SegmentRow> applied_segments(const CapturedUnits& units,
                                         const GraphPlanOutcome& outcome) {
  std::map<GpuId, std::vector<std::optional<std::uint32_t>>> steps;
  for (const PlanSegment& one : outcome.segments) {
    auto& of_gpu = steps[one.gpu];
    if (std::ranges::find(of_gpu, one.step) == of_gpu.end()) of_gpu.push_back(one.step);
  }
  for (auto& [gpu, of_gpu] : steps) std::ranges::sort(of_gpu);
  std::vector<SegmentRow> list;
  for (const PlanSegment& one : outcome.segments) {
    const auto& of_gpu = steps[one.gpu];
    const std::optional<std::uint32_t> applied = of_gpu[played_position(of_gpu.size())];
    if (applied && one.step != applied) continue;
    list.push_back({.gpu = index(one.gpu),
                    .clock = index(one.clock),
                    .pass = std::string(name_of(one.pass)),
                    .first_unit = units.unit_of(one.gpu, one.pass, one.first_kernel),
                    .first_index = one.first_index,
                    .launches = one.launches,
                    .start_s = one.start_s,
                    .time_s = one.time_s,
                    .energy_j = one.energy_j});
  }
  return list;
}

void add_captured_plan(Columns& columns, const GraphExploration& found,
                       const GraphPlanOutcome& outcome, const Goal& goal) {
  const GraphPlanResult& result = outcome.result;
  const GraphRun& base = found.planner->baseline();
  const PlanChange& applied = outcome.change_as_played();
  const StoredTotals totals{(1.0 + applied.time_frac) * base.span_s,
                            (1.0 + applied.energy_frac) * base.total_energy_j};
  const auto& [low, high] = std::pair(outcome.interval.low, outcome.interval.high);
  add_changes(
      columns,
      {.defaults = {base.span_s, base.total_energy_j},
       .planned = {result.run.span_s, result.run.total_energy_j},
       .applied = totals,
       .time = StoredChanges::Interval{percent * low.time_frac, percent * high.time_frac},
       .energy = StoredChanges::Interval{percent * low.energy_frac, percent * high.energy_frac}});
  const auto gpus = static_cast<double>(found.run->graph.gpus().size());
  columns.emplace_back("objective",
                       value_of_goal(goal, {result.run.span_s, result.run.total_energy_j}, gpus));
  if (outcome.counted)
    columns.emplace_back("late_launches", sql_value(outcome.counted->late_launches));
  const bool bounded = result.lower_bound_j > 0.0;
  if (bounded && !outcome.goal) {
    columns.emplace_back("lower_bound", result.lower_bound_j);
    columns.emplace_back("applied_gap_pct",
                         percent * std::max(0.0, 1.0 - result.lower_bound_j / totals.energy_j));
  }
  if (bounded || (outcome.goal && result.status != SolveStatus::time_limit))
    columns.emplace_back("gap_pct", percent * result.gap_frac);
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

std::optional<std::pair<double, double>> default_energy_range_j(const GraphRequest& request,
                                                                const GraphExploration& found) {
  if (request.clock_source == ClockSource::power_log || captured_powers(found.model->spec()) > 0)
    return std::nullopt;
  return GraphPlanIntervals(*found.model, *found.model, found.planner->grid(),
                            found.planner->baseline())
      .default_energy_j();
}

RunRows capture_rows(const GraphRequest& request, const GraphExploration& found) {
  const ExecutionGraph& graph = found.run->graph;
  const GpuSpec& spec = found.model->spec();
  const ArcCounts arcs = graph.count_arcs();
  const auto sum = [](const auto& counts) {
    return sql_value(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  };
  std::string files;
  for (const std::string& file : request.files) files += (files.empty() ? "" : "\n") + file;
  const GraphRun& baseline = found.planner->baseline();
  RunRows rows;
  rows.columns = {{"kind", std::string("capture")},
                  {"wall_time_s", found.wall_time_s},
                  {"interrupted", std::int64_t{found.interrupted}},
                  {"work", files},
                  {"gpu", spec.name},
                  {"gpu_calibrated", std::int64_t{spec.calibrated}},
                  {"power_limit_w", found.model->power_limit_w()},
                  {"host_power_w", found.model->host_power_w()},
                  {"clock_grid", request.grid.empty() ? SqlValue() : SqlValue(request.grid)},
                  {"gpus", sql_value(graph.gpus().size())},
                  {"steps", steps_of(graph)},
                  {"default_time_s", baseline.span_s},
                  {"default_energy_j", baseline.total_energy_j},
                  {"captured_clock", request.captured_clock},
                  {"captured_clock_source", std::string(name_of(request.clock_source))},
                  {"captured_s", found.captured_span_s},
                  {"reproduced_s", found.reproduced_span_s},
                  {"arcs_read", sum(arcs.read)},
                  {"arcs_inferred", sum(arcs.inferred)}};
  if (!request.disturbance.empty()) rows.columns.emplace_back("disturbance", request.disturbance);
  if (const auto range_j = default_energy_range_j(request, found)) {
    rows.columns.emplace_back("default_energy_low_j", range_j->first);
    rows.columns.emplace_back("default_energy_high_j", range_j->second);
  }
  add_switching(rows.columns, found.planner->switching().value_or(SwitchModel{}));
  add_coverage(rows.columns, found.coverage);
  const std::string text = to_json(spec);
  rows.inputs = {{"gpu_spec", spec.name, content_hash(text), text}};
  if (request.hash) rows.inputs.push_back({"capture", files, *request.hash, std::nullopt});
  rows.fit_errors.assign(spec.fit_errors.begin(), spec.fit_errors.end());
  add_captured_gpus(rows, graph);
  add_captured_clocks(rows, found);
  add_captured_units(rows, found);
  add_collectives(rows, found);
  rows.caveats = found.baseline_marks;
  rows.result_hash = hash_of(rows);
  return rows;
}

PlanRows capture_plan_rows(const GraphExploration& found, const GraphPlanOutcome& outcome) {
  const GraphPlanResult& result = outcome.result;
  const Goal goal = outcome.asked_goal();
  PlanRows rows;
  rows.contender = contender_of(found, outcome);
  add_goal(rows.columns, goal);
  rows.columns.emplace_back("status", std::string(name_of(result.status)));
  if (!outcome.goal) rows.columns.emplace_back("deadline_s", result.deadline_s);
  if (result.found()) {
    add_captured_plan(rows.columns, found, outcome, goal);
    rows.caveats = outcome.marks;
    const CapturedUnits units(found);
    rows.units = units.under(result);
    if (rows.contender.clocks == 1)
      rows.columns.emplace_back("clock_id", sql_value(rows.units.front().clock));
    rows.segments = applied_segments(units, outcome);
  }
  rows.result_hash = hash_of(rows);
  return rows;
}

std::vector<PlanRows> capture_plans_rows(const GraphExploration& found) {
  std::vector<PlanRows> list;
  for (const GraphPlanOutcome& outcome : found.plans)
    list.push_back(capture_plan_rows(found, outcome));
  return list;
}

std::vector<StoredFrontPoint> capture_front(const GraphExploration& found) {
  GraphPlanner& planner = *found.planner;
  if (!planner.has_frontier()) return {};
  double least_s = planner.baseline().span_s;
  for (const UniformRun& run : planner.uniform()) least_s = std::min(least_s, run.span_s);
  // Enough points for a line on a page.
  constexpr int points = 80;
  constexpr double longest = 1.3;  // of the default time
  std::vector<StoredFrontPoint> front;
  for (int i = 0; i <= points; ++i) {
    const double share = static_cast<double>(i) / points;
    const double time_s = least_s + share * (longest * planner.baseline().span_s - least_s);
    front.push_back({.granularity = "launch",
                     .point = i,
                     .time_s = time_s,
                     .bound_j = planner.bound_of_launches_j(time_s)});
  }
  return front;
}

std::int64_t store_graph_run(const std::filesystem::path& database, const GraphRequest& request,
                             const GraphExploration& found) {
  RunRows rows = capture_rows(request, found);
  rows.fronts = capture_front(found);
  return store_run(database, rows, capture_plans_rows(found), {.command = request.command});
}

}  // namespace rubato
