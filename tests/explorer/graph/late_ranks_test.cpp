// What others may save while a rank is late.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "explorer/graph/parallel_plan.hpp"
#include "explorer/graph/planner.hpp"
#include "models/gpu/clock_grid.hpp"
#include "sim/graph/disturbance.hpp"
#include "tests/expect_error.hpp"
#include "tests/sim/capture/parallel_input.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {
namespace {

const char* const three_clocks = "mem=1593 core=1155,1305,1410";

// Two stages, as a graph of two ranks, 0 and 1.
struct TwoStages {
  explicit TwoStages(double bus_gbs = usual)
      : input([&] {
          ParallelStepInput made = parallel_input(bus_gbs);
          made.shape.model.layers = 4;
          made.shape.model.vocab = 128;
          made.pipeline.stages = 2;
          made.pipeline.microbatches = 3;
          return made;
        }()),
        step(parallel_step(input)),
        run(capture_graph(std::span(step.stages))),
        model(run.graph, input.spec, input.spec.default_clock),
        grid(make_clock_grid(input.spec, three_clocks)) {}

  [[nodiscard]] GraphModel disturbed(const GraphDisturbance& disturbance) const {
    return model.with_slowdown(slowdown_of(run.graph, disturbance));
  }
  [[nodiscard]] double span_s(const GraphModel& of) const {
    return GraphSimulator(of, grid).run(uniform_plan(run.graph, grid.default_clock())).span_s;
  }
  [[nodiscard]] double communicated_s(double factor) const {
    GraphDisturbance slow;
    slow.links = {{1, factor}};
    return span_s(disturbed(slow));
  }

