#include "explorer/switching/search.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/switching/launch_dp.hpp"
#include "explorer/switching/run_clocks.hpp"
#include "explorer/switching/run_crossing.hpp"
#include "tests/uniform.hpp"

namespace rubato {
namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();

// A few launches, clocks and small numbers that make ties.
struct SmallCase {
  Trace trace;
  ProfileTable table{1, 1, {1.0}, {1.0}};
  std::vector<ClockPair> clocks;
  std::vector<double> idle_power_w;
  SwitchModel switching;

  [[nodiscard]] SwitchingProblem problem(double budget_s = 0.0) const {
    return {trace, table, clocks, idle_power_w, switching, budget_s};
  }
};

SwitchCost arbitrary_cost() {
  return {.stall_s = 0.25 * *rc::gen::inRange(0, 5),
          .energy_j = 0.5 * *rc::gen::inRange(0, 3),
          .lead_s = 1.0 * *rc::gen::inRange(0, 12)};
}

SmallCase arbitrary_case() {
  SmallCase made;
  const auto kernels = *rc::gen::inRange<std::size_t>(1, 4);
  made.trace.kernels.resize(kernels);
  std::size_t launches = 0;
  for (int s = 0; launches < 2 || (launches < 5 && *rc::gen::inRange(0, 2) == 0); ++s) {
    Segment segment{.name = std::to_string(s),
                    .repeat = *rc::gen::inRange<std::uint32_t>(1, 3),
                    .launches = {}};
    for (int i = *rc::gen::inRange(1, 3); i > 0; --i)
      segment.launches.push_back(id_at<KernelId>(*rc::gen::inRange<std::size_t>(0, kernels)));
    launches += segment.repeat * segment.launches.size();
    made.trace.segments.push_back(std::move(segment));
  }
  const auto clocks = *rc::gen::inRange<std::size_t>(1, 4);
  // Pairs that differ in one clock, in the other, and in both.
  const std::vector<ClockPair> pairs{
      {MemStateId{0}, 1.0}, {MemStateId{0}, 2.0}, {MemStateId{1}, 1.0}, {MemStateId{1}, 3.0}};
  const auto first = *rc::gen::inRange<std::size_t>(0, 2);
  made.clocks.assign(pairs.begin() + static_cast<std::ptrdiff_t>(first),
                     pairs.begin() + static_cast<std::ptrdiff_t>(first + clocks));
  made.table = ProfileTable(kernels, clocks, whole_numbers(kernels * clocks, 1, 9),
                            whole_numbers(kernels * clocks, 1, 9));
  made.idle_power_w = whole_numbers(clocks, 1, 9);
  made.switching = {.core = arbitrary_cost(), .mem = {}, .dwell_s = 1.0 * *rc::gen::inRange(0, 4)};
  if (*rc::gen::inRange(0, 2) == 0) made.switching.mem = arbitrary_cost();
  return made;
}

// Every choice of one clock for each launch.
void for_all_plans(const SmallCase& small,
                   const std::function<void(const std::vector<std::uint32_t>&)>& visit) {
  std::vector<std::uint32_t> clocks(launches(small.trace.segments).size());
  while (true) {
    visit(clocks);
    std::size_t i = 0;
    while (i < clocks.size() && ++clocks[i] == small.clocks.size()) clocks[i++] = 0;
    if (i == clocks.size()) return;
  }
}

// The definition, launch by launch: a change needs the dwell and its own lead since the change
// before it, or since the begin of the iteration.
std::optional<Cost> by_definition(const SmallCase& small,
                                  const std::vector<std::uint32_t>& clocks) {
  const std::vector<KernelId> kernels = launches(small.trace.segments);
  Cost total;
  double since_change_s = 0.0;
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    const Cost launch = small.table.cost(index(kernels[i]), ClockId{clocks[i]});
    total.time_s += launch.time_s;
    total.energy_j += launch.energy_j;
    since_change_s += launch.time_s;
    const std::uint32_t next = clocks[(i + 1) % clocks.size()];
    if (next == clocks[i]) continue;
    const SwitchCost cost = small.switching.change(small.clocks[clocks[i]], small.clocks[next]);
    if (since_change_s < small.switching.dwell_s + cost.lead_s) return std::nullopt;
    total.time_s += cost.stall_s;
    total.energy_j += cost.energy_j + cost.stall_s * small.idle_power_w[next];
    since_change_s = 0.0;
  }
  return total;
}

// The least of a value over all plans that keep the rules.
double least(const SmallCase& small, const std::function<double(const Cost&)>& value,
             std::optional<std::uint32_t> first = {}) {
  double best = impossible;
  for_all_plans(small, [&](const std::vector<std::uint32_t>& clocks) {
    if (first && clocks.front() != *first) return;
    if (const auto total = by_definition(small, clocks)) best = std::min(best, value(*total));
  });
  return best;
}

