#include "explorer/graph/plan_interval.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "explorer/confidence/campaigns.hpp"
#include "models/validation/measured_shapes.hpp"
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
  spec.fit_errors.clear();  // and with them the scales of campaigns
  write_errors({shared, own}, spec);
  return spec;
}

class IntervalOfAChain : public ::testing::Test {
 protected:
  struct Found {
    GraphPlanInterval interval;
    PlanChange estimate;
  };

  // Of launches whose split and energy are known: only the model's form errs.
  [[nodiscard]] Found at(GpuSpec spec, const ClockPair& clock,
                         const KernelCoefficients& coefficients) const {
    for (const Kernel& kernel : made_.graph.kernels()) {
      CalibratedKernel& fitted = spec.kernels.emplace_back();
      fitted.name = kernel.name;
      fitted.coefficients = coefficients;
    }
    spec.ensemble.clear();
    const ClockGrid grid(spec, {spec.default_clock, clock});
    const GraphModel model(made_.graph, spec, spec.default_clock);
    GraphSimulator simulator(model, grid);
    const GraphRun usual = simulator.run(uniform_plan(made_.graph, grid.default_clock()));
    const GraphPlan plan = uniform_plan(made_.graph, *grid.find(clock));
    const GraphRun run = simulator.run(plan);
    return {GraphPlanIntervals(model, model, grid, usual).of(plan, run),
            {run.span_s / usual.span_s - 1.0, run.total_energy_j / usual.total_energy_j - 1.0}};
  }

  // Around the estimate. Core and DRAM take as long, so that times are free to err both ways.
  [[nodiscard]] GraphPlanInterval around_at(const GpuSpec& spec, double core_mhz) const {
    const auto [found, estimate] = at(spec, {spec.default_clock.mem, core_mhz}, balanced);
    const auto beside = [](double end, double value) { return (1.0 + end) / (1.0 + value) - 1.0; };
    return {{beside(found.low.time_frac, estimate.time_frac),
             beside(found.low.energy_frac, estimate.energy_frac)},
            {beside(found.high.time_frac, estimate.time_frac),
             beside(found.high.energy_frac, estimate.energy_frac)}};
  }
  static constexpr KernelCoefficients balanced{
      .core_cycles = 1e7, .dram_bytes = 1.2e10, .core_j = 1.0};
  ChainBesideOne made_;
};

TEST_F(IntervalOfAChain, ThePathThatEndsLastIsTheChain) {
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

TEST_F(IntervalOfAChain, NothingIsUncertainAtTheDefaultClocks) {
  const GpuSpec spec = spec_with_errors({0.1, 0.1}, {0.1, 0.1});
  const ClockGrid grid(spec, {spec.default_clock});
  const GraphModel model(made_.graph, spec, spec.default_clock);
  const GraphPlan plan = uniform_plan(made_.graph, grid.default_clock());
  const GraphRun run = GraphSimulator(model, grid).run(plan);
  const GraphPlanInterval found = GraphPlanIntervals(model, model, grid, run).of(plan, run);
  EXPECT_EQ(found.low.time_frac, 0.0);
  EXPECT_EQ(found.high.energy_frac, 0.0);
}

// What nobody measured is drawn too: splits and core energies of the chain's class.
TEST_F(IntervalOfAChain, UnknownKernelsAreWiderThanFittedOnes) {
  const GpuSpec spec = spec_with_errors({0.01, 0.01}, {});
  const GraphModel model(made_.graph, spec, spec.default_clock);
  const ClockGrid grid(spec, {spec.default_clock, {spec.default_clock.mem, 900.0}});
  GraphSimulator simulator(model, grid);
  const GraphRun usual = simulator.run(uniform_plan(made_.graph, grid.default_clock()));
  const GraphPlan plan = uniform_plan(made_.graph, *grid.find({spec.default_clock.mem, 900.0}));
  const GraphPlanInterval found =
      GraphPlanIntervals(model, model, grid, usual).of(plan, simulator.run(plan));
  const GraphPlanInterval fitted = around_at(spec, 900.0);
  EXPECT_GT(found.high.time_frac - found.low.time_frac,
            2.0 * (fitted.high.time_frac - fitted.low.time_frac));
  EXPECT_GT(found.high.energy_frac - found.low.energy_frac,
            2.0 * (fitted.high.energy_frac - fitted.low.energy_frac));
}

// Steps that a slower clock slows down by different shares say less of all steps than equal ones.
TEST(IntervalOfSteps, IsWiderWhereStepsDiffer) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockGrid grid(spec, {spec.default_clock, {spec.default_clock.mem, 1200.0}});
  // The host of each step takes a share of it that no clock changes: the same in all, or not.
  const auto width_of = [&](const std::vector<double>& host_s) {
    GraphBuilder builder;
    builder.add_stream({builder.add_gpu({0, 0, "A100"}), 0});
    std::optional<DraftId> before;
    double now_s = 0.0;
    for (std::uint32_t step = 0; step < host_s.size(); ++step) {
      Kernel kernel;
      kernel.name = "kernel";
      Activity activity{.kind = ActivityKind::launch, .stream = 0, .step = step};
      activity.kernel = builder.add_kernel(kernel);
      activity.start_s = now_s + host_s[step];
      activity.duration_s = 0.01;
      const DraftId launch = builder.add(activity);
      if (before) builder.add_arc(*before, launch, host_s[step], ArcKind::stream_order);
      before = launch;
      now_s = activity.end_s();
    }
    const ExecutionGraph graph = std::move(builder).build("test").graph;
    const GraphModel model(graph, spec, spec.default_clock);
    GraphSimulator simulator(model, grid);
    const GraphRun usual = simulator.run(uniform_plan(graph, grid.default_clock()));
    const GraphPlan plan = uniform_plan(graph, *grid.find({spec.default_clock.mem, 1200.0}));
    const GraphPlanInterval found =
        GraphPlanIntervals(model, model, grid, usual).of(plan, simulator.run(plan));
    return found.high.time_frac - found.low.time_frac;
  };
  const double equal = width_of(std::vector(5, 0.01)),
               other = width_of({0.0, 0.02, 0.0, 0.02, 0.0}),
               more = width_of({0.0, 0.02, 0.0, 0.02, 0.0, 0.02, 0.0, 0.02, 0.0, 0.02, 0.0});
  EXPECT_GT(other, 1.05 * equal);
  EXPECT_LT(more, other);
  EXPECT_GT(more, equal);
}