  ParallelStepInput input;
  ParallelStep step;
  CaptureGraph run;
  GraphModel model;
  ClockGrid grid;
};

// Of one clock for each GPU: all nine pairs.
double best_pair_j(const TwoStages& two, const GraphModel& model, double until_s) {
  GraphSimulator simulator(model, two.grid);
  double best_j = 1e9;
  for (std::size_t tried = 0; tried < 9; ++tried) {
    GraphPlan plan = uniform_plan(two.run.graph, two.grid.default_clock());
    for (std::size_t i = 0; i < two.run.graph.size(); ++i) {
      const auto gpu = two.run.graph.gpu_of(two.run.graph.activities()[i]);
      if (gpu) plan.clock_of_activity[i] = id_at<ClockId>(index(*gpu) == 0 ? tried % 3 : tried / 3);
    }
    const GraphRun run = simulator.run(plan);
    if (run.span_s <= until_s * (1.0 + 1e-9)) best_j = std::min(best_j, run.total_energy_j);
  }
  return best_j;
}

TEST(Stragglers, OthersSaveWhatTryingAllClocksFinds) {
  const TwoStages two;
  const GraphQuestion question{Granularity::gpu, 0.1};
  for (const double factor : {1.0, 1.15, 1.3, 2.0}) {
    GraphDisturbance late;
    late.gpus = {{0, factor}};
    const GraphModel model = two.disturbed(late);
    GraphPlanner planner(model, two.grid);
    const GraphPlanResult found = planner.plan(std::span(&question, 1)).front();
    const double best_j = best_pair_j(two, model, found.deadline_s);
    EXPECT_NEAR(found.run.total_energy_j / best_j, 1.0, 1e-9) << factor;
    EXPECT_LE(found.lower_bound_j, best_j * (1.0 + 1e-9));
    EXPECT_LE(found.run.span_s, found.deadline_s * (1.0 + 1e-9));
    const double saved = 1.0 - found.run.total_energy_j / planner.baseline().total_energy_j;
    EXPECT_GT(saved, 0.01) << factor;
  }
}

// Held at a clock, or below a power limit: the other rank and the throttled one itself save what
// trying all clocks finds.
TEST(Stragglers, OthersSaveWhatTryingAllClocksFindsWhileOneIsThrottled) {
  const TwoStages two;
  const GraphQuestion question{Granularity::gpu, 0.02};
  const double undisturbed_s = two.span_s(two.model);
  for (const GpuThrottle& throttle :
       {GpuThrottle{.core_mhz = 1200.0}, GpuThrottle{.core_mhz = 900.0},
        GpuThrottle{.power_limit_w = 200.0}, GpuThrottle{1305.0, 220.0}}) {
    const GraphModel model = disturbed(two.model, {.throttles = {{1, throttle}}});
    GraphPlanner planner(model, two.grid);
    EXPECT_GT(planner.baseline().span_s, 1.01 * undisturbed_s);
    const GraphPlanResult found = planner.plan(std::span(&question, 1)).front();
    const double best_j = best_pair_j(two, model, found.deadline_s);
    EXPECT_NEAR(found.run.total_energy_j / best_j, 1.0, 1e-9);
    EXPECT_LE(found.lower_bound_j, best_j * (1.0 + 1e-9));
    EXPECT_LE(found.run.span_s, found.deadline_s * (1.0 + 1e-9));
    EXPECT_LT(found.run.total_energy_j, 0.99 * planner.baseline().total_energy_j);
    for (const Granularity grain : {Granularity::pass, Granularity::launch}) {
      const GraphQuestion finer{grain, 0.02};
      const GraphPlanResult fine = planner.plan(std::span(&finer, 1)).front();
      EXPECT_LE(fine.lower_bound_j, best_j * (1.0 + 1e-9));
      EXPECT_LE(fine.run.span_s, fine.deadline_s * (1.0 + 1e-9));
    }
  }
}

// A GPU held at a clock of the grid is one that is asked for no more than it.
TEST(Stragglers, ThrottledGpusDoWhatTheyAreHeldAt) {
  const TwoStages two;
  const GraphModel model =
      disturbed(two.model, {.throttles = {{0, {.core_mhz = 1155.0}}, {0, {.core_mhz = 1305.0}}}});
  GraphSimulator throttled(model, two.grid), free(two.model, two.grid);
  GraphPlan asked = uniform_plan(two.run.graph, two.grid.default_clock());
  const GraphRun run = throttled.run(asked);
  const auto held =
      std::ranges::find(two.grid.pairs(), std::optional(1155.0), &ClockPair::core_mhz);
  ASSERT_NE(held, two.grid.pairs().end());
  for (std::size_t i = 0; i < two.run.graph.size(); ++i) {
    const auto gpu = two.run.graph.gpu_of(two.run.graph.activities()[i]);
    if (gpu && index(*gpu) == 0)
      asked.clock_of_activity[i] =
          id_at<ClockId>(static_cast<std::size_t>(held - two.grid.pairs().begin()));
  }
  const GraphRun same = free.run(asked);
  EXPECT_NEAR(run.span_s / same.span_s, 1.0, 1e-12);
  EXPECT_NEAR(run.gpus[0].busy_s / same.gpus[0].busy_s, 1.0, 1e-12);
  // Other splits of captured times keep the throttle, slower kernels too.
  EXPECT_GT(throttled.run(uniform_plan(two.run.graph, two.grid.default_clock())).span_s,
            1.01 * two.span_s(two.model));
  EXPECT_GT(two.span_s(model.with_split(1.0)), 1.01 * two.span_s(two.model));
}

// A throttle above the run's own power limit changes nothing; each of several has to be in range.
TEST(Stragglers, ThrottlesOnlyHoldBack) {
  const TwoStages two;
  const GraphModel limited(two.run.graph, two.input.spec, two.input.spec.default_clock, 200.0);
  const double limited_s = two.span_s(limited);
  const auto throttled_s = [&](double watts) {
    return two.span_s(disturbed(limited, {.throttles = {{1, {.power_limit_w = watts}}}}));
  };
  EXPECT_DOUBLE_EQ(throttled_s(400.0), limited_s);
  EXPECT_GT(throttled_s(150.0), 1.01 * limited_s);
  expect_error<UsageError>(
      [&] {
        (void)disturbed(two.model,
                        {.throttles = {{1, {.core_mhz = 1155.0}}, {1, {.core_mhz = 99'999.0}}}});
      },
      "a GPU is held at 99999 MHz");
}

// Three equal stages, planned at no slack.
ParallelPlan plan_of_three_stages(const GraphDisturbance& disturbance) {
  ParallelStepInput input = parallel_input(usual);
  input.shape.model.vocab = 128;
  input.pipeline = {.stages = 3, .microbatches = 9};
  ParallelPlanner planner(input, three_clocks, disturbance);
  return planner.plan(std::array{0.0}).front();
}

// A throttled stage leaves the others time, also where passes have clocks of their own.
TEST(Stragglers, OtherStagesSaveMoreWhileOneIsThrottled) {
  const ParallelPlan without = plan_of_three_stages({}),
                     with = plan_of_three_stages({.throttles = {{1, {.core_mhz = 1000.0}}}});
  EXPECT_LE(with.time_frac, 1e-9);
  EXPECT_LT(with.energy_frac, without.energy_frac - 0.02);
}

// A stage in the middle that is late leaves the others time, in every microbatch.
TEST(Stragglers, OtherStagesSaveMoreWhileOneIsLate) {
  GraphDisturbance late;
  late.gpus = {{1, 1.4}};
  const ParallelPlan without = plan_of_three_stages({}), with = plan_of_three_stages(late);
  EXPECT_LE(with.time_frac, 1e-9);
  EXPECT_LT(with.energy_frac, without.energy_frac - 0.02);
}

// With links of a stage in the middle that are slow, all stages wait, itself too.
TEST(Stragglers, StagesSaveMoreWhileALinkIsSlow) {
  const auto saved = [&](double factor) {
    GraphDisturbance slow;
    slow.links = {{1, factor}};
    return -plan_of_three_stages(slow).energy_frac;
  };
  EXPECT_GT(saved(4.0), saved(1.0) + 0.005);
}

// Launches of the rank take so many times as long, those of others as long as before.
TEST(Stragglers, ScaleTheirOwnKernels) {
  const TwoStages two;
  GraphDisturbance late;
  late.gpus = {{0, 1.5}, {0, 2.0}};
  const GraphModel model = two.disturbed(late);
  for (std::size_t i = 0; i < two.run.graph.size(); ++i) {
    const Activity& activity = two.run.graph.activities()[i];
    const double factor = activity.kind == ActivityKind::launch && activity.rank == 0 ? 3.0 : 1.0;
    EXPECT_DOUBLE_EQ(model.work()[i], factor * two.model.work()[i]);
    EXPECT_EQ(model.transfer_s(i), two.model.transfer_s(i));
  }
  // Both stages do the same: where one is three times slower it sets the pace.
  EXPECT_GT(two.span_s(model), 1.8 * two.span_s(two.model));
  EXPECT_LT(two.span_s(model), 3.0 * two.span_s(two.model));
  // With other splits of times too.
  EXPECT_NEAR(two.span_s(model.with_split(1.0)) / two.span_s(model), 1.0, 1e-3);
}

TEST(Stragglers, SlowLinksLengthenTransfers) {
  const TwoStages two(2.0);
  double transfer_s = 0.0;
  for (std::size_t i = 0; i < two.run.graph.size(); ++i) transfer_s += two.model.transfer_s(i);
  ASSERT_GT(transfer_s, 1e-3);
  GraphDisturbance slow;
  slow.links = {{1, 3.0}};
  const GraphModel model = two.disturbed(slow);
  double longer_s = 0.0;
  for (std::size_t i = 0; i < two.run.graph.size(); ++i) longer_s += model.transfer_s(i);
  EXPECT_NEAR(longer_s / transfer_s, 3.0, 1e-12);
  EXPECT_GT(two.communicated_s(3.0), two.span_s(two.model) + 0.5 * transfer_s);
  EXPECT_EQ(two.communicated_s(1.0), two.span_s(two.model));
}

TEST(Stragglers, JitterIsOneOnAverageAndTheSameForASeed) {
  const TwoStages two;
  GraphDisturbance noise;
  noise.jitter_frac = 0.1;
  EXPECT_NO_THROW((void)slowdown_of(two.run.graph, {.jitter_frac = 1.0}));
  const std::vector<double> once = slowdown_of(two.run.graph, noise);
  EXPECT_EQ(once, slowdown_of(two.run.graph, noise));
  noise.seed = 2;
  EXPECT_NE(once, slowdown_of(two.run.graph, noise));
  double sum = 0.0, squares = 0.0, count = 0.0;
  for (std::size_t i = 0; i < once.size(); ++i) {
    if (two.run.graph.activities()[i].kind != ActivityKind::launch) continue;
    sum += once[i];
    squares += once[i] * once[i];
    count += 1.0;
  }
  ASSERT_GT(count, 400.0);
  const double mean = sum / count;
  EXPECT_NEAR(mean, 1.0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 0.1, 0.02);
}

TEST(Stragglers, RefuseWhatCannotBe) {
  const TwoStages two;
  const auto refused = [&](const GraphDisturbance& disturbance, const char* why) {
    expect_error<UsageError>([&] { (void)slowdown_of(two.run.graph, disturbance); }, why);
  };
  refused({.gpus = {{7, 1.1}}}, "there is no rank 7; the run has 0, 1");
  refused({.links = {{0, 0.5}}}, "rank 0 takes 0.5 times as long; expected a number >= 1");
  const auto not_held = [&](const GpuThrottle& throttle, std::uint32_t rank, const char* why) {
    expect_error<UsageError>(
        [&] {
          (void)disturbed(two.model, {.throttles = {{rank, throttle}}});
        },
        why);
  };
  not_held({.core_mhz = 1200.0}, 7, "there is no rank 7; the run has 0, 1");
  not_held({.core_mhz = 20.0}, 1, "a GPU is held at 20 MHz; a100-sxm4-80gb has 210 to 1410 MHz");
  not_held({.power_limit_w = 20.0}, 1, "a power limit of 20 W is outside what");
  refused({.jitter_frac = 1.5}, "jitter is 1.5; expected a number from 0 to 1");
}

}  // namespace
}  // namespace rubato
