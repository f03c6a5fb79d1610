#include "explorer/switching/search.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/switching/launch_dp.hpp"
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

// Whether the next iteration begins with the first clock again.
enum class After { same_again, nothing };

// The definition, launch by launch: a change needs the dwell and its own lead since the change
// before it, or since the begin of the iteration.
std::optional<Cost> by_definition(const SmallCase& small, const std::vector<std::uint32_t>& clocks,
                                  After after = After::same_again) {
  const std::vector<KernelId> kernels = launches(small.trace.segments);
  Cost total;
  double since_change_s = 0.0;
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    const Cost launch = small.table.cost(index(kernels[i]), ClockId{clocks[i]});
    total.time_s += launch.time_s;
    total.energy_j += launch.energy_j;
    since_change_s += launch.time_s;
    const std::uint32_t next = clocks[(i + 1) % clocks.size()];
    if (next == clocks[i] || (after == After::nothing && i + 1 == clocks.size())) continue;
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
             After after = After::same_again) {
  double best = impossible;
  for_all_plans(small, [&](const std::vector<std::uint32_t>& clocks) {
    if (const auto total = by_definition(small, clocks, after))
      best = std::min(best, value(*total));
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

std::vector<std::uint32_t> written_out(const std::vector<ClockRun>& runs) {
  std::vector<std::uint32_t> clocks;
  for (const ClockRun& run : runs) clocks.insert(clocks.end(), run.launches, run.clock);
  return clocks;
}

RC_GTEST_PROP(Switching, CheapestOpenMatchesBruteForce, ()) {
  const SmallCase small = arbitrary_case();
  const SwitchingProblem problem = small.problem();
  const LaunchSequence sequence(problem);
  const Price price{1.0 * *rc::gen::inRange(0, 2), 0.5 * *rc::gen::inRange(0, 20)};
  const auto value = [&](const Cost& cost) { return price.of(cost); };
  const PricedRuns found = cheapest_open(PricedSequence(sequence, price));
  RC_ASSERT(std::abs(found.value - least(small, value, After::nothing)) < 1e-9);
  const auto total = by_definition(small, written_out(found.runs), After::nothing);
  RC_ASSERT(total.has_value());
  RC_ASSERT(std::abs(value(*total) - found.value) < 1e-9);
  RC_ASSERT(found.value <= least(small, value) + 1e-9);
  const std::vector<ClockRun> runs = closed(sequence, found.runs);
  RC_ASSERT(written_out(runs).size() == sequence.size());
  RC_ASSERT(iteration_cost(sequence, runs).has_value());
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
        small, [](const Cost& cost) { return cost.energy_j; }, After::nothing);
    EXPECT_EQ(cheapest_open(PricedSequence(sequence, energy, clocks)).value, best);
    EXPECT_EQ(cheapest_open(PricedSequence(sequence, energy)).value, best);
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
  SmallCase written = repeated;
  written.trace.segments = {
      {.name = "all", .repeat = 1, .launches = launches(repeated.trace.segments)}};
  const SwitchingProblem short_problem = repeated.problem(), long_problem = written.problem();
  const LaunchSequence short_sequence(short_problem), long_sequence(long_problem);
  const Price price{1.0, 0.5 * *rc::gen::inRange(0, 20)};
  const PricedSequence short_priced(short_sequence, price), long_priced(long_sequence, price);
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
  const PricedRuns a = cheapest_open(short_priced), b = cheapest_open(long_priced);
  RC_ASSERT(close(a.value, b.value));
  const auto total = by_definition(written, written_out(a.runs), After::nothing);
  RC_ASSERT(total.has_value());
  RC_ASSERT(close(price.of(*total), b.value));
}

RC_GTEST_PROP(Switching, RepeatsAreWorthWhatTheirLaunchesAre, ()) {
  // Few have runs that wait in front of a block, look alike a repeat later and are not.
  for (int i = 0; i < 40; ++i) expect_repeats_worth_their_launches();
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
    RC_ASSERT(solution.status != SolveStatus::optimal && solution.status != SolveStatus::feasible);
    RC_ASSERT(solution.runs.empty());
    return;
  }
  if (solution.runs.empty()) {  // without a start none may be found: nothing is said then
    RC_ASSERT(solution.status == SolveStatus::time_limit);
    return;
  }
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