// Where times of a GPU's own sweep fell with the clock, those of a plan may.
TEST_F(IntervalOfAChain, TimesMayFallAsFarAsSweptOnesDid) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockGrid grid(spec, {spec.default_clock, {spec.default_clock.mem, 1200.0}});
  const auto interval_with = [&](double fall_pct) {
    spec.fit_errors[time_fall_key] = fall_pct;
    const GraphModel model(made_.graph, spec, spec.default_clock);
    GraphSimulator simulator(model, grid);
    const GraphRun usual = simulator.run(uniform_plan(made_.graph, grid.default_clock()));
    const GraphPlan plan = uniform_plan(made_.graph, *grid.find({spec.default_clock.mem, 1200.0}));
    return GraphPlanIntervals(model, model, grid, usual).of(plan, simulator.run(plan));
  };
  const GraphPlanInterval held = interval_with(0.0), fell = interval_with(3.0);
  EXPECT_NEAR(held.low.time_frac - fell.low.time_frac, 0.03 - 0.004, 1e-9);
  EXPECT_EQ(held.high.time_frac, fell.high.time_frac);
  EXPECT_EQ(held.low.energy_frac, fell.low.energy_frac);
}

// Kernels of unknown names may follow the core clock in full, and a power limit that nobody saw
// saves no deadline: odds count times without one.
TEST_F(IntervalOfAChain, OddsOfUnknownKernelsReachFromNothingToTheRatioOfTheClocks) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockGrid grid(spec, {spec.default_clock, {spec.default_clock.mem, 1200.0}});
  const GraphModel model(made_.graph, spec, spec.default_clock);
  GraphSimulator simulator(model, grid);
  const GraphRun usual = simulator.run(uniform_plan(made_.graph, grid.default_clock()));
  const GraphPlan plan = uniform_plan(made_.graph, *grid.find({spec.default_clock.mem, 1200.0}));
  const GraphPlanInterval found =
      GraphPlanIntervals(model, model, grid, usual).of(plan, simulator.run(plan));
  const double most_pct = 100.0 * (1410.0 / 1200.0 - 1.0);
  EXPECT_EQ(found.times.odds_within(most_pct), 1.0);
  EXPECT_LT(found.times.odds_within(0.5 * most_pct), 0.9);
  EXPECT_GT(found.times.odds_within(0.9 * most_pct), 0.5);
  EXPECT_EQ(found.times.odds_within(-0.1), 0.0);
  EXPECT_LE(found.times.kept_with(0.5), found.times.kept_with(0.9));
}

