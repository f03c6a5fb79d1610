#include "explorer/switching.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/exploration.hpp"
#include "traces/trace_json.hpp"

namespace rubato {
namespace {

// One kernel per site, small numbers, up to three segments of up to three launches.
struct SmallCase {
  Trace trace;
  ProfileTable table{1, 1, {1.0}, {1.0}};
  std::vector<double> idle_power_w;
  SwitchCost cost;

  [[nodiscard]] SwitchingProblem problem(double budget_s) const {
    return {trace, table, idle_power_w, cost, budget_s};
  }
};

SmallCase arbitrary_case() {
  SmallCase made;
  const auto segments = *rc::gen::inRange(1, 4);
  for (int s = 0; s < segments; ++s) {
    Segment segment{.name = std::to_string(s),
                    .repeat = *rc::gen::inRange<std::uint32_t>(1, 4),
                    .launches = {}};
    const auto launches = *rc::gen::inRange(1, 3);
    for (int i = 0; i < launches; ++i) {
      segment.launches.push_back(id_at<KernelId>(made.trace.kernels.size()));
      made.trace.kernels.emplace_back();
    }
    made.trace.segments.push_back(std::move(segment));
  }
  const std::size_t kernels = made.trace.kernels.size();
  const auto clocks = *rc::gen::inRange<std::size_t>(1, 4);
  const auto numbers = [](std::size_t count) {
    std::vector<double> list;
    for (const int x : *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(1, 9)))
      list.push_back(x);
    return list;
  };
  made.table = ProfileTable(kernels, clocks, numbers(kernels * clocks), numbers(kernels * clocks));
  made.idle_power_w = numbers(clocks);
  made.cost = {.stall_s = 0.25 * *rc::gen::inRange(0, 5),
               .energy_j = 0.5 * *rc::gen::inRange(0, 3)};
  return made;
}

void for_all_plans(const SmallCase& small,
                   const std::function<void(const std::vector<ClockId>&)>& visit) {
  std::vector<ClockId> plan(small.trace.kernels.size());
  while (true) {
    visit(plan);
    std::size_t i = 0;
    while (i < plan.size() && ++plan[i].value == small.table.clocks()) plan[i++].value = 0;
    if (i == plan.size()) return;
  }
}

// The definition: launch by launch over the expanded iteration.
Cost replayed(const SwitchingProblem& problem, const std::vector<ClockId>& plan) {
  std::vector<std::pair<std::size_t, ClockId>> launches;
  std::size_t first = 0;
  for (const Segment& segment : problem.trace.segments) {
    for (std::uint32_t r = 0; r < segment.repeat; ++r) {
      for (std::size_t i = 0; i < segment.launches.size(); ++i) {
        launches.emplace_back(index(segment.launches[i]), plan[first + i]);
      }
    }
    first += segment.launches.size();
  }
  Cost total;
  ClockId clock = launches.back().second;
  for (const auto& [kernel, next] : launches) {
    if (next != clock) {
      total.time_s += problem.cost.stall_s;
      total.energy_j +=
          problem.cost.energy_j + problem.cost.stall_s * problem.idle_power_w[index(next)];
    }
    clock = next;
    total.time_s += problem.per_launch.cost(kernel, clock).time_s;
    total.energy_j += problem.per_launch.cost(kernel, clock).energy_j;
  }
  return total;
}

RC_GTEST_PROP(Switching, IterationCostIsTheReplay, ()) {
  const SmallCase small = arbitrary_case();
  const SwitchingProblem problem = small.problem(0.0);
  for_all_plans(small, [&](const std::vector<ClockId>& plan) {
    const Cost fast = iteration_cost(problem, plan), slow = replayed(problem, plan);
    RC_ASSERT(std::abs(fast.time_s - slow.time_s) < 1e-9);
    RC_ASSERT(std::abs(fast.energy_j - slow.energy_j) < 1e-9);
  });
}

RC_GTEST_PROP(Switching, PricedPlanMatchesBruteForce, ()) {
  const SmallCase small = arbitrary_case();
  const SwitchingProblem problem = small.problem(0.0);
  const double price_w = 0.5 * *rc::gen::inRange(0, 20);
  const auto value = [&](const std::vector<ClockId>& plan) {
    const Cost cost = iteration_cost(problem, plan);
    return cost.energy_j + price_w * cost.time_s;
  };
  double best = std::numeric_limits<double>::infinity();
  for_all_plans(small,
                [&](const std::vector<ClockId>& plan) { best = std::min(best, value(plan)); });
  RC_ASSERT(std::abs(value(least_priced_plan(problem, price_w)) - best) < 1e-9);
}

RC_GTEST_PROP(Switching, BoundAndPlanEncloseTheOptimum, ()) {
  const SmallCase small = arbitrary_case();
  const double budget_s = *rc::gen::inRange(1, 120);
  const SwitchingProblem problem = small.problem(budget_s);
  double best = std::numeric_limits<double>::infinity();
  for_all_plans(small, [&](const std::vector<ClockId>& plan) {
    const Cost cost = iteration_cost(problem, plan);
    if (cost.time_s <= budget_s) best = std::min(best, cost.energy_j);
  });
  const SwitchingSolution solution = solve_switching(problem);
  if (std::isinf(best)) {
    RC_ASSERT(solution.status == SolveStatus::infeasible);
    return;
  }
  RC_ASSERT(solution.status != SolveStatus::infeasible);
  RC_ASSERT(solution.total.time_s <= budget_s);
  RC_ASSERT(solution.total.energy_j >= best - 1e-9);
  RC_ASSERT(solution.lower_bound <= best + 1e-9);
  if (solution.status == SolveStatus::optimal) RC_ASSERT(solution.total.energy_j <= best + 1e-9);
}

Exploration explored(double stall_s) {
  ExplorationInput input{.trace = load_trace("gpt3-xl"),
                         .spec = load_gpu_spec("rtx-3080-ti"),
                         .grid = "paper",
                         .power_limit_w = {},
                         .switch_cost = {stall_s, 0.0},
                         .questions = {}};
  input.questions.push_back({Granularity::kernel, Aggregation::global, LeastWaste{}});
  input.questions.push_back({Granularity::iteration, Aggregation::global, LeastWaste{}});
  input.questions.push_back({Granularity::automatic, Aggregation::global, LeastWaste{}});
  return explore(input);
}

TEST(Switching, DegradesFromKernelsToTheIteration) {
  double last_j = 0.0;
  for (const double stall_s : {0.0, 1e-5, 1e-3, 0.1}) {
    const Exploration found = explored(stall_s);
    const PlanResult &kernel = found.plans[0], &iteration = found.plans[1],
                     &automatic = found.plans[2];
    EXPECT_NEAR(automatic.sim.total.energy_j / automatic.objective, 1.0,
                1e-12);  // the simulator agrees
    EXPECT_LE(automatic.sim.total.time_s, found.baseline.total.time_s * (1.0 + 1e-12));
    EXPECT_LE(automatic.sim.total.energy_j, iteration.sim.total.energy_j * (1.0 + 1e-12));
    EXPECT_GE(automatic.sim.total.energy_j, last_j * (1.0 - 2e-3));  // dearer switches, less saving
    EXPECT_LE(automatic.gap_frac, 0.03);
    if (stall_s == 0.0) {
      EXPECT_NEAR(automatic.sim.total.energy_j / kernel.sim.total.energy_j, 1.0, 1e-3);
    }
    if (stall_s == 0.1) {
      EXPECT_EQ(automatic.sim.total.clock_switches, 0U);
    }
    last_j = automatic.sim.total.energy_j;
  }
}

}  // namespace
}  // namespace rubato
