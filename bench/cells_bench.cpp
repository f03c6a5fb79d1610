// What it takes to simulate traces and pipelines, whose launches have cells, beside the same graphs
// with kernels of their own, which give the same totals: both in one run, in turn.
// docs/decisions/0016-one-simulator.md.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "models/table/gpu_model.hpp"
#include "sim/graph/simulator.hpp"
#include "sim/pipeline_run.hpp"
#include "sim/simulator.hpp"
#include "tests/as_graph.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/graph/ordered_graph.hpp"

namespace rubato {
namespace {

// Both in turn, so that what else the machine does meets both. The time with cells counts.
template <class Cells, class Graph>
void in_turn(benchmark::State& state, const Cells& cells, const Graph& graph) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  };
  double cells_s = 0.0, graph_s = 0.0, apart = 0.0;
  for (auto _ : state) {
    const auto begin = Clock::now();
    const double by_cells_j = cells();
    const auto between = Clock::now();
    const double by_graph_j = graph();
    const auto end = Clock::now();
    apart = std::max(apart, std::abs(by_graph_j / by_cells_j - 1.0));
    state.SetIterationTime(seconds(begin, between));
    cells_s += seconds(begin, between);
    graph_s += seconds(between, end);
  }
  if (apart > 1e-9) state.SkipWithError("other energy");
  state.counters["kernels_over_cells"] = graph_s / cells_s;
}

// A GPT-3-xl step, repeated; each kernel at one of two clocks. Argument: repeats, stall in us.
void trace(benchmark::State& state) {
  Trace trace = load_trace("gpt3-xl");
  const std::vector<KernelId> step = launches(trace.segments);
  trace.segments = {
      {.name = "step", .repeat = static_cast<std::uint32_t>(state.range(0)), .launches = step}};
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const GpuModel guessed(spec, trace);
  std::vector<double> time_s;
  for (std::size_t k = 0; k < trace.kernels.size(); ++k)
    time_s.push_back(guessed.evaluate(id_at<KernelId>(k), spec.default_clock).time_s);
  const ExecutionGraph graph = graph_of(trace, time_s);
  const GraphModel model(graph, spec, spec.default_clock);
  const GpuModel traced = guessed.with(model.coefficients());
  const ClockGrid grid(spec, {spec.default_clock, parse_clock_pair(spec, "1593/1005")});
  Plan plan;
  for (const KernelId kernel : step)
    plan.clock_of_site.push_back(id_at<ClockId>(index(kernel) % grid.size()));
  GraphPlan graph_plan = uniform_plan(graph, ClockId{0});
  for (std::size_t i = 0; i < graph.size(); ++i)
    graph_plan.clock_of_activity[i] =
        id_at<ClockId>(index(graph.activities()[i].kernel) % grid.size());
  const SwitchModel switching{
      .core = {.stall_s = 1e-6 * static_cast<double>(state.range(1))}, .mem = {}, .dwell_s = 0.0};
  GraphSimulator simulator(model, grid);
  TraceSimulator on_cells(trace, traced, grid);
  in_turn(
      state, [&] { return on_cells.totals(plan, switching).total.energy_j; },
      [&] { return simulator.run(graph_plan, {.switching = switching}).total_energy_j; });
  state.counters["launches"] = static_cast<double>(graph.size() - 1);
}
BENCHMARK(trace)
    ->ArgNames({"repeats", "stall_us"})
    ->ArgsProduct({{1, 10, 100}, {0, 50}})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// Passes at clocks that take turns. Arguments: stages, microbatches.
void pipeline(benchmark::State& state) {
  const PipelineSchedule schedule =
      make_schedule({.stages = static_cast<std::uint32_t>(state.range(0)),
                     .microbatches = static_cast<std::uint32_t>(state.range(1))});
  std::vector<double> time_s;
  for (std::size_t i = 0; i < schedule.passes.size(); ++i)
    time_s.push_back(1e-3 * static_cast<double>(50 + 7 * i % 40));
  const ExecutionGraph graph = as_graph(schedule, time_s);
  const GpuSpec spec = with_steady_idle_power(load_gpu_spec("a100-sxm4-80gb"));
  const GraphModel model(graph, spec, spec.default_clock);
  const ClockGrid grid(spec, {spec.default_clock, parse_clock_pair(spec, "1593/1005")});
  const PipelineWork work = as_pipeline(schedule, model, grid);
  PipelinePlan plan;
  for (std::size_t i = 0; i < schedule.passes.size(); ++i)
    plan.option_of_pass.push_back(id_at<OptionId>(i % grid.size()));
  GraphPlan graph_plan = uniform_plan(graph, ClockId{0});
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (graph.activities()[i].launch)
      graph_plan.clock_of_activity[i] = id_at<ClockId>(*graph.activities()[i].launch % grid.size());
  }
  PipelineSimulator on_cells(work);
  GraphSimulator simulator(model, grid);
  in_turn(
      state, [&] { return on_cells.run(plan).energy_j; },
      [&] { return simulator.run(graph_plan).total_energy_j; });
  state.counters["passes"] = static_cast<double>(schedule.passes.size());
}
BENCHMARK(pipeline)
    ->ArgNames({"stages", "microbatches"})
    ->Args({4, 8})
    ->Args({8, 128})
    ->Args({32, 256})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rubato
