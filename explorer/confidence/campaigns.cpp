#include "explorer/confidence/campaigns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/choice.hpp"
#include "explorer/confidence/campaign_steps.hpp"
#include "explorer/solver.hpp"
#include "models/gpu/ensemble.hpp"
#include "models/table/fill.hpp"
#include "models/validation/copies.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

constexpr std::uint64_t seed = 20260113;

bool complete(const SweepPoint& point) { return point.time_s && point.power_w; }

// The points of a campaign's kernels that are known, and those left to test.
struct Parts {
  Sweep seen, rest;
};

Parts measured_part(const GpuSpec& spec, const Sweep& sweep, std::size_t points,
                    std::mt19937_64& random) {
  Parts parts{sweep, sweep};
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    const std::vector<SweepPoint>& all = sweep.kernels[k].points;
    std::vector<bool> chosen(all.size(), points == 0);
    if (points == 0) {
      constexpr std::size_t part = 5;
      for (std::size_t i = random() % part; i < all.size(); i += part) chosen[i] = false;
    } else {
      for (const std::size_t i : spread_points(spec, sweep.kernels[k], points)) chosen[i] = true;
    }
    parts.seen.kernels[k].points.clear();
    parts.rest.kernels[k].points.clear();
    for (std::size_t i = 0; i < all.size(); ++i)
      (chosen[i] ? parts.seen : parts.rest).kernels[k].points.push_back(all[i]);
  }
  return parts;
}

// Predicts points that were left out. Changes are 100 x the logarithm of predicted over measured,
// so what was measured is at 0.
void test_cells(const GpuSpec& spec, const Sweep& rest, std::vector<Prediction>& predictions) {
  const ModelErrors errors = model_errors(spec);
  std::vector<GpuSpec> members;
  for (std::size_t m = 0; m < spec.ensemble.size(); ++m)
    members.push_back(ensemble_member(spec, m));
  if (members.empty()) members.push_back(spec);  // then errors are of the model's form alone
  std::mt19937_64 random(seed);
  for (const SweepKernel& kernel : rest.kernels) {
    const auto known = std::ranges::find(spec.kernels, kernel.name, &CalibratedKernel::name);
    const auto k = static_cast<std::size_t>(known - spec.kernels.begin());
    for (const SweepPoint& point : kernel.points) {
      std::vector<Cost> by_members;
      for (const GpuSpec& member : members) {
        const OperatingPoint at =
            predict(member, member.kernels[k].coefficients, point, rest.applied_clocks);
        by_members.push_back({at.time_s, at.energy_j});
      }
      const Cost measured{*point.time_s, *point.time_s * *point.power_w};
      const SavingInterval drawn = cell_interval(by_members, measured, errors, random);
      predictions.push_back({drawn, {drawn.time.median_pct, drawn.energy.median_pct}, {}});
    }
  }
}

// A trace with one segment for each kernel.
Trace trace_of(const std::vector<const SweepKernel*>& kernels,
               const std::vector<std::uint32_t>& launches) {
  Trace trace;
  trace.name = "campaign";
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    trace.kernels.push_back(launched_kernel(*kernels[k]));
    Segment& segment = trace.segments.emplace_back();
    segment.name = kernels[k]->name;
    segment.repeat = launches[k];
    segment.launches = {id_at<KernelId>(k)};
  }
  return trace;
}

// Errors that are taken for the truth, for steps of a sweep's kernels.
class ImaginedTruths {
 public:
  ImaginedTruths(const ModelErrors& errors, std::size_t models, const Sweep& sweep)
      : sweep_(sweep), errors_(draw_change_errors(errors, models, sweep.kernels.size())) {}

  // The errors of some of the kernels, the same in every step that has them.
  [[nodiscard]] std::vector<Cost> of(const std::vector<const SweepKernel*>& kernels) const {
    std::vector<Cost> errors;
    for (std::size_t first = 0; first < errors_.size(); first += sweep_.kernels.size()) {
      for (const SweepKernel* kernel : kernels)
        errors.push_back(errors_[first + static_cast<std::size_t>(kernel - sweep_.kernels.data())]);
    }
    return errors;
  }

 private:
  const Sweep& sweep_;
  std::vector<Cost> errors_;  // shape [models x draws_per_model x kernels]
};

