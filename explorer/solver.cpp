#include "explorer/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "explorer/knapsack/mckp.hpp"
#include "explorer/pareto.hpp"

namespace rubato {

namespace {

std::span<const double> all_times(const ProfileTable& table) {
  return {table.times_s(0).data(), table.rows() * table.clocks()};
}
std::span<const double> all_energies(const ProfileTable& table) {
  return {table.energies_j(0).data(), table.rows() * table.clocks()};
}

double total_time(const ProfileTable& table, ClockId clock) {
  return total_of(table, std::vector<ClockId>(table.rows(), clock)).time_s;
}

// energy x time^power, what EDP and ED2P minimise.
double delay_product(const Cost& cost, int power) {
  return cost.energy_j * std::pow(cost.time_s, power);
}

Solution solved(const ProfileTable& table, std::vector<ClockId> clocks) {
  Solution solution;
  solution.status = SolveStatus::optimal;
  solution.total = total_of(table, clocks);
  solution.clock_of_unit = std::move(clocks);
  return solution;
}

Solution proven(Solution solution, double objective) {
  solution.objective = objective;
  solution.lower_bound = objective;
  return solution;
}

std::vector<ClockId> as_clocks(const std::vector<std::size_t>& choice) {
  std::vector<ClockId> clocks;
  for (const std::size_t item : choice) clocks.push_back(id_at<ClockId>(item));
  return clocks;
}

Solution from_mckp(const ProfileTable& table, const MckpResult& result, const RunContext& context) {
  if (!result.feasible) return {};
  Solution solution = solved(table, as_clocks(result.choice));
  solution.objective = result.cost;
  solution.lower_bound = result.lower_bound;
  solution.nodes = result.states;
  if (!result.proven)
    solution.status = context.stop_requested() ? SolveStatus::time_limit : SolveStatus::feasible;
  return solution;
}

// Least energy x time^n, looked for on the lower convex hull of the front (the linear relaxation).
// Between two neighbouring vertices energy falls linearly: energy = a - b time > 0. There
// time^n (a - b time) rises, then falls. So the least is at a vertex, and vertices are choices.
Solution least_delay_product(const ProfileTable& table, int power) {
  const MckpProblem problem{table.rows(), table.clocks(), all_energies(table), all_times(table),
                            0.0};
  const HullPath path = hull_path(problem);
  Cost now = total_of(table, as_clocks(path.start));
  double best = delay_product(now, power);
  std::size_t best_steps = 0;
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    now.time_s += path.steps[i].weight_change;
    now.energy_j += path.steps[i].cost_change;
    if (delay_product(now, power) < best) {
      best = delay_product(now, power);
      best_steps = i + 1;
    }
  }
  std::vector<std::size_t> choice = path.start;
  for (std::size_t i = 0; i < best_steps; ++i) choice[path.steps[i].row] = path.steps[i].item;
  Solution solution = solved(table, as_clocks(choice));
  const double objective = delay_product(solution.total, power);
  return proven(std::move(solution), objective);
}

struct GlobalSolver {
  const ProfileTable& table;
  ClockId default_clock;
  const RunContext& context;

  Solution operator()(const LeastWaste& goal) const {
    const double budget_s =
        (1.0 + goal.slack_frac + goal.tolerance_frac) * total_time(table, default_clock);
    return from_mckp(
        table,
        solve_mckp({table.rows(), table.clocks(), all_energies(table), all_times(table), budget_s},
                   context),
        context);
  }
  Solution operator()(const LeastEdp&) const { return least_delay_product(table, 1); }
  Solution operator()(const LeastEd2p&) const { return least_delay_product(table, 2); }
  Solution operator()(const LeastEnergy&) const {
    const double no_bound = std::numeric_limits<double>::max();
    return from_mckp(
        table,
        solve_mckp({table.rows(), table.clocks(), all_energies(table), all_times(table), no_bound},
                   context),
        context);
  }
  // The cost is a sum without a budget: each unit has its least cost.
  Solution operator()(const LeastCost& goal) const {
    return solve_local(table, goal, default_clock);
  }
  Solution operator()(const LeastTime& goal) const {
    if (goal.max_energy_j) {
      return from_mckp(table,
                       solve_mckp({table.rows(), table.clocks(), all_times(table),
                                   all_energies(table), *goal.max_energy_j},
                                  context),
                       context);
    }
    // Average power: sum of (energy - power x time) <= 0.
    const double power_w = goal.max_average_power_w.value();
    std::vector<double> excess_j(table.rows() * table.clocks());
    std::ranges::transform(
        all_energies(table), all_times(table), excess_j.begin(),
        [&](double energy_j, double time_s) { return energy_j - power_w * time_s; });
    return from_mckp(
        table, solve_mckp({table.rows(), table.clocks(), all_times(table), excess_j, 0.0}, context),
        context);
  }
};

constexpr double not_allowed = std::numeric_limits<double>::infinity();

// What a unit minimises on its own.
struct LocalValue {
  const Cost& cost;
  const Cost& usual;  // at the default clock
  double default_j;   // of all units

