#include "explorer/graph/contention/contended_bound.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/graph/contention/longest_times.hpp"
#include "explorer/graph/planner.hpp"
#include "tests/explorer/graph/all_plans.hpp"

namespace rubato {
namespace {

constexpr double bound_rounding = 1e-9;

// A limit that what runs on three streams at once does not reach.
const GpuSpec& unlimited_spec() {
  static const GpuSpec spec = [] {
    GpuSpec roomy = small_graph_spec();
    roomy.power_limit.limit_w = roomy.power_limit.max_w = 1500.0;
    return roomy;
  }();
  return spec;
}

// Prices that mean nothing: paths through the graph, each with a price.
ArcFlow arbitrary_flow(const ExecutionGraph& graph) {
  ArcFlow flow = arc_flow(graph, std::vector<double>(graph.arcs(), 0.0));
  const int paths = *rc::gen::inRange(0, 4);
  for (int k = 0; k < paths; ++k) {
    std::vector<double> end_s;
    for (std::size_t i = 0; i < graph.size(); ++i) end_s.push_back(uniform(0.0, 1.0));
    raise_latest_path(graph, end_s, uniform(0.0, 400.0), flow);
  }
  return flow;
}

// Overlap, collectives of one rank and of several, hosts: by the simulator, with all it knows of
// what runs beside what, no plan takes less than the bound, whatever prices it starts from.
RC_GTEST_PROP(ContendedBound, IsBelowEveryPlan, ()) {
  const auto streams = *rc::gen::inRange<std::uint32_t>(2, 4);
  const ExecutionGraph graph =
      arbitrary_graph({.most_gpus = 2, .most_launches = 8, .streams = streams});
  const GpuSpec& spec = streams == 2 ? small_graph_spec() : unlimited_spec();
  const GraphModel model(graph, spec, spec.default_clock);
  const ClockGrid grid = arbitrary_clocks(clocks_for(clocked_launches(model)));
  const LaunchCosts costs(model, grid);
  ContendedBound bound(costs, grid);
  const Frontier frontier = sweep_frontier(crash_problem(launch_work(costs)));
  const auto grain = *rc::gen::element(Granularity::launch, Granularity::kernel, Granularity::gpu);
  std::uint32_t count = 0;
  const auto unit = units_by_definition(model, grain, count);
  const LaunchUnits units(costs, count, unit);
  const AllPlans all(model, grid, grain);
  for (const AllPlans::One& plan : all.plans) {
    if (*rc::gen::inRange<std::size_t>(0, all.plans.size()) >= 4) continue;
    const double bound_j =
        bound.least_j({plan.span_s, frontier.least_time_s}, arbitrary_flow(graph),
                      grain == Granularity::launch ? nullptr : &units);
    RC_ASSERT(bound_j <= all.least_j(plan.span_s) * (1.0 + bound_rounding));
  }
  RC_CLASSIFY(bound.matters(), "something can run beside something");
  RC_CLASSIFY(bound.jointly_limited(), "the power limit holds two at once");
}

// Two streams of one GPU and one clock: there is one plan, and where launches may run beside each
// other the bound is what it draws but for the edges of its windows.
RC_GTEST_PROP(ContendedBound, OfOneClockIsNearItsPlan, ()) {
  const ExecutionGraph graph =
      arbitrary_graph({.most_gpus = 1, .most_launches = 16, .gaps = false, .collectives = false});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(1);
  const GraphRun run = GraphSimulator(model, grid).run(uniform_plan(graph, ClockId{0}));
  const LaunchCosts costs(model, grid);
  ContendedBound bound(costs, grid);
  const std::vector<double> free_arcs(graph.arcs(), 0.0);
  const double near_j =
      bound.least_j({run.span_s, run.span_s}, arc_flow(graph, free_arcs), nullptr);
  RC_ASSERT(near_j <= run.total_energy_j * (1.0 + bound_rounding));
  if (bound.matters()) RC_ASSERT(near_j >= run.total_energy_j * 0.95);
  for (int flow = 0; flow < 3; ++flow) {
    const double bound_j = bound.least_j({run.span_s, run.span_s}, arbitrary_flow(graph), nullptr);
    RC_ASSERT(bound_j <= run.total_energy_j * (1.0 + bound_rounding));
  }
  RC_CLASSIFY(bound.matters(), "something can run beside something");
}

// In every replay that ends in time, whatever clocks are set.
RC_GTEST_PROP(ContendedBound, SideActivitiesRunBesideWhatTheyMay, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 2, .most_launches = 16});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock,
                         *rc::gen::element(500.0, 250.0, 150.0));
  const ClockGrid grid = arbitrary_clocks(4);
  const LaunchCosts costs(model, grid);
  PairCosts pairs(costs, grid);
  const std::vector<double> least_s = DurationRange(costs).least_s;
  const std::vector<double> most_s = longest_times_s(costs, pairs);
  GraphSimulator simulator(model, grid);
  for (int k = 0; k < 10; ++k) {
    const GraphRun run = simulator.run(arbitrary_plan(graph, grid));
    const double late_s = bound_rounding * run.span_s;
    std::vector<GpuLanes> all = gpu_lanes(costs);
    for (std::uint32_t g = 0; g < all.size(); ++g) {
      GpuLanes& lanes = all[g];
      if (lanes.side.empty()) continue;
      const std::vector<double> passed_s = most_passed_s(costs, pairs, lanes);
      narrow(graph, {least_s, most_s, passed_s, run.span_s}, g, lanes);
      find_pauses(graph, {}, lanes);
      for (std::uint32_t p = 0; p < lanes.main.size(); ++p) {
        const double start_s = run.start_s[lanes.main[p]], end_s = run.end_s[lanes.main[p]];
        const auto beside = [&](double from_s, double to_s) {
          return std::min(end_s, to_s) - std::max(start_s, from_s) > late_s;
        };
        double before_s = 0.0;
        for (std::size_t s = 0; s <= lanes.side.size(); ++s) {
          const bool last = s == lanes.side.size();
          const double from_s = last ? run.span_s : run.start_s[lanes.side[s].activity];
          const SidePause& pause = lanes.pauses[s];
          if (beside(before_s, from_s)) RC_ASSERT(p >= pause.first && p < pause.last);
          if (last) break;
          before_s = run.end_s[lanes.side[s].departure];
          if (beside(from_s, before_s))
            RC_ASSERT(p >= lanes.side[s].first && p < lanes.side[s].last);
        }
      }
    }
  }
}

