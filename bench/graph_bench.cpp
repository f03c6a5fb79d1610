// Execution graphs: the simulator, every single clock of a grid, and a plan per launch, over
// launches, streams and ranks. docs/graphs.md, section 9; bench/tables/growth.py draws it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "explorer/graph/planner.hpp"
#include "traces/graph/graph_builder.hpp"

namespace rubato {
namespace {

struct MadeGraph {
  std::size_t launches = 0;  // of each rank
  std::uint32_t streams = 1, ranks = 1;
  // 0: one launch at a time, 1: each eighth launch on a side stream, beside the others, 2: all
  // streams take turns, and all are full.
  std::int64_t overlap = 0;
};

// A training step as captures show it: a host that launches ahead, kernels of 10 to 90 us in a
// repeating order, a side stream for each eighth of them, events, a
// collective of all ranks after each 64 launches.
class GraphMaker {
 public:
  explicit GraphMaker(const MadeGraph& shape) : shape_(shape) {
    for (std::uint32_t k = 0; k < kernels; ++k) {
      constexpr std::array kinds{KernelClass::gemm, KernelClass::elementwise,
                                 KernelClass::layernorm, KernelClass::gemm, KernelClass::softmax};
      Kernel kernel;
      kernel.name = kernel.label = "kernel " + std::to_string(k);
      kernel.kind = kinds[k % kinds.size()];
      (void)builder_.add_kernel(kernel);
    }
    Kernel collective;
    collective.name = collective.label = "all-reduce";
    collective.kind = KernelClass::communication;
    collective_ = builder_.add_kernel(collective);
    for (std::uint32_t r = 0; r < shape.ranks; ++r) {
      const GpuId gpu = builder_.add_gpu({r, 0, "made"});
      for (std::uint32_t s = 0; s < shape.streams; ++s) builder_.add_stream({gpu, s});
    }
    last_.resize(shape.ranks * shape.streams);
    last_launch_.resize(shape.ranks);
    host_.resize(shape.ranks);
  }

  ExecutionGraph graph() && {
    for (std::size_t i = 0; i < shape_.launches; ++i) {
      for (std::uint32_t r = 0; r < shape_.ranks; ++r) launch(r, i);
      if (shape_.ranks > 1 && i % 64 == 63) collective();
    }
    return std::move(builder_).build("made").graph;
  }

 private:
  static constexpr std::uint32_t kernels = 20;
  static constexpr double call_s = 4e-6, launch_s = 6e-6, event_s = 2e-6, transfer_s = 2e-4;

  struct After {
    DraftId from;
    double lag_s;
    ArcKind kind;
  };

  DraftId add(Activity activity, const std::vector<After>& after) {
    for (const After& one : after)
      activity.start_s = std::max(activity.start_s, builder_[one.from].end_s() + one.lag_s);
    const DraftId id = builder_.add(activity);
    for (const After& one : after) builder_.add_arc(one.from, id, one.lag_s, one.kind);
    return id;
  }

  void launch(std::uint32_t rank, std::size_t i) {
    std::vector<After> before;
    if (host_[rank]) before.push_back({*host_[rank], call_s, ArcKind::host_order});
    host_[rank] = add({.kind = ActivityKind::host, .rank = rank}, before);
    const auto k = static_cast<std::uint32_t>(i % kernels);
    // Each eighth launch on a side stream.
    const std::size_t side = shape_.overlap == 2                 ? i % shape_.streams
                             : shape_.streams == 1 || i % 8 != 7 ? 0
                                                                 : 1 + i / 8 % (shape_.streams - 1);
    const std::uint32_t stream = rank * shape_.streams + static_cast<std::uint32_t>(side);
    std::vector<After> after{{*host_[rank], launch_s, ArcKind::launch_call}};
    if (last_[stream]) after.push_back({*last_[stream], 1e-6, ArcKind::stream_order});
    const bool waits = shape_.overlap == 0 || i % 32 == 31;
    if (waits && last_launch_[rank] && last_launch_[rank] != last_[stream])
      after.push_back({*last_launch_[rank], event_s, ArcKind::event});
    last_[stream] = last_launch_[rank] =
        add({.kind = ActivityKind::launch,
             .pass = 2 * i < shape_.launches ? Pass::forward : Pass::backward,
             .stream = stream,
             .kernel = KernelId{k},
             .rank = rank,
             .duration_s = 1e-6 * (10.0 + 80.0 * (k * 7 % kernels) / kernels + rank)},
            after);
  }

  // On the last stream of each rank.
  void collective() {
    std::vector<After> arrivals;
    for (std::uint32_t r = 0; r < shape_.ranks; ++r) {
      const std::uint32_t stream = (r + 1) * shape_.streams - 1;
      arrivals.push_back(
          {on_stream(ActivityKind::arrival, r, stream, {}), 0.0, ArcKind::collective});
    }
    const DraftId transfer =
        add({.kind = ActivityKind::transfer, .kernel = collective_, .duration_s = transfer_s},
            arrivals);
    for (std::uint32_t r = 0; r < shape_.ranks; ++r) {
      const std::uint32_t stream = (r + 1) * shape_.streams - 1;
      last_launch_[r] =
          on_stream(ActivityKind::departure, r, stream, After{transfer, 0.0, ArcKind::collective});
    }
  }