// All kernels err alike: the run by the launches on its path, 30 of 31 ms, energy by all of it.
// What is drawn has the deviation of change errors, so the inner 90 % reach 1.645 of it.
TEST_F(IntervalOfAChain, SharedErrorsMoveTheWholeRun) {
  const GraphPlanInterval small = around_at(spec_with_errors({0.01, 0.01}, {}), 900.0),
                          large = around_at(spec_with_errors({0.02, 0.02}, {}), 900.0);
  EXPECT_NEAR(large.high.time_frac, 2.0 * small.high.time_frac, 0.05 * large.high.time_frac);
  EXPECT_NEAR(large.low.energy_frac, 2.0 * small.low.energy_frac, -0.05 * large.low.energy_frac);
  EXPECT_NEAR(-small.low.time_frac, small.high.time_frac, 0.25 * small.high.time_frac);
  EXPECT_GT(small.high.time_frac, 1.2 * 0.01);
  EXPECT_LT(small.high.time_frac, 3.0 * 0.01);
}

// Campaigns are of measured kernels; captured ones they do not make more certain.
TEST_F(IntervalOfAChain, CampaignsWidenAndNeverNarrow) {
  GpuSpec spec = spec_with_errors({0.01, 0.01}, {0.01, 0.01});
  const GraphPlanInterval drawn = around_at(spec, 900.0);
  write_scales({{}, {2.0, 0.5}}, 0, spec);
  const GraphPlanInterval scaled = around_at(spec, 900.0);
  EXPECT_EQ(scaled.low.energy_frac, drawn.low.energy_frac);
  EXPECT_EQ(scaled.high.energy_frac, drawn.high.energy_frac);
  EXPECT_GT(scaled.high.time_frac, 1.8 * drawn.high.time_frac);
  EXPECT_LT(scaled.high.time_frac, 2.2 * drawn.high.time_frac);
  EXPECT_LT(scaled.low.time_frac, 1.8 * drawn.low.time_frac);
}

// However large errors and scales are, and whatever runs at once: a lower clock takes between no
// time and the ratio of the clocks more, a higher one as much less.
TEST_F(IntervalOfAChain, TimesStayWithinWhatClocksCanChange) {
  GpuSpec spec = spec_with_errors({0.3, 0.1}, {0.3, 0.1});
  write_scales({{}, {3.0, 1.0}}, 0, spec);
  const MemStateId mem = spec.default_clock.mem;
  constexpr KernelCoefficients all_core{.core_cycles = 1e7, .core_j = 1.0},
      all_dram{.dram_bytes = 1e10, .core_j = 1.0};
  for (const auto& [from_mhz, to_mhz] :
       {std::pair{1410.0, 900.0}, {1410.0, 1350.0}, {900.0, 1410.0}}) {
    spec.default_clock = {mem, from_mhz};
    const double end = from_mhz / to_mhz - 1.0, least = std::min(end, 0.0),
                 most = std::max(end, 0.0);
    for (const KernelCoefficients& kernel : {all_core, balanced, all_dram}) {
      const auto [found, estimate] = at(spec, {mem, to_mhz}, kernel);
      EXPECT_GE(found.low.time_frac, least - 1e-9) << from_mhz << ' ' << to_mhz;
      EXPECT_LE(found.high.time_frac, most + 1e-9) << from_mhz << ' ' << to_mhz;
      EXPECT_LE(found.low.time_frac, estimate.time_frac);
      EXPECT_GE(found.high.time_frac, estimate.time_frac);
      EXPECT_GT(found.high.time_frac - found.low.time_frac, 0.5 * (most - least));
    }
  }
}

TEST_F(IntervalOfAChain, ErrorsOfItsOwnAverageOut) {
  const GraphPlanInterval shared = around_at(spec_with_errors({0.01, 0.01}, {}), 900.0);
  // Student's t at this scale has the same deviation.
  const GraphPlanInterval own = around_at(spec_with_errors({}, {0.007, 0.007}), 900.0);
  EXPECT_LT(own.high.time_frac, shared.high.time_frac);
  EXPECT_GT(own.high.time_frac, 0.3 * shared.high.time_frac);
}

TEST_F(IntervalOfAChain, ClocksNearTheDefaultErrLess) {
  const GpuSpec spec = spec_with_errors({0.02, 0.02}, {0.01, 0.01});
  EXPECT_LT(around_at(spec, 1350.0).high.time_frac, 0.9 * around_at(spec, 1005.0).high.time_frac);
}