// What waits for the last rank is counted from where the longest times have it arrive.
RC_GTEST_PROP(ContendedBound, NoActivityTakesLongerThanTheLongestTimes, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 12});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock,
                         *rc::gen::element(500.0, 250.0, 150.0));
  const ClockGrid grid = arbitrary_clocks(4);
  const LaunchCosts costs(model, grid);
  PairCosts pairs(costs, grid);
  const std::vector<double> longest_s = longest_times_s(costs, pairs);
  std::vector<double> last_s(graph.size());
  earliest_starts(graph, longest_s, last_s);
  GraphSimulator simulator(model, grid);
  for (int k = 0; k < 20; ++k) {
    const GraphRun run = simulator.run(arbitrary_plan(graph, grid));
    for (std::size_t i = 0; i < graph.size(); ++i) {
      RC_ASSERT(run.end_s[i] - run.start_s[i] <= longest_s[i] * (1.0 + bound_rounding) + 1e-15);
      RC_ASSERT(run.start_s[i] <= last_s[i] * (1.0 + bound_rounding) + 1e-15);
    }
  }
}

// Two ranks with all-reduces beside compute, one of them slower: prices of one kernel's collectives
// together, searched along each rank's stream. By prices of each launch's own path the gap was 12 %
// and more.
TEST(ContendedBound, IsCloseForRanksThatWaitForEachOther) {
  SmallGraph made(2);
  constexpr int layers = 10, launches = 20;
  for (int layer = 0; layer < layers; ++layer) {
    std::vector<SmallGraph::After> after;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      DraftId last{};
      for (int i = 0; i < launches; ++i)
        last = made.launch(2 * rank, "gemm " + std::to_string(i % 3), KernelClass::gemm,
                           1e-4 * (1.0 + 0.5 * (i % 3)) * (1.0 + 0.03 * rank));
      after.push_back({last});
    }
    if (layer + 1 < layers) made.collective({1, 3}, 0.6 * launches * 1e-4, after);
  }
  const ExecutionGraph graph = std::move(made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const GpuSpec& spec = small_graph_spec();
  std::vector<ClockPair> pairs{spec.default_clock};
  for (const double mhz : {1290.0, 1170.0, 1050.0, 930.0})
    pairs.push_back({.mem = spec.default_clock.mem, .core_mhz = mhz});
  const std::vector<GraphQuestion> questions{{Granularity::launch, 0.02},
                                             {Granularity::launch, 0.05}};
  for (const GraphPlanResult& result :
       GraphPlanner(model, ClockGrid(spec, std::move(pairs))).plan(questions)) {
    ASSERT_TRUE(result.found());
    EXPECT_LT(result.gap_frac, 0.03) << result.question.slack_frac;
  }
}

