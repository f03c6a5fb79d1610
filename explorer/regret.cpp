#include "explorer/regret.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/numbers.hpp"
#include "models/alternatives/measured_table.hpp"

namespace rubato {

namespace {

constexpr double rounding = 1e-9;  // of sums of times

Cost default_total(const ProfileTable& table, ClockId clock) {
  return total_of(table, std::vector<ClockId>(table.rows(), clock));
}

ClockId usual_id(const GpuSpec& spec, std::span<const ClockPair> clocks) {
  const auto usual = std::ranges::find(clocks, usual_clock(spec, clocks));
  return id_at<ClockId>(static_cast<std::size_t>(usual - clocks.begin()));
}

// Costs of launches at some clocks, measured and predicted, shape [kernels x clocks].
struct Tables {
  std::vector<ClockPair> clocks;
  std::vector<double> time_s, energy_j, predicted_time_s, predicted_energy_j;

  void add(const SweepPoint& point, const OperatingPoint& predicted, double launches) {
    time_s.push_back(launches * *point.time_s);
    energy_j.push_back(launches * *point.time_s * *point.power_w);
    predicted_time_s.push_back(launches * predicted.time_s);
    predicted_energy_j.push_back(launches * predicted.energy_j);
  }

  [[nodiscard]] ProfileTable measured() const {
    return {time_s.size() / clocks.size(), clocks.size(), time_s, energy_j};
  }
  [[nodiscard]] ProfileTable predicted() const {
    return {time_s.size() / clocks.size(), clocks.size(), predicted_time_s, predicted_energy_j};
  }
};

Tables alone(const SweepKernel& kernel, std::span<const OperatingPoint> predicted) {
  Tables tables;
  for (std::size_t i = 0; i < kernel.points.size(); ++i) {
    tables.clocks.push_back(kernel.points[i].clock);
    tables.add(kernel.points[i], predicted[i], 1.0);
  }
  return tables;
}

std::vector<ClockPair> clocks_of_all(const Sweep& sweep) {
  std::vector<ClockPair> clocks;
  for (const SweepPoint& point : sweep.kernels.front().points) {
    const auto has = [&](const SweepKernel& kernel) {
      return std::ranges::find(kernel.points, point.clock, &SweepPoint::clock) !=
             kernel.points.end();
    };
    if (std::ranges::all_of(sweep.kernels, has)) clocks.push_back(point.clock);
  }
  return clocks;
}

Tables together(const GpuSpec& spec, const Sweep& sweep,
                std::span<const std::vector<OperatingPoint>> predicted) {
  Tables tables;
  tables.clocks = clocks_of_all(sweep);
  if (tables.clocks.empty()) return tables;
  const ClockPair usual = usual_clock(spec, tables.clocks);
  const bool counted = std::ranges::any_of(
      sweep.kernels, [](const SweepKernel& kernel) { return kernel.count != 1; });
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    const std::vector<SweepPoint>& points = sweep.kernels[k].points;
    const auto at = [&](const ClockPair& clock) {
      return static_cast<std::size_t>(std::ranges::find(points, clock, &SweepPoint::clock) -
                                      points.begin());
    };
    const double launches = counted ? static_cast<double>(sweep.kernels[k].count)
                                    : 1.0 / points[at(usual)].time_s.value();
    for (const ClockPair& clock : tables.clocks)
      tables.add(points[at(clock)], predicted[k][at(clock)], launches);
  }
  return tables;
}

// All rows summed up as one unit.
ProfileTable summed(const ProfileTable& table) {
  std::vector<double> time_s, energy_j;
  for (std::size_t clock = 0; clock < table.clocks(); ++clock) {
    const Cost total = default_total(table, id_at<ClockId>(clock));
    time_s.push_back(total.time_s);
    energy_j.push_back(total.energy_j);
  }
  return {1, table.clocks(), std::move(time_s), std::move(energy_j)};
}

void add(RegretRow& row, const Regret& regret) {
  ++row.plans;
  if (regret.late_pct > 0.0) ++row.late;
  row.mean.promised_energy_pct += regret.promised_energy_pct;
  row.mean.time_pct += regret.time_pct;
  row.mean.energy_pct += regret.energy_pct;
  row.mean.late_pct += regret.late_pct;
  row.mean.best_energy_pct += regret.best_energy_pct;
  row.mean.regret_pct += regret.regret_pct;
  row.worst_late_pct = std::max(row.worst_late_pct, regret.late_pct);
  row.worst_regret_pct = std::max(row.worst_regret_pct, regret.regret_pct);
}

void finish(RegretRow& row) {
  const auto count = static_cast<double>(row.plans);
  for (double* value : {&row.mean.promised_energy_pct, &row.mean.time_pct, &row.mean.energy_pct,
                        &row.mean.late_pct, &row.mean.best_energy_pct, &row.mean.regret_pct})
    *value /= count;
}

}  // namespace