// One draw played again with kernels that are as much slower: the first order is what the run
// takes more.
TEST(IntervalsOfACapture, FirstOrderIsTheReplay) {
  const GraphExploration found =
      explore_captured(made_exploration_input({.layers = 4}, {{Granularity::run, 0.05}}));
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

// Kernels of one function err alike, whatever their grid: their errors do not average out.
TEST(IntervalsOfACapture, ErrorsAreOfTheSourceNotOfTheName) {
  const auto width = [](bool one_function) {
    GraphBuilder builder;
    (void)builder.add_stream({builder.add_gpu({0, 0, "A100"}), 0});
    constexpr int launches = 16;
    std::optional<DraftId> before;
    for (int i = 0; i < launches; ++i) {
      Kernel kernel;
      kernel.name = "kernel " + std::to_string(i);
      kernel.label = one_function ? "kernel" : "";
      kernel.kind = KernelClass::communication;  // whose split hardly matters
      Activity activity{.kind = ActivityKind::launch, .stream = 0};
      activity.kernel = builder.add_kernel(kernel);
      activity.start_s = 0.01 * i;
      activity.duration_s = 0.01;
      const DraftId id = builder.add(activity);
      if (before) builder.add_arc(*before, id, 0.0, ArcKind::stream_order);
      before = id;
    }
    const ExecutionGraph graph = std::move(builder).build("test").graph;
    const GpuSpec spec = spec_with_errors({}, {0.05, 0.05});
    const ClockGrid grid(spec, {spec.default_clock, {spec.default_clock.mem, 900.0}});
    const GraphModel model(graph, spec, spec.default_clock);
    GraphSimulator simulator(model, grid);
    const GraphRun usual = simulator.run(uniform_plan(graph, grid.default_clock()));
    const GraphPlan plan = uniform_plan(graph, *grid.find({spec.default_clock.mem, 900.0}));
    const GraphPlanInterval found =
        GraphPlanIntervals(model, model, grid, usual).of(plan, simulator.run(plan));
    return found.high.time_frac - found.low.time_frac;
  };
  EXPECT_GT(width(true), 2.0 * width(false));
}

// Truths that are known: each kernel is like some measured one, replayed, with what runs beside
// each other and the path that ends last as they are then.
TEST(IntervalsOfACapture, HoldKernelsLikeMeasuredOnesAsReplayed) {
  std::size_t count = 0, time_inside = 0, energy_inside = 0;
  std::mt19937_64 random(20261127);
  for (const std::uint32_t layers : {2U, 4U}) {
    const GraphExploration found =
        explore_captured(made_exploration_input({.layers = layers}, {{Granularity::run, 0.02},
                                                                     {Granularity::run, 0.1},
                                                                     {Granularity::pass, 0.05},
                                                                     {Granularity::kernel, 0.05}}));
    const ClockGrid& grid = found.planner->grid();
    const GpuSpec& spec = found.model->spec();
    const ShapePriors priors(spec);
    for (int truth = 0; truth < 16; ++truth) {
      std::vector<std::optional<KernelCoefficients>> coefficients;
      for (std::size_t k = 0; k < found.run->graph.kernels().size(); ++k) {
        const double quantile = std::generate_canonical<double, 53>(random);
        const Kernel& kernel = found.run->graph.kernels()[k];
        const ClockPair& at = found.model->captured_clock();
        coefficients.emplace_back();
        if (found.model->split(id_at<KernelId>(k)) == SplitSource::link) continue;
        coefficients.back() = scaled_to(
            spec, coefficients_of(spec, priors.at(kernel.kind, quantile)),
            {at, found.model->evaluate(id_at<KernelId>(k), at).time_s, spec.power_limit.limit_w});
      }
      const GraphModel like = found.model->with_coefficients(coefficients);
      GraphSimulator simulator(like, grid);
      const GraphRun usual = simulator.run(uniform_plan(found.run->graph, grid.default_clock()));
      for (const GraphPlanOutcome& plan : found.plans) {
        const GraphRun run = simulator.run(plan.result.plan);
        const double time_frac = run.span_s / usual.span_s - 1.0,
                     energy_frac = run.total_energy_j / usual.total_energy_j - 1.0;
        ++count;
        time_inside +=
            plan.interval.low.time_frac <= time_frac && time_frac <= plan.interval.high.time_frac;
        energy_inside += plan.interval.low.energy_frac <= energy_frac &&
                         energy_frac <= plan.interval.high.energy_frac;
      }
    }
  }
  EXPECT_GE(10 * time_inside, 8 * count) << time_inside << " of " << count;
  EXPECT_GE(10 * energy_inside, 8 * count) << energy_inside << " of " << count;
}

TEST(IntervalsOfACapture, ReachFromBelowToAboveTheEstimate) {
  const GraphExploration found = explore_captured(
      made_exploration_input({.layers = 4}, {{Granularity::run, 0.05}, {Granularity::pass, 0.05}}));
  for (const GraphPlanOutcome& plan : found.plans) {
    ASSERT_TRUE(plan.result.found());
    for (double PlanChange::*field : {&PlanChange::time_frac, &PlanChange::energy_frac}) {
      EXPECT_LE(plan.interval.low.*field, plan.change.*field);
      EXPECT_GE(plan.interval.high.*field, plan.change.*field);
      EXPECT_LT(plan.interval.low.*field, plan.interval.high.*field);
      EXPECT_GT(plan.interval.low.*field, -0.9);
    }
  }
}

}  // namespace
}  // namespace rubato
