// Plans of measured clocks against all plans there are.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "explorer/pipeline/shared/stage_planner.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/pipeline/reference.hpp"
#include "tests/paths.hpp"
#include "tests/small_pipeline.hpp"
#include "tests/uniform.hpp"
#include "traces/pipeline/step_end.hpp"

namespace rubato {
namespace {

// Least energy of any plan that keeps the deadline; waiting until the deadline if asked.
double best_energy_j(const PipelineWork& work, double deadline_s, AfterEnd after_end) {
  const double waiting_w = work.blocked_power_w * work.schedule.shape.stages;
  double best_j = std::numeric_limits<double>::infinity();
  for_each_plan(work, [&](const PipelinePlan& plan) {
    const PipelineRun run = simulate(work, plan);
    if (run.time_s <= deadline_s) {
      const double wait_s = after_end == AfterEnd::wait ? deadline_s - run.time_s : 0.0;
      best_j = std::min(best_j, run.energy_j + waiting_w * wait_s);
    }
  });
  return best_j;
}

RC_GTEST_PROP(PipelinePlanner, StaysBetweenTheBoundAndTheDeadline, ()) {
  const PipelineWork work = arbitrary_work(2, 2, 3);
  const PipelinePlanner planner(work);
  const auto after_end = *rc::gen::element(AfterEnd::go_on, AfterEnd::wait);
  const double deadline_s =
      planner.least_time_s() +
      1.0 * *rc::gen::inRange(0, 1 + static_cast<int>(planner.frontier().slowest_time_s));
  const PipelineResult result = planner.plan({&deadline_s, 1}, after_end).front();
  RC_ASSERT(result.status == SolveStatus::feasible);
  RC_ASSERT(result.run.time_s <= deadline_s);
  const double best_j = best_energy_j(work, deadline_s, after_end);
  RC_ASSERT(result.lower_bound_j <= best_j * (1.0 + 1e-9));
  RC_ASSERT(result.energy_j >= best_j * (1.0 - 1e-9));
  RC_ASSERT(result.energy_j <= best_j * 1.25);  // coarse options round badly, but not at random
  RC_ASSERT(std::abs(result.energy_j * (1.0 - result.gap_frac) - result.lower_bound_j) <= 1e-6);
}

// A plan that may change limits bounds it, and one that may not is one of those tried.
RC_GTEST_PROP(PipelinePlanner, AStageHasOnePowerLimit, ()) {
  PipelineWork work = arbitrary_work(2, 2, 3);
  PipelineWork one_limit = work;
  constexpr double limit_w = 300.0, lower_w = 200.0;
  for (PassType& type : work.types) {
    const std::size_t clocks = type.options.size();
    for (ClockOption& option : type.options) option.power_limit_w = limit_w;
    for (std::size_t o = 0; o < clocks; ++o) {
      ClockOption limited = type.options[o];
      limited.power_limit_w = lower_w;
      limited.time_s *= uniform(1.0, 1.3);
      limited.energy_j *= uniform(0.7, 1.1);
      type.options.push_back(limited);
    }
  }
  const PipelinePlanner planner(work);
  const double deadline_s = planner.least_time_s() * uniform(1.0, 1.5);
  const PipelineResult result = planner.plan({&deadline_s, 1}).front();
  RC_PRE(result.found());
  std::vector<std::set<double>> limits(2);
  for (std::size_t p = 0; p < work.schedule.passes.size(); ++p) {
    const auto& options = work.type_of(id_at<PassId>(p)).options;
    limits[work.schedule.passes[p].stage].insert(
        options[index(result.plan.option_of_pass[p])].power_limit_w);
  }
  for (const auto& of_stage : limits) RC_ASSERT(of_stage.size() == 1U);
  RC_ASSERT(result.run.time_s <= deadline_s);
  RC_ASSERT(result.lower_bound_j <= result.energy_j * (1.0 + 1e-9));
  const PipelineResult own = PipelinePlanner(one_limit).plan({&deadline_s, 1}).front();
  if (own.found()) RC_ASSERT(result.energy_j <= own.energy_j * 1.05);  // both are heuristics
}

// With tied embeddings, whose reduction takes as long at every clock: no plan there is costs less
// than the bound, and the simulator's time is that of both ends.
RC_GTEST_PROP(PipelinePlanner, ReducesTiedEmbeddingsInTime, ()) {
  PipelineProfile profile = arbitrary_profile(2, 2);
  const double reduction_s = 0.5 * *rc::gen::inRange(1, 6);
  set_embedding_reduction(profile, 0, 1, reduction_s);
  const PipelineSchedule plain = make_schedule({.stages = 2, .microbatches = 2});
  const PipelineWork work = pipeline_work(with_step_end(plain, false, false, true), profile, 2.0);
  const PipelineWork before = pipeline_work(plain, profile, 2.0);
  const PipelineRun with = simulate(work, highest_clocks(work)),
                    without = simulate(before, highest_clocks(before));
  const double ready_s = std::max(without.passes[3].end_s, without.passes[7].end_s);
  RC_ASSERT(std::abs(with.time_s - std::max(without.time_s, ready_s + reduction_s)) <= 1e-9);
  const PipelinePlanner planner(work);
  const double deadline_s =
      planner.least_time_s() +
      1.0 * *rc::gen::inRange(0, 1 + static_cast<int>(planner.frontier().slowest_time_s));
  const PipelineResult result = planner.plan({&deadline_s, 1}).front();
  RC_ASSERT(result.run.time_s <= deadline_s);
  const double best_j = best_energy_j(work, deadline_s, AfterEnd::go_on);
  RC_ASSERT(result.lower_bound_j <= best_j * (1.0 + 1e-9));
  RC_ASSERT(result.energy_j >= best_j * (1.0 - 1e-9));
}

// The rest of the node draws the same whatever the clocks are: energies grow by the time, and
// nothing else changes.
RC_GTEST_PROP(PipelinePlanner, CountsTheRestOfTheNodeForAsLongAsAPlanTakes, ()) {
  const PipelineWork board = arbitrary_work(2, 2, 3);
  const double host_w = *rc::gen::inRange(1, 50);
  const PipelineWork node = with_host_power(board, host_w);
  const PipelinePlanner of_board(board), of_node(node);
  const double nodes_w = host_w * board.schedule.shape.stages;
  const double deadline_s = of_board.least_time_s() * (1.0 + 0.01 * *rc::gen::inRange(0, 100));
  const PipelineResult with = of_node.plan({&deadline_s, 1}).front();
  RC_ASSERT(std::abs(with.energy_j - nodes_w * with.run.time_s -
                     simulate(board, with.plan).energy_j) <= 1e-9 * with.energy_j);
  RC_ASSERT(with.lower_bound_j <= best_energy_j(node, deadline_s, AfterEnd::go_on) * (1.0 + 1e-9));
}

// Goals against plans for many deadlines, and the gap against every plan there is.
RC_GTEST_PROP(PipelinePlanner, PlansOfGoalsAreBetweenTheirBoundAndPlansForDeadlines, ()) {
  const PipelineWork work = arbitrary_work(2, 2, 3);
  const PipelinePlanner planner(work);
  const PipelineRun& base = planner.baseline();
  const double share = *rc::gen::element(0.5, 0.8, 0.95, 1.1), gpus = work.schedule.shape.stages;
  const Goal goal = *rc::gen::element<Goal>(
      LeastEdp{}, LeastEd2p{}, LeastEnergy{}, LeastTime{share * base.energy_j, {}},
      LeastTime{{}, share * base.energy_j / base.time_s},
      LeastCost{{.per_kwh = 0.2, .per_gpu_hour = *rc::gen::element(0.0, 2e-6, 2.0), .pue = 1.25}});
  const auto value = [&](double time_s, double energy_j) {
    const auto* time = std::get_if<LeastTime>(&goal);
    const bool holds =
        time == nullptr ||
        energy_j <= (1.0 + 1e-9) * (time->max_energy_j ? *time->max_energy_j
                                                       : *time->max_average_power_w * time_s);
    return holds ? value_of_goal(goal, {time_s, energy_j}, gpus)
                 : std::numeric_limits<double>::infinity();
  };
  double least = std::numeric_limits<double>::infinity();  // of all plans there are
  for_each_plan(work, [&](const PipelinePlan& plan) {
    const PipelineRun run = simulate(work, plan);
    least = std::min(least, value(run.time_s, run.energy_j));
  });
  const StagePlanner plans(planner, {}, std::array{Granularity::pass});
  const PipelineResult found =
      plans.plans_of_goal(goal, [](const PipelineResult&) { return PlanVerdict{}; }).front();
  if (!found.found()) return;  // no plan that was tried keeps the budget
  const double of_found = value(found.run.time_s, found.run.energy_j);
  RC_ASSERT(std::isfinite(of_found));
  RC_ASSERT((1.0 - found.gap_frac) * of_found <= least * (1.0 + 1e-9));
  RC_ASSERT(of_found >= least * (1.0 - 1e-9));
  if (std::holds_alternative<LeastTime>(goal)) return;  // its edge is only come near to
  for (int i = 0; i <= 50; ++i) {
    const double time_s = planner.least_time_s() * (1.0 + 0.04 * i);
    const PipelineResult other = planner.plan({&time_s, 1}).front();
    RC_ASSERT(of_found <= value(other.run.time_s, other.run.energy_j) * 1.25);
  }
}

RC_GTEST_PROP(PipelinePlanner, ALaterDeadlineIsNeverDearer, ()) {
  const PipelineWork work = arbitrary_work(3, 3, 4);
  const PipelinePlanner planner(work);
  std::vector<double> deadlines_s;
  for (int i = 0; i < 12; ++i) {
    deadlines_s.push_back(planner.least_time_s() * (1.0 + 0.01 * *rc::gen::inRange(0, 100)));
  }
  std::ranges::sort(deadlines_s);
  const auto plans = planner.plan(deadlines_s);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    RC_ASSERT(plans[i].energy_j <= plans[i - 1].energy_j);
    RC_ASSERT(plans[i].run.time_s <= deadlines_s[i]);
  }
}

// Over the deadlines of every shipped profile, in any order.
TEST(PipelinePlanner, NoPlanOfShippedProfilesIsDearerThanAnEarlierOne) {
  for (const std::string name :
       {"gpt3-175b-a100", "gpt3-175b-a40", "bloom-176b-a100", "bloom-176b-a40"}) {
    const PipelineProfile profile =
        read_pipeline_profile(source_dir() / "docs/examples" / (name + ".csv"));
    for (const std::uint32_t stages : {4U, 8U}) {
      const std::vector<std::uint32_t> map =
          stages == 4 ? std::vector<std::uint32_t>{0, 1, 6, 7} : std::vector<std::uint32_t>{};
      const PipelineWork work =
          pipeline_work(make_schedule({.stages = stages, .microbatches = stages == 4 ? 4U : 12U}),
                        profile, name.ends_with("a40") ? 70.38 : 83.64, map);
      const PipelinePlanner planner(work);
      std::vector<double> deadlines_s;
      for (int i = 24; i >= 0; --i)
        deadlines_s.push_back(
            std::lerp(planner.least_time_s(), planner.cheapest_time_s(), i / 24.0));
      const std::vector<PipelineResult> plans = planner.plan(deadlines_s);
      for (std::size_t i = 1; i < plans.size(); ++i) {
        EXPECT_LE(plans[i].run.time_s, plans[i].deadline_s) << name;
        EXPECT_LE(plans[i - 1].energy_j, plans[i].energy_j) << name << ' ' << deadlines_s[i];
      }
    }
  }
}

// One sweep for frontier and plans gives what two give.
RC_GTEST_PROP(PipelinePlanner, DeadlinesKnownBeforehandChangeNothing, ()) {
  const PipelineWork work = arbitrary_work(3, 3, 4);
  const PipelinePlanner planner(work);
  const std::vector<double> deadlines_s{planner.least_time_s() * 1.1, planner.baseline().time_s};
  const PipelinePlanner prepared(work, {.deadlines_s = deadlines_s});
  const auto a = planner.plan(deadlines_s), b = prepared.plan(deadlines_s);
  for (std::size_t i = 0; i < a.size(); ++i) {
    RC_ASSERT(a[i].plan == b[i].plan);
    RC_ASSERT(a[i].lower_bound_j == b[i].lower_bound_j);
  }
}

TEST(PipelinePlanner, BoundsHoldFarBeyondTheSlowestPlan) {
  const PipelineWork work = pipeline_work(make_schedule({.stages = 2, .microbatches = 3}),
                                          {"p",
                                           {{0, PassKind::forward, {{1000, 1, 50}, {800, 1.2, 40}}},
                                            {0, PassKind::backward, {{1000, 2, 90}}},
                                            {1, PassKind::forward, {{1000, 1.1, 55}}},
                                            {1, PassKind::backward, {{1000, 2.3, 99}}}}},
                                          5.0);
  const PipelinePlanner planner(work);
  for (const double deadline_s : {1e3, 1e12, 1e18}) {
    for (const AfterEnd after_end : {AfterEnd::go_on, AfterEnd::wait}) {
      const PipelineResult result = planner.plan({&deadline_s, 1}, after_end).front();
      EXPECT_LE(result.lower_bound_j, result.energy_j) << deadline_s;
      EXPECT_LT(result.gap_frac, 0.01) << deadline_s;
    }
  }
}

// The second option equals the first but for the last digits, as a cap above what the GPU reaches.
TEST(PipelinePlanner, SavesWithoutLosingTimeWhereClocksAreAllButEqual) {
  PipelineProfile profile{"p", {}};
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
      const double time_s = stage == 2 ? 1.3 : 1.0;
      profile.passes.push_back({stage,
                                kind,
                                {{1000, time_s, 50.0 * time_s},
                                 {999, time_s * (1.0 + 1e-10), 50.0 * time_s * (1.0 - 1e-10)},
                                 {800, 1.2 * time_s, 40.0 * time_s}}});
    }
  }
  const PipelineWork work =
      pipeline_work(make_schedule({.stages = 3, .microbatches = 6}), profile, 5.0);
  const PipelinePlanner planner(work);
  const double deadline_s = planner.baseline().time_s;
  const PipelineResult result = planner.plan({&deadline_s, 1}).front();
  EXPECT_LE(result.run.time_s, deadline_s);
  EXPECT_LT(result.energy_j, 0.9 * planner.baseline().energy_j);
  EXPECT_LT(result.gap_frac, 0.02);
}

