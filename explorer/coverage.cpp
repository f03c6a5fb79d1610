#include "explorer/coverage.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "explorer/captured_campaign.hpp"
#include "explorer/confidence/campaigns.hpp"
#include "models/validation/copies.hpp"

namespace rubato {

namespace {

constexpr std::size_t seed = 20260113;

// Sums for a Covered.
struct Tally {
  std::size_t count = 0;
  double time = 0.0, energy = 0.0, time_width = 0.0, energy_width = 0.0, time_bias = 0.0,
         energy_bias = 0.0;

  void add(const Prediction& prediction, const RelativeErrors& scale) {
    const SavingInterval interval =
        scaled_interval(prediction.drawn, scale, prediction.estimate_pct);
    const double time_pct = prediction.measured_pct.time_s,
                 energy_pct = prediction.measured_pct.energy_j;
    const auto inside = [](const Interval& i, double value) {
      return i.low_pct <= value && value <= i.high_pct ? 1.0 : 0.0;
    };
    ++count;
    time += inside(interval.time, time_pct);
    energy += inside(interval.energy, energy_pct);
    time_width += interval.time.high_pct - interval.time.low_pct;
    energy_width += interval.energy.high_pct - interval.energy.low_pct;
    time_bias += time_pct - interval.time.median_pct;
    energy_bias += energy_pct - interval.energy.median_pct;
  }

  [[nodiscard]] Covered mean() const {
    const double n = std::max<double>(1.0, static_cast<double>(count));
    return {count,           time / n, energy / n, time_width / n, energy_width / n, time_bias / n,
            energy_bias / n, {},       {}};
  }
};

// What campaigns would show if their truths were draws: one for each campaign, many times over.
struct Chance {
  std::vector<std::vector<Cost>> held_by_draw;  // of each campaign

  void write_to(Covered& covered) const {
    constexpr int imagined = 1000;
    std::mt19937_64 random(seed);
    std::vector<double> time, energy;
    for (int i = 0; i < imagined && covered.count > 0; ++i) {
      Cost held;
      for (const std::vector<Cost>& of : held_by_draw) {
        if (of.empty()) continue;
        const Cost& truth = of[random() % of.size()];
        held.time_s += truth.time_s;
        held.energy_j += truth.energy_j;
      }
      time.push_back(held.time_s / static_cast<double>(covered.count));
      energy.push_back(held.energy_j / static_cast<double>(covered.count));
    }
    if (time.empty()) return;
    const auto range = [](std::vector<double> shares) -> ShareRange {
      const Interval of = interval_of(std::move(shares));
      return {of.low_pct, of.high_pct};
    };
    covered.time_by_chance = range(std::move(time));
    covered.energy_by_chance = range(std::move(energy));
  }
};

}  // namespace

std::vector<CoverageRow> measure_coverage(const GpuSpec& frame, const Sweep& sweep,
                                          const CoverageOptions& options,
                                          const RunContext& context) {
  std::vector<Tally> cells(options.points.size()), plans(cells), captured(cells), twice(cells);
  std::vector<Chance> chances(options.points.size());
  std::vector<std::size_t> measured = options.points;
  std::erase(measured, captured_only);
  std::size_t g = 0;
  for (Campaign& campaign : fit_without_groups(frame, without_copies(usable_points(sweep)),
                                               options.groups, options.fit, context)) {
    campaign.fitted.fit_errors.clear();  // the frame's know all kernels
    learn_errors(frame, campaign.others, measured, options.fit, campaign.fitted, context);
    for (std::size_t p = 0; p < options.points.size(); ++p) {
      GpuSpec spec = campaign.fitted;
      if (options.points[p] != captured_only) {
        Predictions found = play(campaign, options.points[p], options.fit, true);
        const IntervalScales scales = model_errors(found.spec).scales;
        for (const Prediction& cell : found.cells) cells[p].add(cell, scales.cells);
        for (const Prediction& plan : found.plans) plans[p].add(plan, scales.plans);
        chances[p].held_by_draw.push_back(std::move(found.held_by_draw));
        spec = std::move(found.spec);
      }
      if (!options.captures) continue;
      constexpr RelativeErrors as_answered{1.0, 1.0};
      for (const Prediction& plan : play_captured(spec, campaign.own, seed + g))
        captured[p].add(plan, as_answered);
      if (options.points[p] != captured_only) continue;
      for (const Prediction& plan : play_captured(spec, campaign.own, seed + g, 2))
        twice[p].add(plan, as_answered);
    }
    ++g;
  }
  std::vector<CoverageRow> rows;
  for (std::size_t p = 0; p < options.points.size(); ++p) {
    rows.push_back(
        {options.points[p], cells[p].mean(), plans[p].mean(), captured[p].mean(), twice[p].mean()});
    chances[p].write_to(rows.back().plans);
  }
  return rows;
}

}  // namespace rubato
