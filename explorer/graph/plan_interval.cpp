#include "explorer/graph/plan_interval.hpp"

#include <algorithm>
#include <string>

#include "common/numbers.hpp"
#include "models/gpu/ensemble.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/validation/model_errors.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

// What kernels that err alike have in common.
std::string source_of(const GpuSpec& spec, const Kernel& kernel) {
  if (const CalibratedKernel* known = calibrated_kernel(spec, kernel)) return known->name;
  return function_of(kernel);
}

// Of one launch of each kernel alone, as captured.
std::vector<CapturePoint> captured_points(const GraphModel& model) {
  const double limit_w = model.spec().power_limit.limit_w;
  std::vector<CapturePoint> points;
  for (const KernelCoefficients& kernel : model.coefficients()) {
    const OperatingPoint at =
        operating_point(model.spec(), kernel, model.captured_clock(), limit_w);
    points.push_back({model.captured_clock(), at.time_s, limit_w});
  }
  return points;
}

}  // namespace

std::vector<ActivityId> last_path(const ExecutionGraph& graph, const GraphRun& run) {
  std::vector<ActivityId> path;
  if (run.end_s.empty()) return path;
  const auto last = std::ranges::max_element(run.end_s) - run.end_s.begin();
  path.push_back(id_at<ActivityId>(static_cast<std::size_t>(last)));
  const auto ready_s = [&](const GraphArc& arc) { return run.end_s[index(arc.from)] + arc.lag_s; };
  while (true) {
    const std::span<const GraphArc> arcs = graph.arcs_into(path.back());
    if (arcs.empty()) return path;
    path.push_back(std::ranges::max_element(arcs, {}, ready_s)->from);
  }
}

GraphPlanIntervals::GraphPlanIntervals(const GraphModel& model, const GraphModel& as_captured,
                                       const ClockGrid& grid, const GraphRun& baseline)
    : model_(model),
      grid_(grid),
      scale_(widening_only(model_errors(model.spec()).scales.plans)),
      base_{baseline.span_s, baseline.total_energy_j} {
  const std::vector<Kernel>& kernels = model.graph().kernels();
  // Numbered by name: where a kernel stands in a file moves no draw.
  std::map<std::string, std::size_t> sources;
  for (const Kernel& kernel : kernels) sources.try_emplace(source_of(model.spec(), kernel));
  for (auto& [name, number] : sources) number = sources_++;
  for (const Kernel& kernel : kernels)
    source_of_kernel_.push_back(sources.at(source_of(model.spec(), kernel)));
  errors_ = draw_change_errors(model_errors(model.spec()), drawn_models, sources_);
  kernels_ = draw_captured(model.spec(), kernels, captured_points(as_captured), drawn_models);
  for (std::vector<KernelCoefficients>& drawn : kernels_) {
    for (std::size_t k = 0; k < drawn.size(); ++k)
      drawn[k] = model.on_its_sms(id_at<KernelId>(k), drawn[k]);
  }
  const Parts parts =
      parts_of(as_captured, uniform_plan(model.graph(), grid.default_clock()), baseline);
  const std::vector<Cost> none(sources_);
  for (std::size_t m = 0; m < drawn_models; ++m) {
    specs_.push_back(ensemble_member(model.spec(), m));
    bases_.push_back(total(parts, baseline, m, none));
  }
}

GraphPlanInterval GraphPlanIntervals::of(const GraphPlan& plan, const GraphRun& run) const {
  Parts parts = parts_of(model_, plan, run);
  for (auto& [at, part] : parts) set_errors(part, at.first, at.second);
  SavingDraws draws(drawn_models * draws_per_model);
  for (std::size_t i = 0; i < drawn_models * draws_per_model; ++i) {
    const std::size_t m = i / draws_per_model;
    draws.set(i, total(parts, run, m, std::span(errors_).subspan(i * sources_, sources_)),
              bases_[m]);
  }
  const SavingInterval found = scaled_interval(
      draws.widened_interval(), scale_,
      {change_pct(run.span_s, base_.time_s), change_pct(run.total_energy_j, base_.energy_j)});
  const Interval time = cut_time(found.time, parts, run);
  constexpr double frac = 0.01;  // of %
  return {{frac * time.low_pct, frac * found.energy.low_pct},
          {frac * time.high_pct, frac * found.energy.high_pct}};
}

