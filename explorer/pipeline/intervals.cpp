#include "explorer/pipeline/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "common/algorithms/parallel.hpp"
#include "common/numbers.hpp"
#include "explorer/plan/margin.hpp"
#include "models/kernel/model.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

OperatingPoint point_at(const GpuModel& model, KernelId kernel, const ClockPair& clock,
                        double limit_w) {
  return operating_point(model.spec(), model.coefficients(kernel), clock, limit_w);
}

}  // namespace

PipelineIntervals::PipelineIntervals(const StageModelInput& input,
                                     const std::vector<KernelClocks>& clocks,
                                     const PipelineWork& work, const SwitchModel& switching)
    : clocks_(clocks),
      work_(work),
      switching_(switching),
      step_(generate_training_step(input.shape).trace),
      model_(input.spec, step_),
      grid_(make_clock_grid(input.spec, input.grid)),
      models_(draw_models(model_, step_, drawn_models)),
      entry_of_type_(work.types.size()),
      scale_(widening_only(model_errors(input.spec).scales.plans)),
      draws_(draw_change_errors(model_errors(input.spec), models_.size(), step_.kernels.size())) {
  for (std::uint32_t stage = 0; stage < input.stages; ++stage) {
    for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
      std::vector<PassKernel>& kernels = kernels_of_.emplace_back();
      for (const Segment& part : stage_trace(input.shape, input.stages, stage, kind).segments) {
        const auto whole = std::ranges::find(step_.segments, part.name, &Segment::name);
        for (const KernelId kernel : whole->launches)
          kernels.push_back({kernel, static_cast<double>(part.repeat)});
      }
    }
  }
  for (std::size_t i = 0; i < work.type_of_pass.size(); ++i) {
    const PipelinePass& pass = work.schedule.passes[i];
    if (ends_step(pass.kind)) continue;  // taken as known
    entry_of_type_[index(work.type_of_pass[i])] =
        clocks_entry(pass, work.schedule.shape, clocks.size());
  }
}

PipelineIntervals::UsedOption PipelineIntervals::used_option(std::size_t type,
                                                             std::size_t option) const {
  const std::size_t entry = entry_of_type_[type];
  const double limit_w = work_.types[type].options[option].power_limit_w;
  UsedOption used{.type = type,
                  .option = option,
                  .kernels = kernels_of_[entry],
                  .clocks = {},
                  .limit_w = limit_w > 0.0 ? limit_w : model_.power_limit_w(),
                  .reach = {},
                  .bands = {}};
  const std::vector<std::string>& labels = clocks_[entry].clock_of_kernel[option];
  for (std::size_t k = 0; k < labels.size(); ++k) {
    used.clocks.push_back(*grid_.find(labels[k]));
    const KernelId kernel = used.kernels[k].kernel;
    const ClockPair &usual = grid_[grid_.default_clock()], &asked = grid_[used.clocks[k]];
    const ClockInEffect before =
                            clock_in_effect(model_.spec(), usual, model_.evaluate(kernel, usual)),
                        now = clock_in_effect(model_.spec(), asked,
                                              point_at(model_, kernel, asked, used.limit_w));
    used.reach.push_back(error_reach(model_.spec(), before, now));
    used.bands.push_back(
        time_band(model_.spec(), before, model_.power_limit_w(), now, used.limit_w));
  }
  return used;
}

// The options that either plan uses, each once, and those of the default clocks.
std::vector<PipelineIntervals::UsedOption> PipelineIntervals::used_options(
    const PipelinePlan& plan, const PipelinePlan& against) const {
  std::set<std::pair<std::size_t, std::size_t>> used;
  for (std::size_t i = 0; i < plan.option_of_pass.size(); ++i) {
    const std::size_t type = index(work_.type_of_pass[i]);
    if (ends_step(work_.types[type].kind)) continue;  // taken as known
    used.emplace(type, 0);
    used.emplace(type, index(plan.option_of_pass[i]));
    used.emplace(type, index(against.option_of_pass[i]));
  }
  std::vector<UsedOption> options;
  for (const auto& [type, option] : used) options.push_back(used_option(type, option));
  return options;
}

// Cost of all launches of each kernel in a pass at an option.
std::vector<PipelineIntervals::PassCost> PipelineIntervals::kernel_costs(
    const GpuModel& model, const UsedOption& used) const {
  std::vector<PassCost> costs;
  for (std::size_t k = 0; k < used.kernels.size(); ++k) {
    const PassKernel& of = used.kernels[k];
    const OperatingPoint point = point_at(model, of.kernel, grid_[used.clocks[k]], used.limit_w),
                         usual = model.evaluate(of.kernel, grid_[grid_.default_clock()]);
    costs.push_back(
        {{of.launches * point.time_s, of.launches * point.energy_j}, of.launches * usual.time_s});
  }
  return costs;
}

