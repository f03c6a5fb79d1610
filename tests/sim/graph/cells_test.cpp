// Traces and pipelines are graphs whose launches have cells: where the cells are those of the model
// of a graph, its kernels give the same run. docs/decisions/0016-one-simulator.md.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/table/gpu_model.hpp"
#include "sim/graph/simulator.hpp"
#include "sim/jitter.hpp"
#include "sim/pipeline_run.hpp"
#include "sim/simulator.hpp"
#include "tests/arbitrary_switching.hpp"
#include "tests/as_graph.hpp"
#include "tests/sim/launch_clocks.hpp"
#include "tests/small_graph.hpp"
#include "traces/graph/ordered_graph.hpp"

namespace rubato {
namespace {

// Sums of some dozen numbers, and work left that is divided and multiplied again.

bool same(double a, double b, double whole) { return std::abs(a - b) <= rounding * whole; }

Trace arbitrary_trace() {
  constexpr std::array kinds{KernelClass::gemm, KernelClass::memset, KernelClass::elementwise};
  Trace trace;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    Kernel kernel;
    kernel.name = kernel.label = "kernel " + std::to_string(k);
    kernel.kind = kinds[k];
    kernel.measured_time_s = uniform(1e-5, 5e-4);
    trace.kernels.push_back(kernel);
  }
  const auto segments = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t s = 0; s < segments; ++s) {
    Segment segment{.name = "part " + std::to_string(s),
                    .repeat = *rc::gen::inRange<std::uint32_t>(1, 4),
                    .launches = {}};
    const auto launches = *rc::gen::inRange<std::size_t>(1, 6);
    for (std::size_t i = 0; i < launches; ++i)
      segment.launches.push_back(id_at<KernelId>(*rc::gen::inRange<std::size_t>(0, kinds.size())));
    trace.segments.push_back(segment);
  }
  return trace;
}

GraphPlan expanded(const Trace& trace, const Plan& plan, const ExecutionGraph& graph) {
  const std::vector<ClockId> of_launch = clocks_of_launches(trace, plan);
  GraphPlan expanded = uniform_plan(graph, ClockId{0});
  auto next = of_launch.begin();
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (graph.activities()[i].kind == ActivityKind::launch) expanded.clock_of_activity[i] = *next++;
  }
  return expanded;
}

RC_GTEST_PROP(CellsAndKernels, ATraceIsReplayedAsItsGraphIs, ()) {
  const Trace trace = arbitrary_trace();
  const GpuSpec& spec = small_graph_spec();
  std::vector<double> time_s;
  for (const Kernel& kernel : trace.kernels) time_s.push_back(*kernel.measured_time_s);
  const ExecutionGraph graph = graph_of(trace, time_s);
  const double limit_w = uniform(spec.power_limit.min_w, spec.power_limit.limit_w);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 4));
  const GraphModel model(graph, spec, spec.default_clock, limit_w);
  const GpuModel traced = GpuModel(spec, trace, limit_w).with(model.coefficients());
  SwitchModel switching;
  if (*rc::gen::inRange(0, 5) > 0) switching = arbitrary_switching();
  if (*rc::gen::arbitrary<bool>()) switching.mem = arbitrary_cost();
  Plan plan;
  for (const Segment& segment : trace.segments) {
    for (std::size_t i = 0; i < segment.launches.size(); ++i)
      plan.clock_of_site.push_back(id_at<ClockId>(*rc::gen::inRange<std::size_t>(0, grid.size())));
  }
  const SimResult celled = simulate(trace, traced, grid, plan, switching);
  const GraphRun run =
      GraphSimulator(model, grid).run(expanded(trace, plan, graph), {.switching = switching});
  const Totals& total = celled.total;
  RC_ASSERT(same(run.span_s, total.time_s, total.time_s));
  RC_ASSERT(same(run.total_energy_j, total.energy_j, total.energy_j));
  if (switching.is_free()) return;  // what nothing takes the graph counts where it changes
  const GpuTotals& gpu = run.gpus[0];
  RC_ASSERT(gpu.clock_changes == total.clock_switches);
  RC_ASSERT(gpu.late_launches == celled.late_launches);
  RC_ASSERT(same(gpu.stalled_s, celled.switching.time_s, total.time_s));
  RC_ASSERT(same(gpu.switch_energy_j, celled.switching.energy_j, total.energy_j));
  RC_CLASSIFY(celled.late_launches > 0, "launches wait for their clock");
  RC_CLASSIFY(total.power_limited_launches > 0, "launches are held by the power limit");
}

