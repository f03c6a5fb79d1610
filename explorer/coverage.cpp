#include "explorer/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "explorer/choice.hpp"
#include "explorer/confidence.hpp"
#include "explorer/solver.hpp"
#include "models/gpu/ensemble.hpp"
#include "models/table/fill.hpp"
#include "models/validation/errors.hpp"
#include "models/validation/model_errors.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

constexpr std::uint64_t seed = 20260113;

// Sums for a Covered.
struct Tally {
  std::size_t count = 0;
  double time = 0.0, energy = 0.0, time_width = 0.0, energy_width = 0.0, time_bias = 0.0,
         energy_bias = 0.0;

  void add(const SavingInterval& interval, double time_pct, double energy_pct) {
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
    return {count,         time / n,       energy / n, time_width / n, energy_width / n,
            time_bias / n, energy_bias / n};
  }
};

bool complete(const SweepPoint& point) { return point.time_s && point.power_w; }

// Under the largest power cap, with time and power.
Sweep usable(Sweep sweep) {
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

// What a campaign has measured of its kernels, and what not.
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

// A spec whose clocks and power limit are those of a sweep: what it applied is no upper bound, and
// an automatic core clock is the boost clock.
class SweptClocks {
 public:
  SweptClocks(GpuSpec spec, const Sweep& sweep) : spec_(std::move(spec)) {
    constexpr double step_mhz = 0.1;  // sweeps log clocks between the steps
    spec_.core.step_mhz = step_mhz;
    for (const MemState& state : spec_.mem_states)
      boosts_mhz_.push_back(std::round(state.boost_mhz / step_mhz) * step_mhz);
    double& limit_w = spec_.power_limit.limit_w;
    for (const SweepKernel& kernel : sweep.kernels) {
      for (const SweepPoint& point : kernel.points)
        limit_w = std::max(limit_w, point.power_cap_w.value_or(0.0));
    }
    spec_.power_limit.max_w = std::max(spec_.power_limit.max_w, limit_w);
    if (!sweep.applied_clocks) return;
    for (MemState& state : spec_.mem_states) {
      state.boost_mhz = 2.0 * spec_.core.max_mhz;
      state.max_core_mhz.reset();
    }
  }

  // The highest of the clocks is the default.
  [[nodiscard]] GpuSpec spec(const std::vector<ClockPair>& clocks) const {
    GpuSpec spec = spec_;
    spec.default_clock = applied(*std::ranges::max_element(clocks, {}, [&](const ClockPair& clock) {
      return std::pair{spec.mem_states[index(clock.mem)].mem_mhz, *applied(clock).core_mhz};
    }));
    return spec;
  }

  [[nodiscard]] ClockPair applied(const ClockPair& clock) const {
    return {clock.mem, clock.core_mhz.value_or(boosts_mhz_[index(clock.mem)])};
  }

 private:
  GpuSpec spec_;
  std::vector<double> boosts_mhz_;  // shape [memory states]
};

void test_cells(const GpuSpec& spec, const Sweep& rest, Tally& tally) {
  const ModelErrors errors = model_errors(spec);
  std::vector<GpuSpec> members;
  for (std::size_t m = 0; m < spec.ensemble.size(); ++m)
    members.push_back(ensemble_member(spec, m));
  std::mt19937_64 random(seed);
  for (const SweepKernel& kernel : rest.kernels) {
    const auto known = std::ranges::find(spec.kernels, kernel.name, &CalibratedKernel::name);
    const auto k = static_cast<std::size_t>(known - spec.kernels.begin());
    for (const SweepPoint& point : kernel.points) {
      std::vector<double> time, energy;
      for (const GpuSpec& member : members) {
        const OperatingPoint at =
            predict(member, member.kernels[k].coefficients, point, rest.applied_clocks);
        for (std::size_t d = 0; d < draws_per_model; ++d) {
          const Cost factor = ErrorDraw(errors, random).factors(random);
          time.push_back(100.0 * std::log(at.time_s * factor.time_s / *point.time_s));
          energy.push_back(
              100.0 * std::log(at.energy_j * factor.energy_j / (*point.time_s * *point.power_w)));
        }
      }
      tally.add({interval_of(widened(std::move(time))), interval_of(widened(std::move(energy)))},
                0.0, 0.0);
    }
  }
}

// Kernels launched so that each takes about as long, give or take a factor of three.
Trace trace_of(const std::vector<const SweepKernel*>& kernels, std::mt19937_64& random) {
  Trace trace;
  trace.name = "campaign";
  double longest_s = 0.0;
  for (const SweepKernel* kernel : kernels)
    longest_s = std::max(longest_s, kernel->points.front().time_s.value());
  for (const SweepKernel* kernel : kernels) {
    const double each = 10.0 * longest_s / kernel->points.front().time_s.value();
    const double share = static_cast<double>(1 + random() % 5) / 3.0;
    Kernel& added = trace.kernels.emplace_back();
    added.name = kernel->name;
    Segment& segment = trace.segments.emplace_back();
    segment.name = kernel->name;
    segment.repeat = static_cast<std::uint32_t>(std::clamp(std::round(each * share), 1.0, 1e9));
    segment.launches = {id_at<KernelId>(trace.kernels.size() - 1)};
  }
  return trace;
}

// Measured cost of a kernel at a clock.
std::optional<Cost> measured_cost(const SweepKernel& kernel, const ClockPair& clock) {
  const auto found = std::ranges::find(kernel.points, clock, &SweepPoint::clock);
  if (found == kernel.points.end()) return std::nullopt;
  return Cost{*found->time_s, *found->time_s * *found->power_w};
}

std::vector<ClockPair> common_clocks(const std::vector<const SweepKernel*>& kernels) {
  std::vector<ClockPair> clocks;
  for (const SweepPoint& point : kernels.front()->points) {
    const bool everywhere = std::ranges::all_of(
        kernels, [&](const SweepKernel* k) { return measured_cost(*k, point.clock).has_value(); });
    if (everywhere && std::ranges::find(clocks, point.clock) == clocks.end())
      clocks.push_back(point.clock);
  }
  return clocks;
}

Cost measured_total(const Trace& trace, const std::vector<const SweepKernel*>& kernels,
                    const std::vector<ClockPair>& clock_of_kernel) {
  Cost sum;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Cost cost = measured_cost(*kernels[k], clock_of_kernel[k]).value();
    sum.time_s += trace.segments[k].repeat * cost.time_s;
    sum.energy_j += trace.segments[k].repeat * cost.energy_j;
  }
  return sum;
}