Cost PipelineIntervals::with_errors(const std::vector<PassCost>& costs, const UsedOption& used,
                                    std::span<const Cost> logarithms) {
  Cost sum;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const Cost cost =
        with_error(costs[k].cost, used.reach[k], logarithms[index(used.kernels[k].kernel)]);
    sum.time_s += used.bands[k].cut(cost.time_s, costs[k].usual_s);
    sum.energy_j += cost.energy_j;
  }
  return sum;
}

PipelineRun PipelineIntervals::run(PipelineSimulator& simulator, const PipelinePlan& plan,
                                   const PipelineIntervalQuestion& question) const {
  return simulator.run(
      plan, {.switching = question.switching != nullptr ? *question.switching : switching_,
             .disturbance = {}});
}

PipelineIntervals::Compared PipelineIntervals::compared(
    PipelineSimulator& simulator, const PipelineRun& defaults, const PipelinePlan& plan,
    const PipelineIntervalQuestion& question) const {
  const double waiting_w = work_.blocked_power_w * work_.schedule.shape.stages;
  const auto until_done = [&](const PipelineRun& of) {
    const double end_s =
        std::max(of.time_s, question.until_vs_default.value_or(0.0) * defaults.time_s);
    return Cost{end_s, of.energy_j + waiting_w * (end_s - of.time_s)};
  };
  const Cost cost = until_done(run(simulator, plan, question));
  if (question.against == nullptr) return {cost, until_done(defaults)};
  return {cost, until_done(run(simulator, *question.against, question))};
}

PlanOutlook PipelineIntervals::outlook(const PipelinePlan& plan,
                                       const PipelineIntervalQuestion& question) const {
  const std::vector<UsedOption> used =
      used_options(plan, question.against != nullptr ? *question.against : plan);
  const std::size_t kernels = step_.kernels.size();
  const std::vector<Cost> no_errors(kernels);
  const PipelinePlan defaults = highest_clocks(work_);
  std::vector<Cost> nominal;
  for (const UsedOption& option : used)
    nominal.push_back(with_errors(kernel_costs(model_, option), option, no_errors));
  SavingDraws changes(models_.size() * draws_per_model);
  parallel_for(models_.size(), [&](std::size_t m) {
    PipelineWork drawn = work_;
    PipelineSimulator simulator(drawn);  // refers to drawn: sees each change of it
    std::vector<std::vector<PassCost>> costs;
    for (const UsedOption& option : used) costs.push_back(kernel_costs(models_[m], option));
    const auto redraw = [&](std::span<const Cost> logarithms) {
      for (std::size_t i = 0; i < used.size(); ++i) {
        const Cost now = with_errors(costs[i], used[i], logarithms);
        const ClockOption& was = work_.types[used[i].type].options[used[i].option];
        ClockOption& option = drawn.types[used[i].type].options[used[i].option];
        option.time_s = was.time_s * now.time_s / nominal[i].time_s;
        option.energy_j =
            (was.energy_j - work_.host_power_w * was.time_s) * now.energy_j / nominal[i].energy_j +
            work_.host_power_w * option.time_s;
      }
    };
    redraw(no_errors);
    const PipelineRun base = run(simulator, defaults, question);
    for (std::size_t d = 0; d < draws_per_model; ++d) {
      const std::size_t i = m * draws_per_model + d;
      redraw({draws_.data() + i * kernels, kernels});
      const Compared one = compared(simulator, base, plan, question);
      changes.set(i, one.cost, one.base);
    }
  });
  PipelineSimulator simulator(work_);
  const PipelineRun usual = run(simulator, defaults, question);
  const Compared estimate = compared(simulator, usual, plan, question);
  const double time_pct = change_pct(estimate.cost.time_s, estimate.base.time_s);
  Interval possible{-std::numeric_limits<double>::infinity(), time_pct,
                    std::numeric_limits<double>::infinity()};
  if (question.against == nullptr) {  // bands are against the default clocks
    const auto with_all_at = [&](double TimeBand::*end) {
      return change_pct(time_at(end, used, nominal, usual, plan, question), estimate.base.time_s);
    };
    possible.low_pct = with_all_at(&TimeBand::low);
    possible.high_pct = with_all_at(&TimeBand::high);
  }
  return changes.outlook(
      scale_, {time_pct, change_pct(estimate.cost.energy_j, estimate.base.energy_j)}, possible);
}