// Two streams that are full, held by the power limit: as slow as beside each other launches leave
// hardly any time, so that a second seems to be worth kilowatts.
TEST(ContendedBound, FindsPricesWhereTimeIsShort) {
  SmallGraph made(1);
  for (std::uint32_t i = 0; i < 60; ++i) {
    for (const std::uint32_t stream : {0U, 1U})
      made.launch(stream, "gemm " + std::to_string((i + stream) % 5), KernelClass::gemm,
                  1e-4 * (1.0 + (i + stream) % 5));
  }
  const ExecutionGraph graph = std::move(made).build();
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const GraphModel model(graph, spec, spec.default_clock);
  std::vector<ClockPair> pairs{spec.default_clock};
  for (const double mhz : {1290.0, 1170.0, 1050.0, 930.0})
    pairs.push_back({.mem = spec.default_clock.mem, .core_mhz = mhz});
  const GraphQuestion question{Granularity::launch, 0.01};
  const GraphPlanResult result =
      GraphPlanner(model, ClockGrid(spec, std::move(pairs))).plan({&question, 1}).front();
  ASSERT_TRUE(result.found());
  EXPECT_LT(result.gap_frac, 0.01);
}

// A collective that waits for another rank draws less while a launch of a third stream runs. There
// is one clock, so one plan, and the bound is close to it.
TEST(ContendedBound, FurtherStreamsPayForWhatCollectivesDrawLessBesideThem) {
  SmallGraph made(2, 3);
  constexpr int launches = 20;
  for (int i = 0; i < launches; ++i) {
    for (const std::uint32_t stream : {0U, 3U})
      made.launch(stream, "gemm", KernelClass::gemm, 1e-4);
  }
  const DraftId late = made.launch(3, "gemm", KernelClass::gemm, 1e-4);
  made.collective({1, 4}, {{}, {{late}}}, 1e-5);
  for (int i = 0; i < 3; ++i) made.launch(2, "copy", KernelClass::elementwise, 2e-4);
  const ExecutionGraph graph = std::move(made).build();
  const GraphModel model(graph, unlimited_spec(), unlimited_spec().default_clock);
  const ClockGrid grid(small_graph_spec(), {small_graph_spec().default_clock});
  const GraphRun run = GraphSimulator(model, grid).run(uniform_plan(graph, ClockId{0}));
  const LaunchCosts costs(model, grid);
  ContendedBound bound(costs, grid);
  const double bound_j = bound.least_j(
      {run.span_s, run.span_s}, arc_flow(graph, std::vector<double>(graph.arcs(), 0.0)), nullptr);
  EXPECT_LE(bound_j, run.total_energy_j * (1.0 + bound_rounding));
  EXPECT_GE(bound_j, run.total_energy_j * 0.9);
}

// The same of the planner's own answers, and its plans are not below either.
RC_GTEST_PROP(ContendedBound, BoundOptimumPlanInThisOrder, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 2, .most_launches = 8});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(clocks_for(clocked_launches(model)));
  std::vector<GraphQuestion> questions;
  for (const double slack : {0.0, 0.05, 0.4}) {
    for (const Granularity grain :
         {Granularity::gpu, Granularity::pass, Granularity::kernel, Granularity::launch})
      questions.push_back({grain, slack});
  }
  for (const GraphPlanResult& result : GraphPlanner(model, grid).plan(questions)) {
    const AllPlans all(model, grid, result.question.grain);
    const double least_j = all.least_j(result.deadline_s * (1.0 + bound_rounding));
    RC_ASSERT(result.found());
    RC_ASSERT(result.lower_bound_j <= least_j * (1.0 + bound_rounding));
    RC_ASSERT(least_j <= result.run.total_energy_j * (1.0 + bound_rounding));
  }
}

}  // namespace
}  // namespace rubato