RC_GTEST_PROP(Switching, IterationCostIsTheDefinition, ()) {
  const SmallCase small = arbitrary_case();
  const SwitchingProblem problem = small.problem();
  const LaunchSequence sequence(problem);
  for_all_plans(small, [&](const std::vector<std::uint32_t>& clocks) {
    const auto fast = iteration_cost(sequence, runs_of(clocks)),
               slow = by_definition(small, clocks);
    RC_ASSERT(fast.has_value() == slow.has_value());
    if (!slow) return;
    RC_ASSERT(std::abs(fast->time_s - slow->time_s) < 1e-9);
    RC_ASSERT(std::abs(fast->energy_j - slow->energy_j) < 1e-9);
  });
}

RC_GTEST_PROP(Switching, CheapestRoundMatchesBruteForce, ()) {
  const SmallCase small = arbitrary_case();
  const SwitchingProblem problem = small.problem();
  const LaunchSequence sequence(problem);
  const Price price{1.0 * *rc::gen::inRange(0, 2), 0.5 * *rc::gen::inRange(0, 20)};
  const PricedSequence priced(sequence, price);
  const std::vector<double> bounds = bounds_by_first_clock(priced);
  const auto value = [&](const Cost& cost) { return price.of(cost); };
  for (std::uint32_t first = 0; first < small.clocks.size(); ++first) {
    const double best = least(small, value, first);
    const PricedRuns found = cheapest_round(priced, first);
    RC_ASSERT(std::abs(found.value - best) < 1e-9);
    RC_ASSERT(found.runs.front().clock == first);
    const auto total = iteration_cost(sequence, found.runs);
    RC_ASSERT(total.has_value());
    RC_ASSERT(std::abs(price.of(*total) - best) < 1e-9);
    RC_ASSERT(bounds[first] <= best + 1e-9);
    RC_ASSERT(bounds[first] >= cheapest_open(priced, first).value - 1e-9);
  }
  RC_ASSERT(cheapest_open(priced).value <= least(small, value) + 1e-9);
}

// The last clock takes half, once or twice the time of the first one, and somewhat more energy.
void make_last_clock_worse(SmallCase& small) {
  std::vector<double> time_s, energy_j;
  for (std::size_t row = 0; row < small.table.rows(); ++row) {
    for (std::uint32_t c = 0; c < small.clocks.size(); ++c) {
      const Cost cost = small.table.cost(row, ClockId{c}),
                 first = small.table.cost(row, ClockId{0});
      const bool last = c + 1 == small.clocks.size();
      time_s.push_back(last ? first.time_s * *rc::gen::element(0.5, 1.0, 2.0) : cost.time_s);
      energy_j.push_back(last ? first.energy_j + *rc::gen::inRange(0, 4) : cost.energy_j);
    }
  }
  small.table =
      ProfileTable(small.table.rows(), small.clocks.size(), std::move(time_s), std::move(energy_j));
  small.switching.mem = {};
}

RC_GTEST_PROP(Switching, UsefulClocksHoldACheapestPlan, ()) {
  SmallCase small = arbitrary_case();
  make_last_clock_worse(small);
  const SwitchingProblem problem = small.problem();
  const LaunchSequence sequence(problem);
  const Price price{1.0 * *rc::gen::inRange(0, 2), 0.5 * *rc::gen::inRange(0, 20)};
  const PricedSequence all(sequence, price);
  const PricedSequence useful(sequence, price, useful_clocks(sequence, price));
  RC_CLASSIFY(useful.clocks().size() < all.clocks().size(), "clocks left out");
  RC_ASSERT(std::abs(cheapest_open(useful).value - cheapest_open(all).value) < 1e-9);
  double best = impossible;
  for (std::size_t first = 0; first < useful.clocks().size(); ++first) {
    const PricedRuns found = cheapest_round(useful, first);
    const auto total = iteration_cost(sequence, found.runs);
    RC_ASSERT(total.has_value());
    RC_ASSERT(std::abs(price.of(*total) - found.value) < 1e-9);
    best = std::min(best, found.value);
  }
  RC_ASSERT(std::abs(best - least(small, [&](const Cost& cost) { return price.of(cost); })) < 1e-9);
}

// Three clocks; the second one is for the first kernel only. For the second kernel the third one
// takes twice as long as the first one and a little more energy.
SmallCase third_clock_case(double lead_s, double stall_s, std::vector<double> idle_power_w) {
  SmallCase made;
  made.trace.kernels.resize(2);
  const KernelId a{0}, b{1};
  made.trace.segments = {{.name = "all", .repeat = 1, .launches = {a, b, a}}};
  made.clocks = {{MemStateId{0}, 1.0}, {MemStateId{0}, 2.0}, {MemStateId{0}, 3.0}};
  made.table =
      ProfileTable(2, 3, {20.0, 20.0, 20.0, 6.0, 20.0, 12.0}, {100.0, 1.0, 100.0, 1.0, 100.0, 2.0});
  made.idle_power_w = std::move(idle_power_w);
  made.switching.core = {.stall_s = stall_s, .energy_j = 0.0, .lead_s = lead_s};
  return made;
}