void count_held(const Prediction& prediction, const std::vector<Cost>& truths_pct,
                std::vector<Cost>& held) {
  held.resize(truths_pct.size());
  for (std::size_t i = 0; i < truths_pct.size(); ++i) {
    const Cost needed = needed_scale(prediction.drawn, prediction.estimate_pct, truths_pct[i]);
    if (needed.time_s <= 1.0) ++held[i].time_s;
    if (needed.energy_j <= 1.0) ++held[i].energy_j;
  }
}

// Predicts plans for one step of some of the kernels, and says what these were measured to take.
// @param truths  to count in held_by_draw, or nullptr
void test_plans_of(const SweptClocks& swept, const std::vector<const SweepKernel*>& kernels,
                   const ImaginedTruths* truths, std::mt19937_64& random, Predictions& found) {
  const std::vector<ClockPair> clocks = common_clocks(kernels);
  if (clocks.size() < 3) return;
  const GpuSpec spec = swept.spec(clocks);
  constexpr double of_longest = 10.0, most = 1e9;
  const std::vector<std::uint32_t> launches = drawn_launches(kernels, of_longest, most, random);
  const Trace trace = trace_of(kernels, launches);
  const GpuModel model(spec, trace);
  const ClockGrid grid = swept.grid(spec, clocks);
  const ProfileTable table = fill_profile_table(model, grid);
  const std::vector<GpuModel> models = draw_models(model, trace, spec.ensemble.size());
  const SwitchModel free_changes;
  PlanIntervals intervals(trace, model, models, grid, model_errors(spec), free_changes);
  PlanIntervals imagined = intervals;
  if (truths != nullptr) imagined.set_change_errors(truths->of(kernels));
  const Cost base =
      measured_total(launches, kernels,
                     std::vector<ClockPair>(kernels.size(), clocks[index(grid.default_clock())]));
  for (const Granularity granularity : {Granularity::run, Granularity::kernel}) {
    const ChoiceUnits units = choice_units(trace, granularity);
    const ProfileTable by_unit = unit_table(table, trace, units);
    for (const double slack : {0.02, 0.05, 0.1, 0.2}) {
      const Solution best = solve_global(by_unit, LeastWaste{slack, 0.0}, grid.default_clock());
      if (best.clock_of_unit.empty()) continue;
      const Plan plan = plan_by_unit(trace, units, best.clock_of_unit);
      std::vector<ClockPair> chosen;
      for (const ClockId clock : plan.clock_of_site) chosen.push_back(clocks[index(clock)]);
      const auto is_default = [&](ClockId clock) { return clock == grid.default_clock(); };
      if (std::ranges::all_of(plan.clock_of_site, is_default)) continue;  // nothing was predicted
      const Cost measured = measured_total(launches, kernels, chosen);
      found.plans.push_back({intervals.drawn(plan),
                             intervals.estimate_pct(plan),
                             {change_pct(measured.time_s, base.time_s),
                              change_pct(measured.energy_j, base.energy_j)}});
      if (truths != nullptr)
        count_held(found.plans.back(), imagined.draws(plan).widened_changes(), found.held_by_draw);
    }
  }
}

void test_plans(const GpuSpec& spec, const Sweep& sweep, bool imagine, std::mt19937_64& random,
                Predictions& found) {
  const SweptClocks swept(spec, sweep);
  const ImaginedTruths truths(model_errors(spec), std::max<std::size_t>(1, spec.ensemble.size()),
                              sweep);
  for (int step = 0; step < steps_of_a_campaign; ++step)
    test_plans_of(swept, drawn_kernels(sweep, random), imagine ? &truths : nullptr, random, found);
}

// Errors of kernels fitted to five points; fewer if a kernel would have less than two left to test.
ModelErrors few_point_errors(const std::vector<Campaign>& campaigns, const Sweep& sweep,
                             const SweepFitOptions& fit) {
  constexpr std::size_t few_points = 5, to_test = 2;
  std::size_t points = few_points;
  for (const SweepKernel& kernel : sweep.kernels)
    points = std::min(points, std::max(kernel.points.size(), to_test + 1) - to_test);
  std::vector<ValidatedPoint> unseen;
  for (const Campaign& campaign : campaigns) {
    for (ValidatedPoint& point :
         validate(campaign.fitted, campaign.own,
                  {.holdout = Holdout::few_points, .points = points, .fit = fit}))
      unseen.push_back(std::move(point));
  }
  return estimate_errors(unseen);
}

