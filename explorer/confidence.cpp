#include "explorer/confidence.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <tbb/parallel_for.h>

#include "common/error.hpp"
#include "explorer/solver.hpp"

namespace rubato {

namespace {

double change_pct(double value, double reference) { return 100.0 * (value / reference - 1.0); }

Interval interval_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.05), at(0.5), at(0.95)};
}

// Values of many draws, as intervals.
struct Draws {
  std::vector<double> time_pct, energy_pct;

  explicit Draws(std::size_t count) : time_pct(count), energy_pct(count) {}
  void set(std::size_t i, const Cost& cost, const Cost& base) {
    time_pct[i] = change_pct(cost.time_s, base.time_s);
    energy_pct[i] = change_pct(cost.energy_j, base.energy_j);
  }
  [[nodiscard]] SavingInterval interval() const {
    return {interval_of(time_pct), interval_of(energy_pct)};
  }
};

// An error factor that is never far from 1 and never negative.
double factor(double sigma, std::mt19937_64& random) {
  std::normal_distribution<double> gaussian;
  return std::exp(sigma * gaussian(random));
}

void add(Cost& sum, const Cost& cost) {
  sum.time_s += cost.time_s;
  sum.energy_j += cost.energy_j;
}

// Every kernel's totals under a plan with an error of its own; switches are exact.
Cost with_errors(const SimResult& result, const std::vector<RelativeErrors>& factors) {
  Cost sum{result.switching.time_s, result.switching.energy_j};
  for (std::size_t k = 0; k < factors.size(); ++k) {
    add(sum, {result.by_kernel[k].time_s * factors[k].time,
              result.by_kernel[k].energy_j * factors[k].energy});
  }
  return sum;
}

// Kernels the plan runs at another clock than the default ones; a request that
// comes to the same clock is none.
std::vector<bool> changed_kernels(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                                  const Plan& plan) {
  const auto in_effect = [&](ClockId clock) {
    return std::pair{grid[clock].mem, effective_core_mhz(model.spec(), grid[clock])};
  };
  std::vector<bool> changed(trace.kernels.size(), false);
  const std::vector<Site> launches = sites(trace, plan);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (in_effect(plan.clock_of_site[i]) != in_effect(grid.default_clock()))
      changed[index(launches[i].kernel)] = true;
  }
  return changed;
}

// A table as one campaign measures it.
ProfileTable measured(const ProfileTable& table, const RelativeErrors& noise,
                      std::mt19937_64& random) {
  std::vector<double> time_s, energy_j;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < table.clocks(); ++c) {
      time_s.push_back(table.times_s(row)[c] * factor(noise.time, random));
      energy_j.push_back(table.energies_j(row)[c] * factor(noise.energy, random));
    }
  }
  return {table.rows(), table.clocks(), std::move(time_s), std::move(energy_j)};
}

// All clocks but the default look worse by `safety` standard errors.
ProfileTable cautious(const ProfileTable& table, ClockId default_clock, const Remeasurement& s) {
  std::vector<double> time_s, energy_j;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < table.clocks(); ++c) {
      const double caution = id_at<ClockId>(c) == default_clock ? 0.0 : s.safety;
      time_s.push_back(table.times_s(row)[c] * (1.0 + caution * s.noise.time));
      energy_j.push_back(table.energies_j(row)[c] * (1.0 + caution * s.noise.energy));
    }
  }
  return {table.rows(), table.clocks(), std::move(time_s), std::move(energy_j)};
}

Cost total(const ProfileTable& table, const std::vector<ClockId>& clocks) {
  Cost sum;
  for (std::size_t row = 0; row < table.rows(); ++row) add(sum, table.cost(row, clocks[row]));
  return sum;
}

}  // namespace

SavingInterval saving_interval(const Trace& trace, const std::vector<GpuModel>& models,
                               const ClockGrid& grid, const Plan& plan, const RelativeErrors& cell,
                               const SwitchModel& switching) {
  constexpr std::size_t draws_per_model = 8;
  const std::vector<bool> changed = changed_kernels(trace, models.front(), grid, plan);
  const Plan defaults = uniform_plan(trace, grid.default_clock());
  Draws draws(models.size() * draws_per_model);
  tbb::parallel_for(std::size_t{0}, models.size(), [&](std::size_t m) {
    std::mt19937_64 random(20260113 + m);
    const SimResult planned = simulate(trace, models[m], grid, plan, switching);
    const SimResult base = simulate(trace, models[m], grid, defaults, switching);
    for (std::size_t d = 0; d < draws_per_model; ++d) {
      std::vector<RelativeErrors> base_factors, plan_factors;
      for (const bool other_clock : changed) {
        base_factors.push_back({factor(cell.time, random), factor(cell.energy, random)});
        plan_factors.push_back(
            other_clock ? RelativeErrors{factor(cell.time, random), factor(cell.energy, random)}
                        : base_factors.back());
      }
      draws.set(m * draws_per_model + d, with_errors(planned, plan_factors),
                with_errors(base, base_factors));
    }
  });
  return draws.interval();
}

WinnersCurse winners_curse(const ProfileTable& table, ClockId default_clock,
                           const Remeasurement& setting) {
  if (setting.noise.time < 0.0 || setting.noise.energy < 0.0 || setting.safety < 0.0)
    throw UsageError("noise and safety must not be negative");
  if (setting.campaigns == 0) throw UsageError("there must be at least one campaign");
  Draws promised(setting.campaigns), kept(setting.campaigns), lost(setting.campaigns);
  const std::vector<ClockId> defaults(table.rows(), default_clock);
  tbb::parallel_for(std::size_t{0}, setting.campaigns, [&](std::size_t i) {
    std::mt19937_64 random(setting.seed + i);
    const ProfileTable first = measured(table, setting.noise, random);
    const ProfileTable again = measured(table, setting.noise, random);
    const ProfileTable seen = cautious(first, default_clock, setting);
    const Solution choice =
        solve_global(seen, LeastWaste{setting.time_budget_frac, 0.0}, default_clock);
    promised.set(i, total(first, choice.clock_of_unit), total(first, defaults));
    kept.set(i, total(again, choice.clock_of_unit), total(again, defaults));
    lost.time_pct[i] = kept.time_pct[i] - promised.time_pct[i];
    lost.energy_pct[i] = kept.energy_pct[i] - promised.energy_pct[i];
  });
  return {promised.interval(), kept.interval(), lost.interval()};
}

}  // namespace rubato
