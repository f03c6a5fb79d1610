// Every goal against brute force on all small cases, and laws on larger ones.

#include "explorer/solver.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "explorer/knapsack/mckp.hpp"
#include "tests/expect_error.hpp"
#include "tests/uniform.hpp"

namespace rubato {
namespace {

constexpr ClockId reference{0};

ProfileTable small_table(std::size_t rows, std::size_t clocks, int largest) {
  const auto numbers = [&] { return whole_numbers(rows * clocks, 1, largest + 1); };
  return {rows, clocks, numbers(), numbers()};
}

ProfileTable arbitrary_table() {
  // Ties at 4, few ties at 1000.
  return small_table(*rc::gen::inRange<std::size_t>(1, 6), *rc::gen::inRange<std::size_t>(1, 5),
                     *rc::gen::element(4, 1000));
}

// Calls `visit` with the total of every choice.
void for_all_choices(const ProfileTable& table, const std::function<void(const Cost&)>& visit) {
  std::vector<std::size_t> choice(table.rows(), 0);
  while (true) {
    Cost total;
    for (std::size_t r = 0; r < table.rows(); ++r) {
      total.time_s += table.times_s(r)[choice[r]];
      total.energy_j += table.energies_j(r)[choice[r]];
    }
    visit(total);
    std::size_t r = 0;
    while (r < table.rows() && ++choice[r] == table.clocks()) choice[r++] = 0;
    if (r == table.rows()) return;
  }
}

// What a goal minimises and allows, from its definition.
struct Rule {
  std::function<double(const Cost&)> value;
  std::function<bool(const Cost&)> allowed;
};

double default_time(const ProfileTable& table) {
  double time_s = 0.0;
  for (std::size_t r = 0; r < table.rows(); ++r) time_s += table.times_s(r)[0];
  return time_s;
}

Rule rule_of(const Goal& goal, double default_time_s) {
  const auto always = [](const Cost&) { return true; };
  if (const auto* waste = std::get_if<LeastWaste>(&goal)) {
    const double budget_s = (1.0 + waste->slack_frac + waste->tolerance_frac) * default_time_s;
    return {[](const Cost& c) { return c.energy_j; },
            [budget_s](const Cost& c) { return c.time_s <= budget_s; }};
  }
  if (std::holds_alternative<LeastEdp>(goal))
    return {[](const Cost& c) { return c.energy_j * c.time_s; }, always};
  if (std::holds_alternative<LeastEd2p>(goal))
    return {[](const Cost& c) { return c.energy_j * c.time_s * c.time_s; }, always};
  if (std::holds_alternative<LeastEnergy>(goal))
    return {[](const Cost& c) { return c.energy_j; }, always};
  if (const auto* cost = std::get_if<LeastCost>(&goal)) {
    // kWh of the building and hours of the GPU, each at its price.
    return {[prices = cost->prices](const Cost& c) {
              return c.energy_j * prices.pue / 3.6e6 * prices.per_kwh +
                     c.time_s / 3600.0 * prices.per_gpu_hour;
            },
            always};
  }
  const auto& time = std::get<LeastTime>(goal);
  if (time.max_energy_j) {
    return {[](const Cost& c) { return c.time_s; },
            [limit = *time.max_energy_j](const Cost& c) { return c.energy_j <= limit; }};
  }
  return {[](const Cost& c) { return c.time_s; },
          [limit = *time.max_average_power_w](const Cost& c) {
            return c.energy_j <= limit * c.time_s;
          }};
}

std::vector<Goal> all_goals(const ProfileTable& table) {
  // Budgets around what the table can do: some cannot be met.
  const double energy_j =
      static_cast<double>(*rc::gen::inRange(1, 40)) * static_cast<double>(table.rows());
  const double power_w = 0.125 * *rc::gen::inRange(1, 40);
  const double slack = 0.0625 * *rc::gen::inRange(-12, 17);
  // Time worth from nothing to far more than any cell draws.
  const Prices prices{.per_kwh = *rc::gen::element(0.1, 1000.0),
                      .per_gpu_hour = *rc::gen::element(0.0, 0.0005, 0.5, 10.0),
                      .pue = *rc::gen::element(1.0, 1.5)};
  return {LeastWaste{},
          LeastWaste{slack, 0.0},
          LeastWaste{0.0, 0.125},
          LeastEdp{},
          LeastEd2p{},
          LeastEnergy{},
          LeastCost{prices},
          LeastTime{energy_j, {}},
          LeastTime{{}, power_w}};
}

RC_GTEST_PROP(GlobalSolver, MatchesBruteForceForEveryGoal, ()) {
  const ProfileTable table = arbitrary_table();
  for (const Goal& goal : all_goals(table)) {
    const Rule rule = rule_of(goal, default_time(table));
    double best = std::numeric_limits<double>::infinity();
    for_all_choices(table, [&](const Cost& total) {
      if (rule.allowed(total)) best = std::min(best, rule.value(total));
    });
    const Solution solution = solve_global(table, goal, reference);
    RC_TAG(name_of(goal));
    if (std::isinf(best)) {
      RC_ASSERT(solution.status == SolveStatus::infeasible);
      RC_ASSERT(solution.clock_of_unit.empty());
      continue;
    }
    RC_ASSERT(solution.status == SolveStatus::optimal);
    RC_ASSERT(solution.gap_frac() == 0.0);
    RC_ASSERT(rule.allowed(solution.total));
    RC_ASSERT(std::abs(rule.value(solution.total) - best) <= 1e-12 * best);
    if (std::holds_alternative<LeastCost>(goal))
      RC_ASSERT(std::abs(solution.objective - best) <= 1e-12 * best);
    RC_ASSERT(solution.lower_bound <= solution.objective * (1.0 + 1e-12));
  }
}

RC_GTEST_PROP(LocalSolver, IsBruteForceOnEveryUnitAlone, ()) {
  const ProfileTable table = arbitrary_table();
  for (const Goal& goal : std::vector<Goal>{LeastWaste{}, LeastWaste{0.25, 0.0}, LeastEdp{},
                                            LeastEd2p{}, LeastEnergy{}}) {
    const Solution solution = solve_local(table, goal, reference);
    RC_ASSERT(solution.status == SolveStatus::optimal);
    for (std::size_t r = 0; r < table.rows(); ++r) {
      const Rule rule = rule_of(goal, table.times_s(r)[0]);
      double best = std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < table.clocks(); ++c) {
        const Cost cost = table.cost(r, id_at<ClockId>(c));
        if (rule.allowed(cost)) best = std::min(best, rule.value(cost));
      }
      const Cost chosen = table.cost(r, solution.clock_of_unit[r]);
      RC_ASSERT(rule.allowed(chosen));
      RC_ASSERT(rule.value(chosen) == best);
    }
  }
}

// A table like a real one: the faster, the more energy, with noise.
ProfileTable realistic_table(std::size_t rows, std::size_t clocks) {
  std::vector<double> time_s, energy_j;
  const auto noise =
      *rc::gen::container<std::vector<int>>(2 * rows * clocks, rc::gen::inRange(0, 1000));
  for (std::size_t i = 0; i < rows * clocks; ++i) {
    const double clock = 1.0 + static_cast<double>(i % clocks);
    const double size = 1.0 + 0.37 * static_cast<double>((i / clocks) % 17);
    time_s.push_back(size * (1.0 / clock + 0.05) * (1.0 + 1e-4 * noise[2 * i]));
    energy_j.push_back(size * (0.2 + 0.01 * clock * clock) * (1.0 + 1e-4 * noise[2 * i + 1]));
  }
  return {rows, clocks, std::move(time_s), std::move(energy_j)};
}

RC_GTEST_PROP(GlobalSolver, MoreSlackNeverCostsEnergy, ()) {
  const ProfileTable table =
      realistic_table(*rc::gen::inRange<std::size_t>(1, 25), *rc::gen::inRange<std::size_t>(1, 20));
  const ClockId middle = id_at<ClockId>(table.clocks() / 2);
  double last = std::numeric_limits<double>::infinity();
  for (const double slack : {0.0, 0.01, 0.05, 0.2, 1.0}) {
    const Solution solution = solve_global(table, LeastWaste{slack, 0.0}, middle);
    RC_ASSERT(solution.status == SolveStatus::optimal);
    RC_ASSERT(solution.total.energy_j <= last * (1.0 + 1e-12));
    last = solution.total.energy_j;
  }
}

RC_GTEST_PROP(GlobalSolver, ScalingUnitsKeepsTheValue, ()) {
  const ProfileTable table = realistic_table(8, 12);
  const double scale = *rc::gen::element(1e-9, 1e-3, 1e6);
  std::vector<double> time_s, energy_j;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    for (std::size_t c = 0; c < table.clocks(); ++c) {
      time_s.push_back(table.times_s(r)[c] / scale);
      energy_j.push_back(table.energies_j(r)[c] * scale);
    }
  }
  const ProfileTable scaled(table.rows(), table.clocks(), time_s, energy_j);
  const ClockId middle{6};
  const Solution a = solve_global(table, LeastWaste{0.02, 0.0}, middle);
  const Solution b = solve_global(scaled, LeastWaste{0.02, 0.0}, middle);
  RC_ASSERT(std::abs(b.total.energy_j / scale / a.total.energy_j - 1.0) < 1e-9);
}