// The factor that is enough for 90 % of predictions, between 0.25 and 5. Few kernels are weak
// evidence that intervals may be narrower. So a factor below 1 is a geometric mean: of it, once for
// each kernel, and of 1, once for each of `unsure` others.
// @param needed  by each prediction, see needed_scale()
double scale_of(std::vector<double> needed, std::size_t kernels, double unsure) {
  constexpr double narrowest = 0.25, widest = 5.0;
  if (needed.empty()) return 1.0;
  std::ranges::sort(needed);
  const auto at = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(needed.size() - 1)));
  const double scale = std::clamp(needed[at], narrowest, widest);
  const auto count = static_cast<double>(kernels);
  return scale < 1.0 ? std::pow(scale, count / (count + unsure)) : scale;
}

RelativeErrors scale_of(const std::vector<Prediction>& predictions, std::size_t kernels,
                        double unsure) {
  std::vector<double> time, energy;
  for (const Prediction& p : predictions) {
    const Cost needed = needed_scale(p.drawn, p.estimate_pct, p.measured_pct);
    time.push_back(needed.time_s);
    energy.push_back(needed.energy_j);
  }
  return {scale_of(std::move(time), kernels, unsure), scale_of(std::move(energy), kernels, unsure)};
}

// How far a prediction for a kernel may be off, judged without the kernel's own tested points.
ModelErrors errors_for(const std::string& kernel, const GpuSpec& spec,
                       const ValidationOptions& options, std::span<const ValidatedPoint> points) {
  GpuSpec known = spec;
  if (!fits_gpu(options.holdout)) {
    if (options.holdout == Holdout::few_points)
      known.fit_errors[kernel_points_key] = static_cast<double>(options.points);
    return model_errors(known);
  }
  std::vector<ValidatedPoint> others;
  std::set<std::string> kernels;
  for (const ValidatedPoint& point : points) {
    if (point.kernel == kernel) continue;
    others.push_back({point.kernel, point.measured, point.predicted});
    kernels.insert(point.kernel);
  }
  known.fit_errors.clear();
  if (others.empty()) return model_errors(known);  // as of a GPU that was never fitted
  ModelErrors errors = estimate_errors(others);
  const double few = few_draws_factor(kernels.size());
  errors.own = {few * errors.own.time, few * errors.own.energy};
  return errors;
}

}  // namespace

Sweep usable_points(Sweep sweep) {
  double largest_w = 0.0;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points)
      largest_w = std::max(largest_w, point.power_cap_w.value_or(0.0));
  }
  for (SweepKernel& kernel : sweep.kernels) {
    std::erase_if(kernel.points, [&](const SweepPoint& point) {
      return !complete(point) || point.power_cap_w.value_or(largest_w) < largest_w;
    });
  }
  std::erase_if(sweep.kernels, [](const SweepKernel& kernel) { return kernel.points.size() < 2; });
  return sweep;
}

std::vector<Campaign> fit_without_groups(const GpuSpec& frame, const Sweep& sweep,
                                         std::size_t groups, const SweepFitOptions& fit,
                                         const RunContext& context) {
  const std::size_t count = std::min(groups, sweep.kernels.size());
  if (count < 2) throw UsageError(fmt::format("{} has too few kernels", sweep.file));
  std::vector<Campaign> campaigns;
  for (std::size_t g = 0; g < count && !context.stop_requested(); ++g) {
    context.report({.done = g, .total = count, .note = "groups of kernels"});
    Sweep others = sweep, own = sweep;
    others.kernels.clear();
    own.kernels.clear();
    for (std::size_t k = 0; k < sweep.kernels.size(); ++k)
      (k % count == g ? own : others).kernels.push_back(sweep.kernels[k]);
    GpuSpec fitted = calibrate_sweep(frame, others, fit).spec;
    campaigns.push_back({std::move(fitted), std::move(others), std::move(own)});
  }
  return campaigns;
}

Predictions play(const Campaign& campaign, std::size_t points, const SweepFitOptions& fit,
                 bool imagine) {
  std::mt19937_64 random(seed + points);
  const Parts parts = measured_part(campaign.fitted, campaign.own, points, random);
  const ModelErrors errors = model_errors(campaign.fitted);
  const GpuSpec spec = with_kernels(campaign.fitted, parts.seen, fit,
                                    std::hypot(errors.own.time, errors.shared.time),
                                    std::hypot(errors.own.energy, errors.shared.energy));
  Predictions predictions{.cells = {}, .plans = {}, .held_by_draw = {}, .spec = spec};
  test_cells(spec, parts.rest, predictions.cells);
  test_plans(spec, campaign.own, imagine, random, predictions);
  return predictions;
}