// One step made of some of the kernels: plans for it, and what they were measured to do.
void test_plans_of(const SweptClocks& swept, const std::vector<const SweepKernel*>& kernels,
                   std::mt19937_64& random, Tally& tally) {
  const std::vector<ClockPair> clocks = common_clocks(kernels);
  if (clocks.size() < 3) return;
  const GpuSpec spec = swept.spec(clocks);
  const Trace trace = trace_of(kernels, random);
  const GpuModel model(spec, trace);
  std::vector<ClockPair> applied;
  for (const ClockPair& clock : clocks) applied.push_back(swept.applied(clock));
  const ClockGrid grid(spec, applied);
  const ProfileTable table = fill_profile_table(model, grid);
  const std::vector<GpuModel> models = draw_models(model, trace, spec.ensemble.size());
  const Cost base = measured_total(
      trace, kernels, std::vector<ClockPair>(kernels.size(), clocks[index(grid.default_clock())]));
  for (const Granularity granularity : {Granularity::iteration, Granularity::kernel}) {
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
      const Cost measured = measured_total(trace, kernels, chosen);
      tally.add(saving_interval(trace, model, models, grid, plan, model_errors(spec), {}),
                100.0 * (measured.time_s / base.time_s - 1.0),
                100.0 * (measured.energy_j / base.energy_j - 1.0));
    }
  }
}

void test_plans(const GpuSpec& spec, const Sweep& sweep, std::mt19937_64& random, Tally& tally) {
  constexpr int steps = 8;
  const SweptClocks swept(spec, sweep);
  for (int step = 0; step < steps; ++step) {
    std::vector<const SweepKernel*> kernels;
    for (const SweepKernel& kernel : sweep.kernels) {
      if (random() % 2 == 0) kernels.push_back(&kernel);
    }
    if (kernels.empty()) kernels.push_back(&sweep.kernels[random() % sweep.kernels.size()]);
    test_plans_of(swept, kernels, random, tally);
  }
}

}  // namespace

std::vector<CoverageRow> measure_coverage(const GpuSpec& frame, const Sweep& sweep,
                                          const CoverageOptions& options,
                                          const RunContext& context) {
  const Sweep all = usable(sweep);
  const std::size_t groups = std::min(options.groups, all.kernels.size());
  if (groups < 2) throw UsageError(fmt::format("{} has too few kernels", sweep.file));
  std::vector<Tally> cells(options.points.size()), plans(options.points.size());
  for (std::size_t g = 0; g < groups && !context.stop_requested(); ++g) {
    context.report({.done = g, .total = groups, .note = "groups of kernels"});
    Sweep others = all, own = all;
    others.kernels.clear();
    own.kernels.clear();
    for (std::size_t k = 0; k < all.kernels.size(); ++k)
      (k % groups == g ? own : others).kernels.push_back(all.kernels[k]);
    GpuSpec fitted = calibrate_sweep(frame, others, options.fit).spec;
    if (others.kernels.size() > 1)
      write_errors(held_out_errors(frame, others, options.fit, context), fitted);
    std::mt19937_64 random(seed + g);
    for (std::size_t p = 0; p < options.points.size(); ++p) {
      const Parts parts = measured_part(fitted, own, options.points[p], random);
      const ModelErrors errors = model_errors(fitted);
      const GpuSpec spec = with_kernels(fitted, parts.seen, options.fit,
                                        std::hypot(errors.own.time, errors.shared.time),
                                        std::hypot(errors.own.energy, errors.shared.energy));
      test_cells(spec, parts.rest, cells[p]);
      test_plans(spec, own, random, plans[p]);
    }
  }
  std::vector<CoverageRow> rows;
  for (std::size_t p = 0; p < options.points.size(); ++p)
    rows.push_back({options.points[p], cells[p].mean(), plans[p].mean()});
  return rows;
}

}  // namespace rubato