RC_GTEST_PROP(Fronts, SupportedPointsLieOnTheExactFront, ()) {
  const ProfileTable table = small_table(3, 4, 9);
  const std::vector<Cost> exact = exact_front(table);
  for (std::size_t i = 1; i < exact.size(); ++i) {
    RC_ASSERT(exact[i].time_s > exact[i - 1].time_s && exact[i].energy_j < exact[i - 1].energy_j);
  }
  for (const Cost& point : supported_front(table)) {
    const bool there = std::ranges::any_of(exact, [&](const Cost& c) {
      return c.time_s == point.time_s && c.energy_j == point.energy_j;
    });
    RC_ASSERT(there);
  }
  for_all_choices(table, [&](const Cost& total) {
    const bool covered = std::ranges::any_of(exact, [&](const Cost& c) {
      return c.time_s <= total.time_s && c.energy_j <= total.energy_j;
    });
    RC_ASSERT(covered);
  });
}

TEST(Mckp, GivesUpTheProofWhenToldTo) {
  // Subset sums: the bound is weak, so that a search limited to few states cannot close the gap.
  constexpr std::size_t rows = 30;
  std::vector<double> cost, weight;
  for (std::size_t r = 0; r < rows; ++r) {
    const double w = 1000.0 + static_cast<double>((r * 7919) % 997);
    cost.insert(cost.end(), {w, 0.0});
    weight.insert(weight.end(), {0.0, w});
  }
  const MckpResult result = solve_mckp({rows, 2, cost, weight, 20000.5}, {}, 10);
  EXPECT_TRUE(result.feasible);
  EXPECT_FALSE(result.proven);
  EXPECT_LE(result.lower_bound, result.cost);
  EXPECT_LE(result.weight, 20000.5);
}

TEST(GlobalSolver, WantsExactlyOneBudgetForLeastTime) {
  const ProfileTable table(1, 1, {1.0}, {1.0});
  expect_error<UsageError>([&] { (void)solve_global(table, LeastTime{}, reference); },
                           "either an energy or an average power budget");
}

}  // namespace
}  // namespace rubato