TEST(Switching, AClockIsUsefulWhereAChangeToItIsCheaperOrARunAtItLongEnough) {
  const auto expect_useful = [](const SmallCase& small, const std::vector<std::uint32_t>& clocks) {
    const SwitchingProblem problem = small.problem();
    const LaunchSequence sequence(problem);
    const Price energy{1.0, 0.0};
    EXPECT_EQ(useful_clocks(sequence, energy), clocks);
    const double best = least(
        small, [](const Cost& cost) { return cost.energy_j; }, 1U);
    EXPECT_EQ(cheapest_round(PricedSequence(sequence, energy, clocks), 1).value, best);
    EXPECT_EQ(cheapest_round(PricedSequence(sequence, energy), 1).value, best);
  };
  expect_useful(third_clock_case(0.0, 0.0, {5.0, 5.0, 5.0}), {0, 1});
  expect_useful(third_clock_case(10.0, 0.0, {5.0, 5.0, 5.0}), {0, 1, 2});
  expect_useful(third_clock_case(0.0, 1.0, {5.0, 5.0, 5.0}), {0, 1});
  expect_useful(third_clock_case(0.0, 1.0, {5.0, 5.0, 3.0}), {0, 1, 2});
}

// Repeats are not gone through one by one; launches written out are.
void expect_repeats_worth_their_launches() {
  SmallCase repeated = arbitrary_case();
  for (Segment& segment : repeated.trace.segments)
    segment.repeat = *rc::gen::inRange<std::uint32_t>(1, 40);
  SmallCase written_out = repeated;
  written_out.trace.segments = {
      {.name = "all", .repeat = 1, .launches = launches(repeated.trace.segments)}};
  const SwitchingProblem short_problem = repeated.problem(), long_problem = written_out.problem();
  const LaunchSequence short_sequence(short_problem), long_sequence(long_problem);
  const Price price{1.0, 0.5 * *rc::gen::inRange(0, 20)};
  const PricedSequence short_priced(short_sequence, price), long_priced(long_sequence, price);
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
  const std::vector<double> short_bounds = bounds_by_first_clock(short_priced),
                            long_bounds = bounds_by_first_clock(long_priced);
  for (std::size_t first = 0; first < repeated.clocks.size(); ++first) {
    const PricedRuns a = cheapest_round(short_priced, first),
                     b = cheapest_round(long_priced, first);
    RC_ASSERT(close(a.value, b.value));
    const auto total = iteration_cost(long_sequence, a.runs);
    RC_ASSERT(total.has_value());
    RC_ASSERT(close(price.of(*total), b.value));
    RC_ASSERT(close(short_bounds[first], long_bounds[first]));
  }
}

RC_GTEST_PROP(Switching, RepeatsAreWorthWhatTheirLaunchesAre, ()) {
  // Few have runs that wait in front of a block, look alike a repeat later and are not.
  for (int i = 0; i < 40; ++i) expect_repeats_worth_their_launches();
}

// A plan, as long as it keeps the budget, gets no worse if its runs get new clocks; where changes
// are all alike, no other clocks of the same runs are better.
RC_GTEST_PROP(Switching, NewClocksOfRunsAreTheBest, ()) {
  SmallCase small = arbitrary_case();
  small.switching.mem = {};
  const double budget_s = 0.5 * *rc::gen::inRange(20, 120);
  const SwitchingProblem problem = small.problem(budget_s);
  const LaunchSequence sequence(problem);
  std::vector<std::vector<std::uint32_t>> plans;
  for_all_plans(small, [&](const std::vector<std::uint32_t>& clocks) { plans.push_back(clocks); });
  const std::vector<ClockRun> runs =
      runs_of(plans[*rc::gen::inRange<std::size_t>(0, plans.size())]);
  if (runs.size() == 1 || !iteration_cost(sequence, runs)) return;
  const bool goes_on = runs.front().clock == runs.back().clock;
  double best_j = impossible;  // of plans with a change of clock where these runs have one, only
  for (const std::vector<std::uint32_t>& clocks : plans) {
    const std::vector<ClockRun> other = runs_of(clocks);
    const bool same_cuts =
        std::ranges::equal(other, runs, {}, &ClockRun::launches, &ClockRun::launches);
    if (!same_cuts || goes_on != (other.front().clock == other.back().clock)) continue;
    const auto cost = iteration_cost(sequence, other);
    if (cost && cost->time_s <= budget_s) best_j = std::min(best_j, cost->energy_j);
  }
  const std::vector<ClockRun> found = with_new_clocks(sequence, runs, budget_s, {});
  if (found.empty()) {
    RC_ASSERT(std::isinf(best_j));
    return;
  }
  const auto cost = iteration_cost(sequence, found);
  RC_ASSERT(cost.has_value());
  RC_ASSERT(cost->time_s <= budget_s + 1e-9);
  RC_ASSERT(cost->energy_j <= best_j + 1e-9);
}