// Pipelines know clocks by their numbers: of those with names of their own one each.
ClockGrid clocks_by_number() {
  const ClockGrid drawn = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 5));
  const GpuSpec& spec = small_graph_spec();
  std::set<std::pair<double, double>> known;
  std::vector<ClockPair> pairs;
  for (const ClockPair& pair : drawn.pairs()) {
    const double mem_mhz = spec.mem_states[index(pair.mem)].mem_mhz;
    if (known.emplace(mem_mhz, pair.core_mhz.value_or(spec.core.max_mhz)).second)
      pairs.push_back(pair);
  }
  return {spec, std::move(pairs)};
}

// Stays where it is: the model refers to the graph.
struct SmallPipeline {
  PipelineSchedule schedule;
  std::vector<double> time_s;  ///< of each pass at the default clock
  ExecutionGraph graph;
  GpuSpec spec = with_steady_idle_power(small_graph_spec());
  ClockGrid grid;
  GraphModel model;
  PipelineWork work;
  PipelinePlan plan;

  SmallPipeline(PipelineSchedule made, std::vector<double> captured_s)
      : schedule(std::move(made)),
        time_s(std::move(captured_s)),
        graph(as_graph(schedule, time_s)),
        grid(clocks_by_number()),
        model(graph, spec, spec.default_clock),
        work(as_pipeline(schedule, model, grid)) {
    for (std::size_t i = 0; i < schedule.passes.size(); ++i)
      plan.option_of_pass.push_back(
          id_at<OptionId>(*rc::gen::inRange<std::size_t>(0, grid.size())));
  }
  SmallPipeline(const SmallPipeline&) = delete;
};

SmallPipeline arbitrary_pipeline() {
  PipelineShape shape{.kind = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_f_one_b,
                                                ScheduleKind::early_recompute, ScheduleKind::zb_h1),
                      .stages = *rc::gen::inRange<std::uint32_t>(1, 5),
                      .microbatches = *rc::gen::inRange<std::uint32_t>(1, 6),
                      .transfer_s = uniform(0.0, 2e-4)};
  if (*rc::gen::inRange(0, 4) == 0) {
    shape.kind = ScheduleKind::interleaved;
    shape.chunks = 2;
    shape.microbatches = shape.stages;
  }
  PipelineSchedule schedule = make_schedule(shape);
  std::vector<double> time_s;
  for (std::size_t i = 0; i < schedule.passes.size(); ++i) time_s.push_back(uniform(1e-5, 5e-4));
  return {std::move(schedule), std::move(time_s)};
}

// What jitter makes of launches.
std::vector<double> jitter_of(const ExecutionGraph& graph, const PipelineDisturbance& of) {
  std::vector<double> factor(graph.size(), 1.0);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const auto pass = graph.activities()[i].launch;
    if (pass) factor[i] = jitter_factor(of.jitter_frac, of.seed, *pass);
  }
  return factor;
}

// Where changes take nothing, launches that ask when they are ready do as those that ask ahead.
RC_GTEST_PROP(CellsAndKernels, APipelineIsReplayedAsItsGraphIs, ()) {
  const SmallPipeline made = arbitrary_pipeline();
  PipelineRunOptions options;
  if (*rc::gen::arbitrary<bool>()) options.disturbance.jitter_frac = uniform(0.0, 0.3);
  const GraphModel model = made.model.with_slowdown(jitter_of(made.graph, options.disturbance));
  GraphPlan plan = uniform_plan(made.graph, ClockId{0});
  for (std::size_t i = 0; i < made.graph.size(); ++i) {
    const Activity& activity = made.graph.activities()[i];
    if (activity.launch)
      plan.clock_of_activity[i] = id_at<ClockId>(index(made.plan.option_of_pass[*activity.launch]));
  }
  const PipelineRun celled = simulate(made.work, made.plan, options);
  const GraphRun run = GraphSimulator(model, made.grid).run(plan);
  RC_ASSERT(same(run.span_s, celled.time_s, celled.time_s));
  RC_ASSERT(same(run.total_energy_j, celled.energy_j, celled.energy_j));
  for (std::size_t i = 0; i < made.graph.size(); ++i) {
    const Activity& activity = made.graph.activities()[i];
    if (!activity.launch) continue;
    RC_ASSERT(same(run.start_s[i], celled.passes[*activity.launch].start_s, celled.time_s));
    RC_ASSERT(same(run.end_s[i], celled.passes[*activity.launch].end_s, celled.time_s));
  }
}