// What scaling moved beyond the bands comes back: no run is faster or slower than all its launches
// are, and the longest path is as slow as its launches can be.
Interval GraphPlanIntervals::cut_time(const Interval& time, const Parts& parts,
                                      const GraphRun& run) const {
  double fastest = 1.0, slowest = 1.0, most_s = run.span_s;
  for (const auto& [at, part] : parts) {
    const auto& [kernel, clock] = at;
    const double usual = model_.evaluate(kernel, grid_[grid_.default_clock()]).time_s /
                         model_.evaluate(kernel, grid_[clock]).time_s;
    fastest = std::min(fastest, part.band.low);
    slowest = std::max(slowest, part.band.high);
    if (part.path_s > 0.0) most_s += part.path_s * (part.band.high * usual - 1.0);
  }
  return cut(time, {100.0 * (fastest - 1.0), change_pct(run.span_s, base_.time_s),
                    std::min(change_pct(most_s, base_.time_s), 100.0 * (slowest - 1.0))});
}

GraphPlanIntervals::Parts GraphPlanIntervals::parts_of(const GraphModel& model,
                                                       const GraphPlan& plan, const GraphRun& run) {
  const ExecutionGraph& graph = model.graph();
  Parts parts;
  const auto part_of = [&](std::size_t i) -> Part* {
    if (model.work()[i] <= 0.0) return nullptr;
    return &parts[{graph.activities()[i].kernel, plan.clock_of_activity[i]}];
  };
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (Part* part = part_of(i)) part->energy_j += run.energy_j[i];
  }
  for (const ActivityId activity : last_path(graph, run)) {
    const std::size_t i = index(activity);
    if (Part* part = part_of(i)) part->path_s += run.end_s[i] - run.start_s[i];
  }
  return parts;
}

// The errors of a change of clock, of the clocks that a kernel runs at alone, lowered where it
// reaches the power limit.
void GraphPlanIntervals::set_errors(Part& part, KernelId kernel, ClockId clock) const {
  const auto at = [&](ClockId id) {
    return clock_in_effect(model_.spec(), grid_[id], model_.evaluate(kernel, grid_[id]));
  };
  const ClockInEffect usual = at(grid_.default_clock()), chosen = at(clock);
  if (clock != grid_.default_clock()) part.reach = error_reach(model_.spec(), usual, chosen);
  part.band = time_band(model_.spec(), usual, chosen);
}

// Time and energy of a launch in a draw, each over that in the model.
Cost GraphPlanIntervals::drawn(std::size_t model, KernelId kernel, ClockId clock) const {
  const OperatingPoint own = model_.evaluate(kernel, grid_[clock]),
                       other = operating_point(specs_[model], kernels_[model][index(kernel)],
                                               grid_[clock], model_.power_limit_w());
  return {other.time_s / own.time_s, other.energy_j / own.energy_j};
}

// Time of a launch in a draw at the default clocks, over that in the model at a clock.
double GraphPlanIntervals::usual_s(std::size_t model, KernelId kernel, ClockId clock) const {
  const OperatingPoint usual =
      operating_point(specs_[model], kernels_[model][index(kernel)], grid_[grid_.default_clock()],
                      model_.power_limit_w());
  return usual.time_s / model_.evaluate(kernel, grid_[clock]).time_s;
}

Cost GraphPlanIntervals::total(const Parts& parts, const GraphRun& run, std::size_t model,
                               std::span<const Cost> logarithms) const {
  Cost sum{run.span_s, run.total_energy_j};
  for (const auto& [at, part] : parts) {
    const auto& [kernel, clock] = at;
    Cost factor = with_error(drawn(model, kernel, clock), part.reach,
                             logarithms[source_of_kernel_[index(kernel)]]);
    factor.time_s = part.band.cut(factor.time_s, usual_s(model, kernel, clock));
    sum.time_s += part.path_s * (factor.time_s - 1.0);
    sum.energy_j += part.energy_j * (factor.energy_j - 1.0);
  }
  const double host_w = model_.host_power_w() * static_cast<double>(run.gpus.size());
  sum.energy_j += host_w * (sum.time_s - run.span_s);
  return sum;
}

}  // namespace rubato
