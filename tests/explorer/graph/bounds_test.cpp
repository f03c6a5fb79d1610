// Bounds of launches that share a GPU, held to every plan of small graphs.

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/graph/planner.hpp"
#include "tests/explorer/graph/all_plans.hpp"

namespace rubato {
namespace {

constexpr double bound_rounding = 1e-9;

// GPUs of which each draws so many times as much as others.
GraphModel on_warm_gpus(const GraphModel& model, std::span<const double> power_factors) {
  std::vector<GpuThrottle> throttles;
  for (const double factor : power_factors) throttles.push_back({.power_factor = factor});
  return model.with_throttles(throttles);
}

// Launches of several streams that reach the power limit together run at a clock that none of them
// has alone. Low limits and warm GPUs make that common.
RC_GTEST_PROP(GraphBounds, BoundOptimumPlanInThisOrder, ()) {
  const auto streams = *rc::gen::inRange<std::uint32_t>(2, 5);
  const ExecutionGraph graph =
      arbitrary_graph({.most_gpus = 2, .most_launches = 8, .streams = streams});
  const double limit_w = *rc::gen::element(small_graph_spec().power_limit.limit_w, 250.0, 150.0);
  std::vector<double> factors;
  for (std::size_t g = 0; g < graph.gpus().size(); ++g)
    factors.push_back(*rc::gen::element(1.0, 0.6, 1.5));
  const GraphModel model =
      on_warm_gpus({graph, small_graph_spec(), small_graph_spec().default_clock, limit_w}, factors);
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
  const bool limited =
      LaunchCosts::for_bounds(model, grid).least_idle_w() < LaunchCosts(model, grid).least_idle_w();
  RC_CLASSIFY(limited, "some at once are held below the lowest clock");
}

// Ten launches on each of some streams of one GPU, of one kernel a stream.
ExecutionGraph streams_of(std::span<const KernelClass> kinds) {
  SmallGraph made(1, static_cast<std::uint32_t>(kinds.size()));
  for (int i = 0; i < 10; ++i) {
    for (std::uint32_t s = 0; s < kinds.size(); ++s)
      made.launch(s, std::string(1, static_cast<char>('a' + s)), kinds[s], 1e-4);
  }
  return std::move(made).build();
}

std::size_t launch_called(const ExecutionGraph& graph, const std::string& kernel) {
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (activity.kind == ActivityKind::launch &&
        graph.kernels()[index(activity.kernel)].name == kernel)
      return i;
  }
  return graph.size();
}

// What a run at the first clock takes at least, by costs of launches.
double summed_j(const LaunchCosts& costs, double span_s) {
  double all_j = costs.least_idle_w() * span_s;
  for (std::size_t i = 0; i < costs.model().graph().size(); ++i)
    all_j += costs.cost_j(i, ClockId{0});
  return all_j;
}

// Holds the bound of launches that can only run at the default clocks to what they take.
// @return whether costs of launches alone are more than that
bool alone_is_too_much(const GraphModel& model) {
  const ClockGrid grid(model.spec(), {model.spec().default_clock});
  const GraphQuestion question{Granularity::launch, 0.0};
  const GraphPlanResult result = GraphPlanner(model, grid).plan({&question, 1}).front();
  EXPECT_TRUE(result.found());
  const double most_j = result.run.total_energy_j * (1.0 + bound_rounding);
  EXPECT_LE(result.lower_bound_j, most_j) << model.power_limit_w();
  EXPECT_LE(summed_j(LaunchCosts::for_bounds(model, grid), result.run.span_s), most_j)
      << model.power_limit_w();
  return summed_j(LaunchCosts(model, grid), result.run.span_s) > most_j;
}

// Streams with one kernel each: together they draw more than each alone, and three more than two.
// Under some limit they are held where fewer are not, and take less energy there.
TEST(GraphBounds, LaunchesHeldByThePowerLimitTogetherTakeLessThanAlone) {
  using enum KernelClass;
  for (const std::vector<KernelClass>& kinds : {std::vector{gemm, memset},
                                                {gemm, memset, communication},
                                                {gemm, communication, communication},
                                                {gemm, memset, communication, communication}}) {
    const ExecutionGraph graph = streams_of(kinds);
    bool too_much = false;
    for (double limit_w = 100.0; limit_w <= 400.0; limit_w += 10.0) {
      const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock, limit_w);
      too_much |= alone_is_too_much(model);
    }
    EXPECT_TRUE(too_much) << kinds.size();
  }
}