  DraftId on_stream(ActivityKind kind, std::uint32_t rank, std::uint32_t stream,
                    const std::optional<After>& and_after) {
    std::vector<After> after;
    if (last_[stream]) after.push_back({*last_[stream], 0.0, ArcKind::stream_order});
    if (and_after) after.push_back(*and_after);
    const DraftId id =
        add({.kind = kind, .stream = stream, .kernel = collective_, .rank = rank}, after);
    last_[stream] = id;
    return id;
  }

  MadeGraph shape_;
  GraphBuilder builder_;
  KernelId collective_;
  std::vector<std::optional<DraftId>> last_, last_launch_, host_;
};

MadeGraph shape_of(const benchmark::State& state) {
  return {.launches = static_cast<std::size_t>(state.range(0)),
          .streams = static_cast<std::uint32_t>(state.range(1)),
          .ranks = static_cast<std::uint32_t>(state.range(2)),
          .overlap = state.range(3)};
}

const std::vector<std::string> arguments{"launches", "streams", "ranks", "overlap"};

// One launch after the other is without contention. A capture gives its own span back.
void simulate(benchmark::State& state) {
  const MadeGraph shape = shape_of(state);
  const ExecutionGraph graph = GraphMaker(shape).graph();
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const GraphModel model(graph, spec, spec.default_clock);
  const ClockGrid grid(spec, {spec.default_clock});
  GraphSimulator simulator(model, grid);
  const GraphPlan plan = uniform_plan(graph, grid.default_clock());
  GraphRun run;
  for (auto _ : state) run = simulator.run(plan);
  if (std::abs(run.span_s / graph.captured_span_s() - 1.0) > 1e-6)
    state.SkipWithError("other span");
  const double launches = static_cast<double>(shape.launches) * shape.ranks;
  state.counters["launches_per_s"] =
      benchmark::Counter(launches, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["span_error"] = run.span_s / graph.captured_span_s() - 1.0;
}
BENCHMARK(simulate)
    ->ArgNames(arguments)
    ->ArgsProduct({{1'000, 10'000, 100'000, 1'000'000}, {2}, {1}, {0, 1}})
    ->ArgsProduct({{100'000}, {1, 4, 8, 16}, {1}, {0, 1}})
    ->ArgsProduct({{100'000}, {2, 4, 8, 16}, {1}, {2}})
    ->ArgsProduct({{10'000}, {2}, {2, 4, 8, 16, 32}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

const GpuSpec& wide_spec() {
  static const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  return spec;
}

// Every clock of a grid of 763, two streams and host.
void single_clock(benchmark::State& state) {
  const ExecutionGraph graph = GraphMaker(shape_of(state)).graph();
  const GraphModel model(graph, wide_spec(), wide_spec().default_clock);
  const ClockGrid grid = make_clock_grid(wide_spec(), "full");
  std::vector<UniformRun> runs;
  for (auto _ : state) runs = sweep_uniform(model, grid);
  if (runs.size() != grid.size()) state.SkipWithError("clocks are missing");
  state.counters["clocks"] = static_cast<double>(grid.size());
}
BENCHMARK(single_clock)
    ->ArgNames(arguments)
    ->ArgsProduct({{1'000, 3'000, 10'000}, {2}, {1}, {0, 1}})
    ->ArgsProduct({{1'000}, {2}, {2, 4, 8}, {1}})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

// From the graph to a plan per launch with its bound, 1 % of time allowed, the sweep of single
// clocks included.
void plan_per_launch(benchmark::State& state) {
  const ExecutionGraph graph = GraphMaker(shape_of(state)).graph();
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const GraphModel model(graph, spec, spec.default_clock);
  const ClockGrid grid = make_clock_grid(spec, "full");
  const GraphQuestion question{Granularity::launch, 0.01};
  std::vector<GraphPlanResult> found;
  for (auto _ : state) found = GraphPlanner(model, grid).plan({&question, 1});
  if (!found.front().found()) return state.SkipWithError("no plan");
  if (found.front().run.span_s > found.front().deadline_s * (1.0 + 1e-9))
    state.SkipWithError("late");
  state.counters["gap_pct"] = 100.0 * found.front().gap_frac;
  state.counters["saved_pct"] =
      100.0 * (1.0 - found.front().run.total_energy_j /
                         GraphPlanner(model, grid).baseline().total_energy_j);
}
BENCHMARK(plan_per_launch)
    ->ArgNames(arguments)
    ->ArgsProduct({{300, 1'000, 3'000, 10'000}, {2}, {1}, {0, 1}})
    ->ArgsProduct({{1'000}, {1, 4, 8}, {1}, {1}})
    ->ArgsProduct({{1'000}, {2}, {1}, {2}})
    ->ArgsProduct({{300}, {2}, {2, 4, 8}, {1}})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
