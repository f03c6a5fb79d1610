#include "explorer/graph/plan_interval.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "common/numbers.hpp"
#include "explorer/confidence/campaigns.hpp"
#include "explorer/confidence/seen_times.hpp"
#include "models/calibration/capture_fit.hpp"
#include "models/gpu/ensemble.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/validation/measured_shapes.hpp"
#include "models/validation/model_errors.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

constexpr double rounding_of_logs = 1e-6;  // logarithms of clocks that differ by rounding only

// Draws of which measured kernel each function is like.
constexpr std::size_t captured_models = 64;

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

// An interval whose ends scatter independently by so many points.
Interval moved_out(const Interval& of, double scatter_pct) {
  return {of.median_pct - std::hypot(of.median_pct - of.low_pct, scatter_pct), of.median_pct,
          of.median_pct + std::hypot(of.high_pct - of.median_pct, scatter_pct)};
}

double within(const std::pair<double, double>& bounds, double value) {
  return std::clamp(value, bounds.first, bounds.second);
}

// How long each step of a run takes but for the first, s: from the end of the one before to its
// own.
std::vector<double> step_times(const ExecutionGraph& graph, const GraphRun& run) {
  std::map<std::uint32_t, double> ends_s;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (const auto step = graph.activities()[i].step)
      ends_s[*step] = std::max(ends_s[*step], run.end_s[i]);
  }
  std::vector<double> times_s;
  std::optional<double> before_s;
  for (const auto& [step, end_s] : ends_s) {
    if (before_s) times_s.push_back(end_s - *before_s);
    before_s = end_s;
  }
  return times_s;
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
      base_{baseline.span_s, baseline.total_energy_j},
      quantiles_(captured_models) {
  const std::vector<Kernel>& kernels = model.graph().kernels();
  // Numbered by name: where a kernel stands in a file moves no draw.
  std::map<std::string, std::size_t> sources;
  for (const Kernel& kernel : kernels) sources.try_emplace(source_of(model.spec(), kernel));
  for (auto& [name, number] : sources) number = sources_++;
  for (const Kernel& kernel : kernels)
    source_of_kernel_.push_back(sources.at(source_of(model.spec(), kernel)));
  const ModelErrors errors = model_errors(model.spec());
  const RelativeErrors scale = widening_only(errors.scales.plans);
  errors_ = draw_change_errors(errors, captured_models, sources_);
  for (Cost& error : errors_) error = {scale.time * error.time_s, scale.energy * error.energy_j};
  std::mt19937_64 random(20261127);
  std::normal_distribution<double> gaussian;
  for (std::size_t i = 0; i < captured_models * draws_per_model; ++i) {
    const double time = gaussian(random);
    unshaped_.push_back({time, gaussian(random)});
  }
  // What was seen at a second clock and no clock explains (times that fall with it) scatters too.
  constexpr double usual_scatter_pct = 0.4, of_a_mean = 2.0;
  const auto unexplained = model.spec().fit_errors.find("residual_time_mape_pct");
  scatter_pct_ = usual_scatter_pct;
  if (!captured_core_mhz(model.spec()).empty() && unexplained != model.spec().fit_errors.end())
    scatter_pct_ = std::max(usual_scatter_pct, of_a_mean * unexplained->second);
  const auto fell = model.spec().fit_errors.find(time_fall_key);
  fall_pct_ = std::max(scatter_pct_, fell == model.spec().fit_errors.end() ? 0.0 : fell->second);
  swept_ = has_own_shapes(model.spec());
  powers_seen_ = captured_powers(model.spec());
  seen_mhz_ = captured_core_mhz(model.spec());
  std::ranges::sort(seen_mhz_, std::greater());
  seen_mhz_.erase(std::unique(seen_mhz_.begin(), seen_mhz_.end()), seen_mhz_.end());
  if (seen_mhz_.size() < 2) seen_mhz_.clear();
  base_step_s_ = step_times(model.graph(), baseline);
  kernels_ = draw_captured(model.spec(), kernels, captured_points(as_captured), captured_models);
  for (std::vector<KernelCoefficients>& drawn : kernels_) {
    for (std::size_t k = 0; k < drawn.size(); ++k)
      drawn[k] = model.on_its_sms(id_at<KernelId>(k), drawn[k]);
  }
  for (std::size_t m = 0; m < captured_models; ++m)
    specs_.push_back(ensemble_member(model.spec(), m));
  const Parts parts =
      parts_of(as_captured, uniform_plan(model.graph(), grid.default_clock()), baseline);
  for (std::size_t m = 0; m < captured_models; ++m)
    bases_.push_back(total(parts, baseline, m, std::nullopt, false));
}