// The second run would be cheapest at a clock at which it is over too soon for the next change.
TEST(Switching, NewClocksOfRunsLeaveEachRunLongEnough) {
  SmallCase small;
  small.trace.kernels.resize(2);
  small.trace.segments = {{.name = "all", .repeat = 1, .launches = {KernelId{0}, KernelId{1}}}};
  small.clocks = {{MemStateId{0}, 1.0}, {MemStateId{0}, 2.0}};
  small.table = ProfileTable(2, 2, {10.0, 10.0, 4.0, 1.0}, {10.0, 20.0, 10.0, 1.0});
  small.idle_power_w = {1.0, 1.0};
  small.switching = {
      .core = {.stall_s = 0.0, .energy_j = 0.0, .lead_s = 0.0}, .mem = {}, .dwell_s = 2.0};
  const SwitchingProblem problem = small.problem(100.0);
  const LaunchSequence sequence(problem);
  const std::vector<ClockRun> found =
      with_new_clocks(sequence, std::vector<ClockRun>{{1, 1}, {0, 1}}, 100.0, {});
  const auto cost = iteration_cost(sequence, found);
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->energy_j, 20.0);
}

RC_GTEST_PROP(Switching, SolutionIsBetweenItsBoundAndWhatBruteForceFinds, ()) {
  const SmallCase small = arbitrary_case();
  const double budget_s = 0.5 * *rc::gen::inRange(1, 120);
  const SwitchingProblem problem = small.problem(budget_s);
  const double best = least(small, [&](const Cost& cost) {
    if (cost.time_s > budget_s + 1e-9) return impossible;
    return cost.energy_j;
  });
  const SwitchingSolution solution = solve_switching(problem);
  if (std::isinf(best)) {
    RC_ASSERT(solution.status == SolveStatus::infeasible);
    RC_ASSERT(solution.runs.empty());
    return;
  }
  RC_ASSERT(!solution.runs.empty());
  RC_ASSERT(solution.total.time_s <= budget_s + 1e-9);
  RC_ASSERT(solution.total.energy_j >= best - 1e-6);
  RC_ASSERT(solution.lower_bound <= best + 1e-6);
  if (solution.status == SolveStatus::optimal) RC_ASSERT(solution.total.energy_j <= best + 1e-6);
}

RC_GTEST_PROP(Switching, PlansOfRunsKeepEveryClock, ()) {
  const SmallCase small = arbitrary_case();
  const std::size_t size = launches(small.trace.segments).size();
  const auto clocks = *rc::gen::container<std::vector<std::uint32_t>>(
      size, rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(small.clocks.size())));
  const std::vector<ClockRun> runs = runs_of(clocks);
  const Plan plan = plan_of_runs(small.trace, runs);
  RC_ASSERT(launches(plan.segments_of(small.trace)) == launches(small.trace.segments));
  RC_ASSERT(runs_of(small.trace, plan) == runs);
}

RC_GTEST_PROP(Switching, JoinsAtTheBestCut, ()) {
  const SmallCase small = arbitrary_case();
  const SwitchingProblem problem = small.problem();
  const LaunchSequence sequence(problem);
  const auto any_plan = [&] {
    return *rc::gen::container<std::vector<std::uint32_t>>(
        sequence.size(),
        rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(small.clocks.size())));
  };
  const std::vector<std::uint32_t> before = any_plan(), after = any_plan();
  const double budget_s = *rc::gen::inRange(1, 60);
  double best = impossible;
  for (std::size_t cut = 1; cut < before.size(); ++cut) {
    std::vector<std::uint32_t> clocks = after;
    std::copy_n(before.begin(), cut, clocks.begin());
    const auto total = by_definition(small, clocks);
    if (total && total->time_s <= budget_s) best = std::min(best, total->energy_j);
  }
  const std::vector<ClockRun> joined = join(sequence, runs_of(before), runs_of(after), budget_s);
  RC_ASSERT(joined.empty() == std::isinf(best));
  if (joined.empty()) return;
  RC_ASSERT(std::abs(iteration_cost(sequence, joined)->energy_j - best) < 1e-9);
}

}  // namespace
}  // namespace rubato