void learn_errors(const GpuSpec& frame, const Sweep& sweep, const std::vector<std::size_t>& points,
                  const SweepFitOptions& fit, GpuSpec& spec, const RunContext& context) {
  constexpr std::size_t groups = 4, enough_kernels = 6;
  const Sweep all = without_copies(usable_points(sweep));
  if (all.kernels.size() < 2) return;
  spec.fit_errors[distinct_kernels_key] = static_cast<double>(all.kernels.size());
  spec.fit_errors[time_fall_key] = fall_of_times_pct(all);
  std::vector<Campaign> campaigns = fit_without_groups(frame, all, groups, fit, context);
  if (context.stop_requested()) return;
  const ModelErrors errors = few_point_errors(campaigns, all, fit);
  write_errors(errors, spec);
  if (all.kernels.size() < enough_kernels) return;
  for (Campaign& campaign : campaigns) write_errors(errors, campaign.fitted);
  for (const std::size_t p : points) {
    if (context.stop_requested()) return;
    Predictions together;
    double fewest = std::numeric_limits<double>::infinity();
    for (const Campaign& campaign : campaigns) {
      const Predictions of = play(campaign, p, fit);
      fewest = std::min(fewest, of.spec.fit_errors.at(kernel_points_key));
      together.cells.insert(together.cells.end(), of.cells.begin(), of.cells.end());
      together.plans.insert(together.plans.end(), of.plans.begin(), of.plans.end());
    }
    // Plans of steps that share kernels say less than as many cells do.
    constexpr double unsure_cells = 5.0, unsure_plans = 15.0;
    const std::size_t kernels = all.kernels.size();
    write_scales({scale_of(together.cells, kernels, unsure_cells),
                  scale_of(together.plans, kernels, unsure_plans)},
                 p, spec);
    if (p == 0) spec.fit_errors[scale_many_points_key] = fewest;
  }
}

double fall_of_times_pct(const Sweep& sweep) {
  constexpr double share = 0.95;
  const auto core_mhz = [](const SweepPoint* point) {
    return point->clock.core_mhz.value_or(std::numeric_limits<double>::infinity());
  };
  std::vector<double> falls_pct;
  for (const SweepKernel& kernel : sweep.kernels) {
    std::map<std::uint32_t, std::vector<const SweepPoint*>> by_memory;
    for (const SweepPoint& point : kernel.points) {
      if (point.time_s) by_memory[point.clock.mem.value].push_back(&point);
    }
    for (const auto& [mem, points] : by_memory) {
      const SweepPoint* usual = *std::ranges::max_element(points, {}, core_mhz);
      for (const SweepPoint* point : points) {
        if (core_mhz(point) < core_mhz(usual))
          falls_pct.push_back(std::max(0.0, -change_pct(*point->time_s, *usual->time_s)));
      }
    }
  }
  if (falls_pct.empty()) return 0.0;
  const auto at =
      falls_pct.begin() + std::llround(share * static_cast<double>(falls_pct.size() - 1));
  std::ranges::nth_element(falls_pct, at);
  return *at;
}

void add_intervals(const GpuSpec& spec, const ValidationOptions& options,
                   std::vector<ValidatedPoint>& points) {
  constexpr double percent_of_one = 100.0;
  std::map<std::string, ModelErrors> of_kernel;
  std::mt19937_64 random(seed);
  for (ValidatedPoint& point : points) {
    const auto [entry, is_new] = of_kernel.try_emplace(point.kernel);
    if (is_new) entry->second = errors_for(point.kernel, spec, options, points);
    const ModelErrors& errors = entry->second;
    const Cost predicted{point.predicted.time_s, point.predicted.energy_j};
    std::vector<Cost> drawn = point.drawn;
    if (drawn.empty()) drawn.push_back(predicted);
    const SavingInterval found =
        scaled_interval(cell_interval(drawn, predicted, errors, random), errors.scales.cells, {});
    const auto around = [](double value, const Interval& of) -> IntervalEnds {
      return {value * std::exp(of.low_pct / percent_of_one),
              value * std::exp(of.high_pct / percent_of_one)};
    };
    point.time_90_s = around(predicted.time_s, found.time);
    point.energy_90_j = around(predicted.energy_j, found.energy);
  }
}

}  // namespace rubato