std::string_view name_of(PlannedSteps value) noexcept {
  switch (value) {
    case PlannedSteps::alone: return "alone";
    case PlannedSteps::one_clock: return "one-clock";
    case PlannedSteps::clock_per_kernel: break;
  }
  return "per-kernel";
}

Regret regret_of(const ProfileTable& measured, const ProfileTable& predicted, ClockId default_clock,
                 double slack_frac) {
  const Cost base = default_total(measured, default_clock);
  const Cost base_predicted = default_total(predicted, default_clock);
  const Solution planned = solve_global(predicted, LeastWaste{slack_frac, rounding}, default_clock);
  // The default clocks are always in time.
  assert(!planned.clock_of_unit.empty());
  const Cost played = total_of(measured, planned.clock_of_unit);
  const double taken_frac = played.time_s / base.time_s - 1.0;
  const bool late = taken_frac > slack_frac + rounding;
  const auto best_j = [&](double allowed_frac) {
    return solve_global(measured, LeastWaste{allowed_frac, rounding}, default_clock).total.energy_j;
  };
  const double best_in_time_j = best_j(slack_frac);
  const double best_as_late_j = late ? best_j(taken_frac) : best_in_time_j;
  return {.promised_energy_pct = percent * (planned.total.energy_j / base_predicted.energy_j - 1.0),
          .time_pct = percent * taken_frac,
          .energy_pct = percent * (played.energy_j / base.energy_j - 1.0),
          .late_pct = late ? percent * (taken_frac - slack_frac) : 0.0,
          .best_energy_pct = percent * (best_in_time_j / base.energy_j - 1.0),
          .regret_pct = percent * (played.energy_j - best_as_late_j) / base.energy_j};
}

std::vector<RegretRow> regrets(const GpuSpec& spec, const Sweep& sweep,
                               std::span<const std::vector<OperatingPoint>> predicted,
                               std::span<const double> slacks_frac) {
  std::vector<Tables> each;
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k)
    each.push_back(alone(sweep.kernels[k], predicted[k]));
  const Tables step = together(spec, sweep, predicted);
  std::vector<RegretRow> rows;
  for (const double slack_frac : slacks_frac) {
    RegretRow row{.steps = PlannedSteps::alone, .slack_frac = slack_frac, .mean = {}};
    for (const Tables& tables : each) {
      add(row, regret_of(tables.measured(), tables.predicted(), usual_id(spec, tables.clocks),
                         slack_frac));
    }
    finish(row);
    rows.push_back(row);
  }
  constexpr std::size_t enough_clocks = 3;
  if (step.clocks.size() < enough_clocks) return rows;
  const ProfileTable measured = step.measured(), modelled = step.predicted();
  const ClockId usual = usual_id(spec, step.clocks);
  for (const PlannedSteps steps : {PlannedSteps::one_clock, PlannedSteps::clock_per_kernel}) {
    const bool one = steps == PlannedSteps::one_clock;
    for (const double slack_frac : slacks_frac) {
      RegretRow row{.steps = steps, .slack_frac = slack_frac, .mean = {}};
      add(row, one ? regret_of(summed(measured), summed(modelled), usual, slack_frac)
                   : regret_of(measured, modelled, usual, slack_frac));
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace rubato