  double operator()(const LeastWaste& goal) const {
    const double most_s = (1.0 + goal.slack_frac + goal.tolerance_frac) * usual.time_s;
    if (cost.time_s > most_s) return not_allowed;
    return cost.energy_j;
  }
  double operator()(const LeastEdp&) const { return delay_product(cost, 1); }
  double operator()(const LeastEd2p&) const { return delay_product(cost, 2); }
  double operator()(const LeastEnergy&) const { return cost.energy_j; }
  double operator()(const LeastCost& goal) const {
    return goal.prices.of(cost.time_s, cost.energy_j);
  }
  double operator()(const LeastTime& goal) const {
    // A unit's share of the energy budget is its share of the default energy.
    const double share = usual.energy_j / default_j;
    if (cost.energy_j > goal.max_average_power_w.value_or(not_allowed) * cost.time_s ||
        cost.energy_j > goal.max_energy_j.value_or(not_allowed) * share)
      return not_allowed;
    return cost.time_s;
  }
};

}  // namespace

Cost total_of(const ProfileTable& table, std::span<const ClockId> clock_of_unit) {
  CompensatedSum time_s, energy_j;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Cost cost = table.cost(row, clock_of_unit[row]);
    time_s.add(cost.time_s);
    energy_j.add(cost.energy_j);
  }
  return {time_s.value(), energy_j.value()};
}

double Solution::gap_frac() const noexcept {
  if (status == SolveStatus::optimal || objective == 0.0) return 0.0;
  return (objective - lower_bound) / std::abs(objective);
}

std::string_view name_of(SolveStatus value) noexcept {
  switch (value) {
    case SolveStatus::optimal: return "optimal";
    case SolveStatus::feasible: return "feasible";
    case SolveStatus::infeasible: return "infeasible";
    case SolveStatus::time_limit: break;
  }
  return "time_limit";
}

void check_goal(const Goal& goal) {
  const auto* time = std::get_if<LeastTime>(&goal);
  if (time != nullptr && time->max_energy_j.has_value() == time->max_average_power_w.has_value()) {
    throw UsageError("least time needs either an energy or an average power budget");
  }
}

Solution solve_global(const ProfileTable& table, const Goal& goal, ClockId default_clock,
                      const RunContext& context) {
  check_goal(goal);
  return std::visit(GlobalSolver{table, default_clock, context}, goal);
}

Solution solve_local(const ProfileTable& table, const Goal& goal, ClockId default_clock) {
  check_goal(goal);
  const double default_j =
      total_of(table, std::vector<ClockId>(table.rows(), default_clock)).energy_j;
  std::vector<ClockId> clocks;
  CompensatedSum objective;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Cost usual = table.cost(row, default_clock);
    double least = not_allowed;
    ClockId best;
    for (std::size_t c = 0; c < table.clocks(); ++c) {
      const Cost cost = table.cost(row, id_at<ClockId>(c));
      const double value = std::visit(LocalValue{cost, usual, default_j}, goal);
      if (value >= least) continue;
      least = value;
      best = id_at<ClockId>(c);
    }
    if (least == not_allowed) return {};
    clocks.push_back(best);
    objective.add(least);
  }
  return proven(solved(table, std::move(clocks)), objective.value());
}

std::vector<Cost> supported_front(const ProfileTable& table) {
  const HullPath path =
      hull_path({table.rows(), table.clocks(), all_energies(table), all_times(table), 0.0});
  std::vector<std::size_t> choice = path.start;
  CompensatedSum time_s, energy_j;
  const Cost start = total_of(table, as_clocks(choice));
  time_s.add(start.time_s);
  energy_j.add(start.energy_j);
  std::vector<Cost> front{start};
  for (const HullStep& step : path.steps) {
    time_s.add(step.weight_change);
    energy_j.add(step.cost_change);
    front.push_back({time_s.value(), energy_j.value()});
  }
  return front;
}

std::vector<Cost> exact_front(const ProfileTable& table) {
  std::vector<Cost> front{{0.0, 0.0}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    std::vector<double> time_s, energy_j;
    const std::vector<std::size_t> own = pareto_front(table.times_s(row), table.energies_j(row));
    for (const Cost& sum : front) {
      for (const std::size_t c : own) {
        time_s.push_back(sum.time_s + table.times_s(row)[c]);
        energy_j.push_back(sum.energy_j + table.energies_j(row)[c]);
      }
    }
    front.clear();
    for (const std::size_t i : pareto_front(time_s, energy_j))
      front.push_back({time_s[i], energy_j[i]});
  }
  return front;
}

}  // namespace rubato
