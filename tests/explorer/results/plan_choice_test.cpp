#include "explorer/results/plan_choice.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "explorer/results/capture_rows.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/made_exploration.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

constexpr Prices dear_time{.per_kwh = 0.12, .per_gpu_hour = 0.05, .pue = 1.2};

TEST(PlanChoice, TheCheapestPlanIsTakenWhereItIsAloneOrAskedFor) {
  const TemporaryFolder folder;
  ExplorationInput input = small_input();
  input.spec.switching.core_s = input.spec.switching.mem_s =
      0.0;  // else the plan per kernel is late
  const Question cost{Granularity::run, Aggregation::global, LeastCost{dear_time}};
  const Question cost_of_kernels{Granularity::kernel, Aggregation::global, LeastCost{dear_time}};
  input.questions = {cost, cost_of_kernels};
  store_trace(folder / "r.db", input, explore(input), {"explore", "{}"});
  input.questions = {{Granularity::kernel, Aggregation::global, LeastWaste{.slack_frac = 0.1}},
                     cost_of_kernels};
  const Exploration both = explore(input);
  store_trace(folder / "r.db", input, both, {"explore", "{}"});
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");

  const PlanChoice alone = choose_plans(store, 1, "", "", {});
  EXPECT_EQ(alone.plans.front().granularity, "kernel");  // whose choices hold those of one clock
  EXPECT_EQ(alone.plans.size(), 2U);                     // the other one may stand in for it
  EXPECT_FALSE(alone.plans.front().lower_bound_j);
  EXPECT_EQ(choose_plans(store, 2, "", "", {}).plans.front().goal, "relaxed_waste");
  EXPECT_EQ(choose_plans(store, 2, "", "relaxed_waste", {}).plans.front().goal, "relaxed_waste");
  EXPECT_EQ(choose_plans(store, 2, "", "relaxed_waste", {}).plans.front().lower_bound_j,
            both.plans[0].lower_bound);
  for (const char* goal : {"cost", "least_cost"})
    EXPECT_EQ(choose_plans(store, 2, "", goal, {}).plans.front().goal, "least_cost");
}

// Of captured runs: the plan that costs least with its changes of clock, and all GPUs' time, where
// it saves a point of the cost more than a coarser one.
TEST(PlanChoice, OfACapturedRunTheCheapestAsPlayed) {
  const TemporaryFolder folder;
  GraphExplorationInput input = made_exploration_input({.layers = 3}, {{Granularity::kernel, 0.0}});
  for (const Granularity granularity : {Granularity::run, Granularity::pass, Granularity::kernel})
    input.questions.push_back({granularity, Aggregation::global, LeastCost{dear_time}});
  const GraphExploration found = explore_captured(input);
  store_graph_run(folder / "r.db", {{"a.json"}, "1593/1410", ClockSource::given, "explore"}, found);
  const GraphRun& base = found.planner->baseline();
  const auto gpus = static_cast<double>(found.run->graph.gpus().size());
  const double base_cost = dear_time.of(base.span_s, base.total_energy_j, gpus);
  double least = base_cost;
  std::string granularity;
  for (const GraphPlanOutcome& plan : found.plans) {
    if (!plan.goal) continue;
    const PlanChange change = plan.counted ? plan.counted->change : plan.change;
    const double cost = dear_time.of((1.0 + change.time_frac) * base.span_s,
                                     (1.0 + change.energy_frac) * base.total_energy_j, gpus);
    const bool is_run = plan.result.question.grain == Granularity::run;
    if (cost > least - (is_run ? least_saving_frac : finer_saving_frac) * base_cost) continue;
    least = cost;
    granularity = name_of(plan.result.question.grain);
  }
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  const PlanChoice cheapest = choose_plans(store, 1, "", "cost", {});
  EXPECT_EQ(cheapest.plans.front().granularity, granularity);
  // Without a goal it is the one asked first, of which nothing saves here: who names a granularity
  // gets its plan all the same.
  expect_error<NoPlanError>([&] { (void)choose_plans(store, 1, "", "", {}); },
                            "keep the default clocks");
  EXPECT_EQ(choose_plans(store, 1, "kernel", "", {}).plans.front().goal, "strict_waste");
}

}  // namespace
}  // namespace rubato
