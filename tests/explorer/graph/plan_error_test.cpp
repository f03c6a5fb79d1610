#include "explorer/graph/plan_error.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "models/validation/model_errors.hpp"
#include "tests/made_exploration.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// A chain of two launches beside a launch that ends earlier.
struct ChainBesideOne {
  ChainBesideOne() {
    GraphBuilder builder;
    const GpuId gpu = builder.add_gpu({0, 0, "A100"});
    for (std::uint32_t s = 0; s < 2; ++s) builder.add_stream({gpu, s});
    const auto launch = [&](std::uint32_t stream, const char* name, double start_s, double time_s) {
      Activity activity{.kind = ActivityKind::launch, .stream = stream};
      Kernel kernel;
      kernel.name = name;
      activity.kernel = builder.add_kernel(kernel);
      activity.start_s = start_s;
      activity.duration_s = time_s;
      return builder.add(activity);
    };
    const DraftId first = launch(0, "first", 0.0, 0.010);
    const DraftId second = launch(0, "second", 0.011, 0.020);
    (void)launch(1, "beside", 0.0, 0.005);
    builder.add_arc(first, second, 0.001, ArcKind::stream_order);
    graph = std::move(builder).build("test").graph;
  }
  ExecutionGraph graph;
};

GpuSpec spec_with_errors(const RelativeErrors& shared, const RelativeErrors& own) {
  GpuSpec spec = small_graph_spec();
  spec.fit_errors.clear();
  write_errors({shared, own}, spec);
  return spec;
}

class PlanErrorOfAChain : public ::testing::Test {
 protected:
  [[nodiscard]] PlanError error_at(const GpuSpec& spec, double core_mhz) const {
    const ClockPair low{spec.default_clock.mem, core_mhz};
    const ClockGrid grid(spec, {spec.default_clock, low});
    const GraphModel model(made_.graph, spec, spec.default_clock);
    const GraphPlan plan = uniform_plan(made_.graph, *grid.find(low));
    return PlanErrors(model, grid).of(plan, GraphSimulator(model, grid).run(plan));
  }
  ChainBesideOne made_;
};

TEST_F(PlanErrorOfAChain, ThePathThatEndsLastIsTheChain) {
  const GraphModel model(made_.graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid(small_graph_spec(), {small_graph_spec().default_clock});
  const GraphRun run =
      GraphSimulator(model, grid).run(uniform_plan(made_.graph, grid.default_clock()));
  std::vector<std::string> names;
  for (const ActivityId id : last_path(made_.graph, run)) {
    const Activity& activity = made_.graph.activities()[index(id)];
    if (activity.kind == ActivityKind::launch)
      names.push_back(made_.graph.kernels()[index(activity.kernel)].name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"second", "first"}));
}

TEST_F(PlanErrorOfAChain, NothingIsUncertainAtTheDefaultClocks) {
  const GpuSpec spec = spec_with_errors({0.1, 0.1}, {0.1, 0.1});
  const ClockGrid grid(spec, {spec.default_clock});
  const GraphModel model(made_.graph, spec, spec.default_clock);
  const GraphPlan plan = uniform_plan(made_.graph, grid.default_clock());
  const PlanError error = PlanErrors(model, grid).of(plan, GraphSimulator(model, grid).run(plan));
  EXPECT_EQ(error.low.time_frac, 0.0);
  EXPECT_EQ(error.high.energy_frac, 0.0);
}

// All kernels err alike: the run by the launches on its path, 30 of 31 ms, energy by all of it.
// What is drawn has the deviation of change errors, so the inner 90 % reach 1.645 of it.
TEST_F(PlanErrorOfAChain, SharedErrorsMoveTheWholeRun) {
  const PlanError small = error_at(spec_with_errors({0.01, 0.01}, {}), 900.0),
                  large = error_at(spec_with_errors({0.02, 0.02}, {}), 900.0);
  EXPECT_NEAR(large.high.time_frac, 2.0 * small.high.time_frac, 0.05 * large.high.time_frac);
  EXPECT_NEAR(large.low.energy_frac, 2.0 * small.low.energy_frac, -0.05 * large.low.energy_frac);
  EXPECT_NEAR(-small.low.time_frac, small.high.time_frac, 0.25 * small.high.time_frac);
  EXPECT_GT(small.high.time_frac, 1.2 * 0.01);
  EXPECT_LT(small.high.time_frac, 3.0 * 0.01);
}