// At most times the clocks of a stage do not fill what the slowest stage leaves them. Plans that
// were spliced from times at which they do had gaps below 0.25 % here: docs/search.md.
TEST(PipelinePlanner, LongPipelinesAreNearTheirBounds) {
  const PipelineProfile profile =
      read_pipeline_profile(source_dir() / "docs/examples/bloom-176b-a40.csv");
  const PipelineWork work =
      pipeline_work(make_schedule({.stages = 8, .microbatches = 96}), profile, 70.38);
  const PipelinePlanner planner(work);
  const double range_s = planner.cheapest_time_s() - planner.least_time_s();
  std::vector<double> deadlines_s;
  for (const double share : {0.1, 0.2, 0.3})
    deadlines_s.push_back(planner.least_time_s() + share * range_s);
  for (const PipelineResult& plan : planner.plan(deadlines_s)) EXPECT_LT(plan.gap_frac, 1e-2);
}

// Interrupted after the sweep, its plans are rounded all the same.
TEST(PipelinePlanner, InterruptedItGivesTheBestSoFar) {
  const PipelineProfile profile =
      read_pipeline_profile(source_dir() / "docs/examples/gpt3-175b-a40.csv");
  const PipelineWork work = pipeline_work(make_schedule({.stages = 4, .microbatches = 4}), profile,
                                          70.38, std::vector<std::uint32_t>{0, 1, 6, 7});
  const std::vector<double> deadlines_s{2.8254};
  const PipelinePlanner planner(work, {.deadlines_s = deadlines_s});
  const std::atomic<bool> stop = true;
  const PipelineResult stopped =
      planner.plan(deadlines_s, AfterEnd::go_on, {.cancelled = &stop}).front();
  ASSERT_EQ(stopped.status, SolveStatus::feasible);
  EXPECT_EQ(stopped.energy_j, planner.plan(deadlines_s).front().energy_j);
}

TEST(PipelinePlanner, SaysHowFastItCouldBe) {
  const PipelineWork work = pipeline_work(make_schedule({.stages = 1, .microbatches = 2}),
                                          {"p",
                                           {{0, PassKind::forward, {{1000, 1, 5}, {900, 2, 4}}},
                                            {0, PassKind::backward, {{1000, 2, 5}}}}},
                                          1.0);
  const PipelinePlanner planner(work);
  const std::vector<double> deadlines_s{5.9, 6.0};
  const auto results = planner.plan(deadlines_s);
  EXPECT_EQ(results[0].status, SolveStatus::infeasible);
  EXPECT_TRUE(results[0].plan.option_of_pass.empty());
  EXPECT_DOUBLE_EQ(results[0].least_time_s, 6.0);
  EXPECT_EQ(results[1].status, SolveStatus::feasible);
  expect_error<UsageError>(
      [&] {
        const double zero = 0.0;
        (void)planner.plan({&zero, 1});
      },
      "deadline is 0 s; expected a number > 0");
}

}  // namespace
}  // namespace rubato