// Three streams whose kernels make more sets than are tried one by one.
TEST(GraphBounds, NoSetOfManyKernelsTakesLess) {
  constexpr std::uint32_t streams = 3, kernels = 11;
  SmallGraph made(1, streams);
  for (std::uint32_t s = 0; s < streams; ++s) {
    for (std::uint32_t k = 0; k < kernels; ++k) {
      static constexpr std::array kinds{KernelClass::gemm, KernelClass::memset,
                                        KernelClass::communication};
      made.launch(s, fmt::format("kernel {} of {}", k, s), kinds[(s + k) % kinds.size()],
                  1e-4 * (1.0 + k));
    }
  }
  const ExecutionGraph graph = std::move(made).build();
  GpuSpec spec = small_graph_spec();
  spec.power_limit.regulated_frac = 0.7;
  int held = 0;  // launches that take less than alone
  for (double limit_w = 100.0; limit_w <= 400.0; limit_w += 25.0) {
    const GraphModel model(graph, spec, spec.default_clock, limit_w);
    const ClockGrid grid(spec, {spec.default_clock});
    const LaunchCosts alone(model, grid), least = LaunchCosts::for_bounds(model, grid);
    SharedGpu gpu = model.shared_gpu(spec.default_clock);
    for (std::uint32_t set = 0; set < kernels * kernels * kernels; ++set) {
      std::array<std::size_t, streams> launches{};  // activities of the graph
      std::array<std::uint32_t, streams> running{};
      for (std::uint32_t s = 0, rest = set; s < streams; ++s, rest /= kernels) {
        launches[s] = launch_called(graph, fmt::format("kernel {} of {}", rest % kernels, s));
        running[s] = graph.activities()[launches[s]].kernel.value;
      }
      const Sharing sharing = gpu.at(running);
      for (std::uint32_t s = 0; s < streams; ++s) {
        const std::size_t i = launches[s];
        const auto most_j = [&](const LaunchCosts& costs) {
          const double beyond_w = costs.leads(i) ? sharing.idle_w - costs.least_idle_w() : 0.0;
          return model.work()[i] * (sharing.active_w[s] + beyond_w) / sharing.launches_per_s[s] *
                 (1.0 + bound_rounding);
        };
        EXPECT_LE(least.cost_j(i, ClockId{0}), most_j(least)) << limit_w << " W";
        EXPECT_LE(least.kernel_times_s(least.kernel_of(i))[0] * sharing.launches_per_s[s],
                  1.0 + bound_rounding);
        if (alone.cost_j(i, ClockId{0}) > most_j(alone)) ++held;
      }
    }
  }
  EXPECT_GT(held, 0);
}

// A GPU that draws so many times as much does so above idle too: what runs beside its main stream
// costs so many times as much.
TEST(GraphBounds, LaunchesOfWarmGpusDrawIdlePowerOnce) {
  const ExecutionGraph graph =
      streams_of(std::array{KernelClass::gemm, KernelClass::communication});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid(model.spec(), {model.spec().default_clock});
  const LaunchCosts cold(model, grid);
  for (const double factor : {0.5, 0.8, 1.3, 2.0}) {
    const GraphModel warm_model = on_warm_gpus(model, std::array{factor});
    (void)alone_is_too_much(warm_model);
    const LaunchCosts warm(warm_model, grid);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      if (!cold.is_clocked(i) || cold.leads(i)) continue;
      const double expected_j = factor * cold.cost_j(i, ClockId{0});
      EXPECT_GT(expected_j, 0.0);
      EXPECT_NEAR(warm.cost_j(i, ClockId{0}), expected_j, bound_rounding * expected_j);
    }
  }
}

}  // namespace
}  // namespace rubato