// A stall of a stage that is asked for its next clock.
struct Stall {
  double from_s = 0.0;
  PassId before;  ///< which pass
  ClockId to;
};

// When stages stall, from the rules: a change is asked for so early that its lead is over when the
// pass before ends, if dwell and lead since the change before leave that, whose clock was in force
// at least as long as the last passes of the iteration before took.
std::vector<Stall> stalls_of(const SmallPipeline& made, const PipelineRun& run,
                             const SwitchModel& switching) {
  std::vector<Stall> stalls;
  const auto option = [&](PassId pass) { return index(made.plan.option_of_pass[index(pass)]); };
  for (const std::vector<PassId>& row : made.schedule.rows()) {
    double effect_s = 0.0;
    for (std::size_t i = row.size(); i-- > 0 && option(row[i]) == option(row.back());)
      effect_s -= run.passes[index(row[i])].end_s - run.passes[index(row[i])].start_s;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const PassId before = i > 0 ? row[i - 1] : row.back();
      if (option(row[i]) == option(before)) continue;
      const ClockId to = id_at<ClockId>(option(row[i]));
      const SwitchCost cost =
          switching.change(made.grid[id_at<ClockId>(option(before))], made.grid[to]);
      const double free_s = i > 0 ? run.passes[index(before)].end_s : 0.0;
      const double from_s = std::max(free_s, effect_s + switching.dwell_s + cost.lead_s);
      effect_s = from_s + cost.stall_s;
      stalls.push_back({from_s, row[i], to});
    }
  }
  std::ranges::sort(stalls, {}, &Stall::from_s);
  return stalls;
}

// Stages change clocks while they wait, and passes wait for their clocks, which launches that ask
// do not: the same run is that of clocks asked for by time, and passes that are held back until
// then.
RC_GTEST_PROP(CellsAndKernels, APipelineThatChangesClocksIsOneOfClocksByTime, ()) {
  const SmallPipeline made = arbitrary_pipeline();
  const SwitchModel switching = arbitrary_switching();
  PipelineRunOptions options{.switching = switching, .disturbance = {}};
  if (*rc::gen::arbitrary<bool>()) options.disturbance.jitter_frac = uniform(0.0, 0.3);
  const PipelineRun celled = simulate(made.work, made.plan, options);

  // Each request a little after the one before, so that none comes before the end of a pass that
  // sums of other terms make later by rounding.
  constexpr double apart_s = 1e-14;
  std::vector<std::vector<TimedClock>> timed;
  for (const std::vector<PassId>& row : made.schedule.rows())
    timed.push_back({{0.0, id_at<ClockId>(index(made.plan.option_of_pass[index(row.back())]))}});
  std::vector<double> release_s(made.schedule.passes.size(), 0.0);
  double later_s = 0.0;
  for (const Stall& stall : stalls_of(made, celled, switching)) {
    const double at_s = stall.from_s + (later_s += apart_s);
    timed[made.schedule.passes[index(stall.before)].stage].push_back({at_s, stall.to});
    release_s[index(stall.before)] = at_s;
  }
  const ExecutionGraph graph = as_graph(made.schedule, made.time_s, release_s);
  const GraphModel model = GraphModel(graph, made.spec, made.spec.default_clock)
                               .with_slowdown(jitter_of(graph, options.disturbance));
  GraphPlan plan = uniform_plan(graph, ClockId{0});
  plan.timed = std::move(timed);
  const GraphRun run = GraphSimulator(model, made.grid).run(plan, {.switching = switching});
  RC_ASSERT(same(run.span_s, celled.time_s, celled.time_s));
  RC_ASSERT(same(run.total_energy_j, celled.energy_j, celled.energy_j));
  std::uint64_t changes = 0;
  double switching_j = 0.0;
  for (const GpuTotals& gpu : run.gpus) {
    changes += gpu.clock_changes;
    switching_j += gpu.switch_energy_j - gpu.stalled_s * made.work.blocked_power_w;
  }
  RC_ASSERT(changes == celled.clock_switches);
  RC_ASSERT(same(switching_j, celled.switch_energy_j, celled.energy_j));
  RC_CLASSIFY(changes > 0, "clocks change");
}

}  // namespace
}  // namespace rubato
