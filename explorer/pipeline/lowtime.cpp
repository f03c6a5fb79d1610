#include "explorer/pipeline/lowtime.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "common/algorithms/convex_argmin.hpp"
#include "common/error.hpp"

namespace rubato {

namespace {

struct FitPoint {
  double q = 0.0;
  double cost_j = 0.0;
};

double floored(double time_s, double unit_s) { return std::floor(time_s / unit_s); }

// Options in the order in which lowtime tries them, highest core clock first. Only those of the
// highest memory clock: lowtime leaves the memory clock alone.
std::vector<std::size_t> falling_clocks(const PassType& type) {
  double mem_mhz = 0.0;
  for (const ClockOption& option : type.options) mem_mhz = std::max(mem_mhz, option.mem_mhz);
  std::vector<std::size_t> order;
  for (std::size_t o = 0; o < type.options.size(); ++o) {
    if (type.options[o].mem_mhz == mem_mhz) order.push_back(o);
  }
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t o) { return type.options[o].core_mhz; });
  return order;
}

std::vector<FitPoint> samples(const PassType& type, double blocked_power_w, double unit_s) {
  std::vector<ClockOption> sorted;
  for (const std::size_t o : falling_clocks(type)) sorted.push_back(type.options[o]);
  std::ranges::sort(sorted, {},
                    [](const ClockOption& o) { return std::tuple(o.time_s, o.energy_j); });
  std::vector<FitPoint> kept;
  double least_j = std::numeric_limits<double>::infinity();
  for (const ClockOption& o : sorted) {
    if (o.energy_j >= least_j) continue;
    least_j = o.energy_j;
    const double q = floored(o.time_s, unit_s);
    if (!kept.empty() && q == kept.back().q) continue;
    kept.push_back({q, o.energy_j - blocked_power_w * q * unit_s});
  }
  return kept;
}

// Sets scale and base of least squared error at a given rate, and returns that error.
double fit_at(const std::vector<FitPoint>& list, double rate, ExponentialFit& fit) {
  const double n = static_cast<double>(list.size());
  const double q0 = list.front().q;
  double sx = 0.0, sy = 0.0, sxx = 0.0, sxy = 0.0;
  for (const FitPoint& s : list) {
    const double x = std::exp(rate * (s.q - q0));
    sx += x;
    sy += s.cost_j;
    sxx += x * x;
    sxy += x * s.cost_j;
  }
  const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  fit.rate = rate;
  fit.base = (sy - slope * sx) / n;
  fit.scale = slope * std::exp(-rate * q0);
  double error = 0.0;
  for (const FitPoint& s : list) error += std::pow(fit.cost_j(s.q) - s.cost_j, 2);
  return error;
}

}  // namespace

double ExponentialFit::cost_j(double q) const { return scale * std::exp(rate * q) + base; }

ExponentialFit fit_lowtime(const PassType& type, double blocked_power_w, double unit_s) {
  const std::vector<FitPoint> list = samples(type, blocked_power_w, unit_s);
  if (list.size() < 3) {
    throw DataError(fmt::format("stage {}, {}: {} times of {} s are left; a fit needs three",
                                type.stage, name_of(type.kind), list.size(), unit_s));
  }
  const double span = list.back().q - list.front().q;
  ExponentialFit fit;
  // Rates on a log scale: from nearly a straight line to a fall that is over after one step.
  const double rate = convex_argmin(std::log(1e-3 / span), std::log(10.0),
                                    [&](double r) { return fit_at(list, -std::exp(r), fit); });
  fit_at(list, -std::exp(rate), fit);
  fit.first_q = static_cast<int>(list.front().q);
  fit.last_q = static_cast<int>(list.back().q);
  return fit;
}

CrashProblem lowtime_problem(const PipelineWork& work, const std::vector<ExponentialFit>& fits,
                             double unit_s) {
  CrashProblem problem;
  for (const ExponentialFit& fit : fits) {
    std::vector<CurvePoint> points;
    for (int q = fit.first_q; q <= fit.last_q; ++q) points.push_back({q * unit_s, fit.cost_j(q)});
    problem.curves.push_back(lower_hull(points));
  }
  for (const PassTypeId id : work.type_of_pass) problem.curve_of_activity.push_back(id.value);
  problem.dependencies = work.schedule.dependencies;
  return problem;
}

double highest_clocks_energy_j(const PipelineWork& work, double time_s) {
  double energy_j = work.blocked_power_w * time_s * work.schedule.shape.stages;
  for (const PassTypeId id : work.type_of_pass) {
    const ClockOption& highest = work.types[index(id)].options.front();
    energy_j += highest.energy_j - work.blocked_power_w * highest.time_s;
  }
  return energy_j;
}

LowtimeResult emulate_lowtime(const PipelineWork& work, double unit_s) {
  std::vector<ExponentialFit> fits;
  for (const PassType& type : work.types) {
    fits.push_back(fit_lowtime(type, work.blocked_power_w, unit_s));
  }
  const CrashProblem problem = lowtime_problem(work, fits, unit_s);
  FrontierOptions options;
  options.times_s = {unit_s};  // below the least time: the fastest plan
  const Frontier frontier = sweep_frontier(problem, options);
  LowtimeResult result;
  result.planned_time_s = frontier.least_time_s;
  result.planned_energy_j = frontier.plans.front().cost_j + work.blocked_power_w *
                                                                work.schedule.shape.stages *
                                                                result.planned_time_s;
  for (std::size_t i = 0; i < work.schedule.passes.size(); ++i) {
    const double q = frontier.plans.front().duration_s[i] / unit_s;
    const PassType& type = work.type_of(id_at<PassId>(i));
    std::size_t chosen = 0;
    for (const std::size_t o : falling_clocks(type)) {
      if (floored(type.options[o].time_s, unit_s) <= std::round(q)) chosen = o;
    }
    result.plan.option_of_pass.push_back(id_at<OptionId>(chosen));
  }
  result.run = simulate(work, result.plan);
  return result;
}

}  // namespace rubato
