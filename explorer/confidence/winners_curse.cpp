#include "explorer/confidence/winners_curse.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "explorer/solver.hpp"

namespace rubato {

namespace {

// A noisy factor, > 0: the exponential of a Gaussian.
double factor(double sigma, std::mt19937_64& random) {
  std::normal_distribution<double> gaussian;
  return std::exp(sigma * gaussian(random));
}

Cost& operator+=(Cost& sum, const Cost& cost) {
  sum.time_s += cost.time_s;
  sum.energy_j += cost.energy_j;
  return sum;
}

// A table as one campaign measures it, the rest of the node counted.
ProfileTable measured(const ProfileTable& table, const RelativeErrors& noise, double host_power_w,
                      std::mt19937_64& random) {
  const std::size_t cells = table.rows() * table.clocks();
  const std::shared_ptr<double[]> numbers = unset_numbers(2 * cells);
  double* time_s = numbers.get();
  double* energy_j = time_s + cells;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < table.clocks(); ++c) {
      *time_s = table.times_s(row)[c] * factor(noise.time, random);
      *energy_j++ =
          table.energies_j(row)[c] * factor(noise.energy, random) + host_power_w * *time_s;
      ++time_s;
    }
  }
  return {table.rows(), table.clocks(), numbers};
}

// What a second measurement says of a choice and of the default clock. Only these cells are drawn.
// Where both are one cell it is measured once.
struct MeasuredAgain {
  Cost chosen, usual;
};

MeasuredAgain measured_again(const ProfileTable& table, const std::vector<ClockId>& choice,
                             ClockId default_clock, const RelativeErrors& noise,
                             double host_power_w, std::mt19937_64& random) {
  const auto noisy = [&](const Cost& cost) {
    const double time_s = cost.time_s * factor(noise.time, random);
    return Cost{time_s, cost.energy_j * factor(noise.energy, random) + host_power_w * time_s};
  };
  MeasuredAgain again;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Cost usual = noisy(table.cost(row, default_clock));
    again.usual += usual;
    again.chosen += choice[row] == default_clock ? usual : noisy(table.cost(row, choice[row]));
  }
  return again;
}

// All clocks but the default look worse by `safety` standard errors.
ProfileTable cautious(const ProfileTable& table, ClockId default_clock, const Remeasurement& s) {
  if (s.safety == 0.0) return table;
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
  for (std::size_t row = 0; row < table.rows(); ++row) sum += table.cost(row, clocks[row]);
  return sum;
}

}  // namespace

WinnersCurse winners_curse(const ProfileTable& table, ClockId default_clock,
                           const Remeasurement& setting) {
  if (setting.noise.time < 0.0 || setting.noise.energy < 0.0 || setting.safety < 0.0)
    throw UsageError("noise and safety must not be negative");
  if (setting.campaigns == 0) throw UsageError("there must be at least one campaign");
  SavingDraws promised(setting.campaigns), kept(setting.campaigns);
  std::vector<double> lost_time(setting.campaigns), lost_energy(setting.campaigns);
  const std::vector<ClockId> defaults(table.rows(), default_clock);
  parallel_for(setting.campaigns, [&](std::size_t i) {
    std::mt19937_64 random(setting.seed + i);
    const ProfileTable first = measured(table, setting.noise, setting.host_power_w, random);
    const ProfileTable seen = cautious(first, default_clock, setting);
    const Solution choice =
        solve_global(seen, LeastWaste{setting.time_budget_frac, 0.0}, default_clock);
    const Cost chosen = total(first, choice.clock_of_unit), usual = total(first, defaults);
    const auto [chosen_again, usual_again] = measured_again(
        table, choice.clock_of_unit, default_clock, setting.noise, setting.host_power_w, random);
    promised.set(i, chosen, usual);
    kept.set(i, chosen_again, usual_again);
    lost_time[i] = change_pct(chosen_again.time_s, usual_again.time_s) -
                   change_pct(chosen.time_s, usual.time_s);
    lost_energy[i] = change_pct(chosen_again.energy_j, usual_again.energy_j) -
                     change_pct(chosen.energy_j, usual.energy_j);
  });
  return {promised.interval(),
          kept.interval(),
          {interval_of(lost_time), interval_of(std::move(lost_energy))},
          lost_time};
}

PlanOutlook remeasured_outlook(const ProfileTable& table, ClockId default_clock,
                               Remeasurement setting, const Cost& estimate_pct) {
  constexpr std::size_t cells_to_draw = 5'000'000, least_campaigns = 8, most_campaigns = 200;
  setting.campaigns =
      std::clamp(cells_to_draw / (table.rows() * table.clocks()), least_campaigns, most_campaigns);
  WinnersCurse curse = winners_curse(table, default_clock, setting);
  const auto moved = [](double pct, const Interval& lost) -> Interval {
    return {pct + lost.low_pct, pct + lost.median_pct, pct + lost.high_pct};
  };
  for (double& pct : curse.lost_time) pct += estimate_pct.time_s;
  return {scaled_interval({moved(estimate_pct.time_s, curse.lost.time),
                           moved(estimate_pct.energy_j, curse.lost.energy)},
                          {1.0, 1.0}, estimate_pct),
          TimeDraws(std::move(curse.lost_time))};
}

ModelErrors errors_of_noise(const RelativeErrors& noise) {
  constexpr double scale = 0.7071;
  return {.shared = {}, .own = {scale * noise.time, scale * noise.energy}};
}

}  // namespace rubato