TEST_F(PlanErrorOfAChain, ErrorsOfItsOwnAverageOut) {
  const PlanError shared = error_at(spec_with_errors({0.01, 0.01}, {}), 900.0);
  // Student's t at this scale has the same deviation.
  const PlanError own = error_at(spec_with_errors({}, {0.007, 0.007}), 900.0);
  EXPECT_LT(own.high.time_frac, shared.high.time_frac);
  EXPECT_GT(own.high.time_frac, 0.3 * shared.high.time_frac);
}

// Campaigns are of measured kernels; captured ones they do not make more certain.
TEST_F(PlanErrorOfAChain, CampaignsWidenAndNeverNarrow) {
  GpuSpec spec = spec_with_errors({0.01, 0.01}, {0.01, 0.01});
  const PlanError drawn = error_at(spec, 900.0);
  write_scales({{}, {2.0, 0.5}}, 0, spec);
  const PlanError scaled = error_at(spec, 900.0);
  EXPECT_EQ(scaled.low.energy_frac, drawn.low.energy_frac);
  EXPECT_EQ(scaled.high.energy_frac, drawn.high.energy_frac);
  EXPECT_GT(scaled.high.time_frac, 1.8 * drawn.high.time_frac);
  EXPECT_LT(scaled.high.time_frac, 2.2 * drawn.high.time_frac);
  EXPECT_LT(scaled.low.time_frac, 1.8 * drawn.low.time_frac);
}

TEST_F(PlanErrorOfAChain, ClocksNearTheDefaultErrLess) {
  const GpuSpec spec = spec_with_errors({0.02, 0.02}, {0.01, 0.01});
  EXPECT_LT(error_at(spec, 1350.0).high.time_frac, 0.9 * error_at(spec, 1005.0).high.time_frac);
}

// One draw played again with kernels that are as much slower: the first order is what the run
// takes more.
TEST(PlanErrorsOfACapture, FirstOrderIsTheReplay) {
  const GraphExploration found =
      explore_captured(made_exploration_input({.layers = 4}, {{GraphGrain::iteration, 0.05}}));
  const GraphRun& run = found.plans.front().result.run;
  const ExecutionGraph& graph = found.run->graph;
  constexpr double slower = 1.01;
  std::vector<std::optional<KernelCoefficients>> coefficients(graph.kernels().size());
  double path_s = 0.0;
  for (const ActivityId id : last_path(graph, run)) {
    if (found.model->work()[index(id)] > 0.0)
      path_s += run.end_s[index(id)] - run.start_s[index(id)];
  }
  const ClockGrid& grid = found.planner->grid();
  const GraphPlan& plan = found.plans.front().result.plan;
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    const ClockPair& clock = grid[plan.clock_of_activity.front()];
    const OperatingPoint at = found.model->evaluate(id_at<KernelId>(k), clock);
    coefficients[k] = scaled_to(found.model->spec(), found.model->coefficients()[k],
                                {clock, slower * at.time_s, found.model->power_limit_w()});
  }
  const GraphModel model = found.model->with_coefficients(coefficients);
  const GraphRun again = GraphSimulator(model, grid).run(plan);
  EXPECT_GT(path_s, 0.5 * run.span_s);
  EXPECT_NEAR(again.span_s - run.span_s, (slower - 1.0) * path_s, 0.02 * (slower - 1.0) * path_s);
}

TEST(PlanErrorsOfACapture, WidenTheIntervalOverTheSplit) {
  const GraphExploration found = explore_captured(made_exploration_input(
      {.layers = 4}, {{GraphGrain::iteration, 0.05}, {GraphGrain::pass, 0.05}}));
  for (const GraphPlanOutcome& plan : found.plans) {
    ASSERT_TRUE(plan.result.found());
    for (double PlanChange::*field : {&PlanChange::time_frac, &PlanChange::energy_frac}) {
      const double least =
          std::min({plan.change.*field, plan.core_bound.*field, plan.mem_bound.*field});
      EXPECT_LT(plan.least(field), least);
      EXPECT_NEAR(1.0 + plan.least(field), (1.0 + least) * (1.0 + plan.error.low.*field), 1e-12);
      EXPECT_GT(plan.most(field), plan.change.*field);
    }
  }
}

}  // namespace
}  // namespace rubato