std::pair<double, double> GraphPlanIntervals::default_energy_j() const {
  // What is left out lies below: the power limit bounds energies from above, and passes of large
  // models run at it.
  constexpr double outside = 0.1;
  std::vector<double> energies_j;
  for (const Cost& base : bases_) energies_j.push_back(base.energy_j);
  std::ranges::sort(energies_j);
  const auto left_out = static_cast<std::size_t>(outside * static_cast<double>(energies_j.size()));
  return {std::min(energies_j[left_out], base_.energy_j),
          std::max(energies_j.back(), base_.energy_j)};
}

SavingDraws GraphPlanIntervals::draws(const Parts& parts, const GraphRun& run, bool early) const {
  SavingDraws draws(captured_models * draws_per_model);
  for (std::size_t i = 0; i < captured_models * draws_per_model; ++i) {
    const std::size_t m = i / draws_per_model;
    draws.set(i, total(parts, run, m, i, early), bases_[m]);
  }
  return draws;
}

std::vector<Cost> GraphPlanIntervals::changes_pct(const GraphPlan& plan,
                                                  const GraphRun& run) const {
  return draws(parts_of(model_, plan, run), run, false).widened_changes();
}

GraphPlanInterval GraphPlanIntervals::of(const GraphPlan& plan, const GraphRun& run) const {
  const Parts parts = parts_of(model_, plan, run);
  const bool is_captured = std::ranges::any_of(parts, [&](const auto& part) {
    return part.second.log_ratio > rounding_of_logs && is_like_another(part.first.first);
  });
  const auto outlook = [&](bool early) {
    return draws(parts, run, early)
        .outlook(
            {1.0, 1.0},
            {change_pct(run.span_s, base_.time_s), change_pct(run.total_energy_j, base_.energy_j)},
            possible_time(parts, run));
  };
  PlanOutlook found = outlook(false);
  auto& [time, energy] = found.interval;
  // No deadline leans on a power limit that nobody saw, nor on what other kernels do below the
  // clocks that were seen; a run may be in time sooner for these.
  if (is_captured) time.low_pct = std::min(time.low_pct, outlook(true).interval.time.low_pct);
  if (is_captured) time = {time.low_pct - fall_pct_, time.median_pct, time.high_pct + scatter_pct_};
  time = moved_out(time, scatter_of_steps(run));
  // Where energies were read at both clocks, readings scatter as times do.
  if (is_captured && powers_seen_ > 1) energy = moved_out(energy, fall_pct_);
  constexpr double frac = 0.01;  // of %
  return {{frac * time.low_pct, frac * energy.low_pct},
          {frac * time.high_pct, frac * energy.high_pct},
          std::move(found.times)};
}

// Half of the 90 % interval, in points, in which the mean change of time over many steps lies, as
// far as it follows from those that were captured.
double GraphPlanIntervals::scatter_of_steps(const GraphRun& run) const {
  constexpr double of_90_pct = 1.645;
  constexpr std::size_t enough = 3;
  const std::vector<double> step_s = step_times(model_.graph(), run);
  const auto count = static_cast<double>(step_s.size());
  if (step_s.size() < enough || step_s.size() != base_step_s_.size()) return 0.0;
  std::vector<double> changes_pct;
  for (std::size_t s = 0; s < step_s.size(); ++s)
    changes_pct.push_back(change_pct(step_s[s], base_step_s_[s]));
  const double mean_pct = sum(changes_pct) / count;
  double squares = 0.0;
  for (const double change : changes_pct) squares += (change - mean_pct) * (change - mean_pct);
  return of_90_pct * few_draws_factor(step_s.size()) / std::sqrt(1.0 + 1.0 / count) *
         std::sqrt(squares / (count - 1.0) / count);
}