// Time of a plan whose kernels are all at one end of their bands.
double PipelineIntervals::time_at(double TimeBand::*end, std::span<const UsedOption> used,
                                  std::span<const Cost> nominal, const PipelineRun& defaults,
                                  const PipelinePlan& plan,
                                  const PipelineIntervalQuestion& question) const {
  PipelineWork bound = work_;
  for (std::size_t i = 0; i < used.size(); ++i) {
    double time_s = 0.0;
    const std::vector<PassCost> costs = kernel_costs(model_, used[i]);
    for (std::size_t k = 0; k < costs.size(); ++k)
      time_s += used[i].bands[k].*end * costs[k].usual_s;
    if (!std::isfinite(time_s)) return time_s;
    bound.types[used[i].type].options[used[i].option].time_s *= time_s / nominal[i].time_s;
  }
  PipelineSimulator simulator(bound);
  return compared(simulator, defaults, plan, question).cost.time_s;
}

namespace {

// Deadlines as plans_with_odds() asks for them.
class AskedPipeline {
 public:
  AskedPipeline(const PipelinePlanner& planner, const PipelineIntervals& intervals,
                std::span<const double> deadlines_s, double odds_frac, const PlansFor& plans)
      : planner_(planner),
        intervals_(intervals),
        deadlines_s_(deadlines_s),
        odds_frac_(odds_frac),
        plans_(plans),
        base_s_(planner.baseline().time_s),
        defaults_(highest_clocks(planner.work())) {}

  std::vector<PipelineResult> planned(std::span<MarginTarget> targets) const {
    std::vector<double> deadlines_s;
    for (MarginTarget& target : targets) {
      deadlines_s.push_back(std::max(planner_.least_time_s(), base_s_ * (1.0 + target.slack_frac)));
      target.slack_frac = deadlines_s.back() / base_s_ - 1.0;
    }
    return plans_(deadlines_s);
  }

  std::optional<double> appraise(std::size_t question, PipelineResult& result) const {
    const double deadline_s = deadlines_s_[question];
    result.deadline_s = deadline_s;
    result.odds_frac = odds_frac_;
    if (!result.found()) return std::nullopt;
    const PlanOutlook outlook = intervals_.outlook(result.plan);
    result.interval = outlook.interval;
    if (result.run.time_s > deadline_s * (1.0 + 1e-9))
      result.odds_in_time = 0.0;
    else if (result.plan.option_of_pass == defaults_.option_of_pass)
      result.odds_in_time = 1.0;
    else
      result.odds_in_time = outlook.times.odds_within(change_pct(deadline_s, base_s_));
    return outlook.times.kept_with(odds_frac_) / percent;
  }

  [[nodiscard]] double energy_frac(const PipelineResult& result) const {
    return result.energy_j / planner_.baseline().energy_j - 1.0;
  }

  [[nodiscard]] PipelineResult kept_defaults(std::size_t question,
                                             const PipelineResult& asked) const {
    PipelineResult kept = asked;
    kept.plan = defaults_;
    kept.run = planner_.baseline();
    kept.energy_j = kept.run.energy_j;
    (void)appraise(question, kept);
    return kept;
  }
  static void take_bound(const PipelineResult& asked, PipelineResult& other) {
    other.lower_bound_j = std::min(asked.lower_bound_j, other.energy_j);
    other.gap_frac = std::max(0.0, 1.0 - other.lower_bound_j / other.energy_j);
    if (other.gap_frac > asked.gap_frac) other.status = SolveStatus::feasible;
  }

 private:
  const PipelinePlanner& planner_;
  const PipelineIntervals& intervals_;
  std::span<const double> deadlines_s_;
  double odds_frac_;
  const PlansFor& plans_;
  double base_s_;
  PipelinePlan defaults_;
};

}  // namespace

std::vector<PipelineResult> plan_with_odds(const PipelinePlanner& planner, const PlansFor& plans,
                                           const PipelineIntervals* intervals,
                                           std::span<const double> deadlines_s, double odds_frac,
                                           const RunContext& context) {
  std::vector<PipelineResult> results = plans(deadlines_s);
  if (intervals == nullptr) return results;
  AskedPipeline asked(planner, *intervals, deadlines_s, odds_frac, plans);
  std::vector<double> slacks_frac;
  for (const double deadline_s : deadlines_s)
    slacks_frac.push_back(deadline_s / planner.baseline().time_s - 1.0);
  return plans_with_odds(asked, std::move(results), slacks_frac, slacks_frac, odds_frac,
                         MarginSearch::tries, context);
}

}  // namespace rubato