// No run is faster or slower than all its launches are, and the longest path is as slow as its
// launches can be: what runs at once moves first-order sums beyond that.
Interval GraphPlanIntervals::possible_time(const Parts& parts, const GraphRun& run) const {
  double fastest = 1.0, slowest = 1.0, most_s = run.span_s;
  for (const auto& [at, part] : parts) {
    const double usual =
        model_.evaluate(at.first, grid_[grid_.default_clock()]).time_s / part.own.time_s;
    fastest = std::min(fastest, part.band.low);
    slowest = std::max(slowest, part.band.high);
    if (part.path_s > 0.0) most_s += part.path_s * (part.band.high * usual - 1.0);
  }
  return {100.0 * (fastest - 1.0), change_pct(run.span_s, base_.time_s),
          std::min(change_pct(most_s, base_.time_s), 100.0 * (slowest - 1.0))};
}

GraphPlanIntervals::Parts GraphPlanIntervals::parts_of(const GraphModel& model,
                                                       const GraphPlan& plan,
                                                       const GraphRun& run) const {
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
  for (auto& [at, part] : parts) {
    const auto& [kernel, clock] = at;
    const OperatingPoint own = model_.evaluate(kernel, grid_[clock]);
    part.own = {own.time_s, own.energy_j};
    part.drawn = &drawn(kernel, clock);
    part.usual = &drawn(kernel, grid_.default_clock());
    set_errors(part, kernel, clock);
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
  const auto limit_w = [&](ClockId id) {
    return grid_[id].power_limit_w.value_or(model_.power_limit_w());
  };
  part.band =
      time_band(model_.spec(), usual, limit_w(grid_.default_clock()), chosen, limit_w(clock));
  if (const std::vector<SeenTime> times = seen(kernel, clock); !times.empty())
    part.unseen = distance_to(times, chosen.asked_mhz);
  const OperatingPoint captured = model_.evaluate(kernel, model_.captured_clock());
  part.of_limit = captured.energy_j / captured.time_s / model_.spec().power_limit.limit_w;
  part.log_ratio = std::abs(std::log(usual.asked_mhz / chosen.asked_mhz));
}

bool GraphPlanIntervals::is_like_another(KernelId kernel) const {
  const SplitSource split = model_.split(kernel);
  return split == SplitSource::work || split == SplitSource::class_prior ||
         (split == SplitSource::fit && !seen_mhz_.empty());
}

const std::vector<GraphPlanIntervals::DrawnLaunch>& GraphPlanIntervals::drawn(KernelId kernel,
                                                                              ClockId clock) const {
  const auto [at, is_new] = drawn_.try_emplace({kernel, clock});
  if (!is_new) return at->second;
  const ClockPair &asked = grid_[clock], &captured = model_.captured_clock();
  const bool free =
      is_like_another(kernel) &&
      asked.power_limit_w.value_or(model_.power_limit_w()) >= model_.spec().power_limit.limit_w;
  const std::vector<SeenTime> times = seen(kernel, clock);
  const double core_mhz = effective_core_mhz(model_.spec(), asked);
  const std::vector<double>& quantiles =
      quantiles_.of(function_of(model_.graph().kernels()[index(kernel)]));
  for (std::size_t m = 0; m < captured_models; ++m) {
    const GpuSpec& spec = specs_[m];
    const KernelCoefficients& launch = kernels_[m][index(kernel)];
    const OperatingPoint point = operating_point(spec, launch, asked, model_.power_limit_w());
    DrawnLaunch& one = at->second.emplace_back();
    one = {{point.time_s, point.energy_j}, point.time_s};
    if (!free) continue;
    const auto unlimited_s = [&](const ClockPair& at_clock) {
      return unlimited_point(clock_state(spec, at_clock, false), launch).time_s;
    };
    double& time_s = one.cost.time_s;
    if (times.empty()) {
      time_s =
          model_.evaluate(kernel, captured).time_s * unlimited_s(asked) / unlimited_s(captured);
      continue;
    }
    time_s = drawn_time(times, core_mhz, quantiles[m]);
    one.cost.energy_j +=
        clock_state(spec, asked, false).idle_w * launch.idle_scale * (time_s - point.time_s);
    const SeenTime& lowest = times.back();
    one.early_s =
        core_mhz < lowest.core_mhz
            ? within(possible_times(times, core_mhz),
                     lowest.time_s * unlimited_s(asked) / unlimited_s({asked.mem, lowest.core_mhz}))
            : time_s;
  }
  return at->second;
}

// Times of a kernel at the clocks that it was captured at. Empty: at one clock only, or in another
// memory state.
std::vector<SeenTime> GraphPlanIntervals::seen(KernelId kernel, ClockId clock) const {
  const MemStateId memory = model_.captured_clock().mem;
  std::vector<SeenTime> times;
  if (model_.split(kernel) != SplitSource::fit || grid_[clock].mem != memory) return times;
  for (const double mhz : seen_mhz_)
    times.push_back({mhz, model_.evaluate(kernel, {memory, mhz}).time_s});
  return times;
}

// Logarithms of the errors of a change of clock. What measured kernels of another name leave out is
// common to all: with the own sweeps of 14 GPUs left out it scatters like this.
Cost GraphPlanIntervals::error_of(std::size_t draw, KernelId kernel, const Part& part) const {
  constexpr double least_time = 0.003, time = 0.009, energy = 0.07, never_swept = 2.0;
  constexpr double seen_time = 0.03;
  if (!is_like_another(kernel)) {
    const Cost& of = errors_[draw * sources_ + source_of_kernel_[index(kernel)]];
    return {part.reach.time * of.time_s, part.reach.energy * of.energy_j};
  }
  if (part.log_ratio <= rounding_of_logs) return {};
  const Cost& gaussian = unshaped_[draw];
  if (part.unseen && powers_seen_ > 1) {
    // Energies were seen too. Near the power limit clocks that were set may not have been held.
    constexpr double least_energy = 0.003, seen_energy = 0.25, near_limit = 0.9, unheld = 2.5;
    const double sigma = least_energy + seen_energy * *part.unseen;
    return {(least_time + seen_time * *part.unseen) * gaussian.time_s,
            (part.of_limit > near_limit ? unheld : 1.0) * sigma * gaussian.energy_j};
  }
  return {(least_time + (part.unseen ? seen_time * *part.unseen : time * part.log_ratio)) *
              gaussian.time_s,
          (swept_ ? 1.0 : never_swept) * energy * std::sqrt(part.log_ratio) * gaussian.energy_j};
}

// @param draw  nothing: without errors
Cost GraphPlanIntervals::total(const Parts& parts, const GraphRun& run, std::size_t model,
                               std::optional<std::size_t> draw, bool early) const {
  Cost sum{run.span_s, run.total_energy_j};
  for (const auto& [at, part] : parts) {
    const DrawnLaunch &launch = (*part.drawn)[model], &usual = (*part.usual)[model];
    Cost one = launch.cost;
    if (early) one.time_s = launch.early_s;
    if (draw) one = with_error(one, {1.0, 1.0}, error_of(*draw, at.first, part));
    one.time_s = part.band.cut(one.time_s, usual.cost.time_s);
    sum.time_s += part.path_s * (one.time_s / part.own.time_s - 1.0);
    sum.energy_j += part.energy_j * (one.energy_j / part.own.energy_j - 1.0);
  }
  const double host_w = model_.host_power_w() * static_cast<double>(run.gpus.size());
  sum.energy_j += host_w * (sum.time_s - run.span_s);
  return sum;
}

}  // namespace rubato
