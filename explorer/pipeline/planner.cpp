#include "explorer/pipeline/planner.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/algorithms/convex_argmin.hpp"
#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"

namespace rubato {

namespace {

// What is rounded for a deadline, as shares of it. Free durations for a slightly shorter time often
// round better: they fall on other clocks. Plans are spliced from two times that differ from the
// deadline by the same share to either side.
struct Candidates {
  std::vector<double> shorter_by, splice_by;

  [[nodiscard]] std::size_t size() const { return shorter_by.size() + 2 * splice_by.size(); }
};

Candidates candidates_for(std::size_t passes) {
  constexpr std::size_t many = 8192;
  if (passes > many) return {{0.0, 1e-3}, {4e-3}};
  return {{0.0, 3e-4, 6e-4, 1e-3, 1.5e-3, 2e-3}, {2e-3, 4e-3, 8e-3, 1.6e-2}};
}

// The times whose durations are rounded for each target, shape [targets x Candidates::size()]:
// first the shorter ones, then for each splice the slower and the faster one.
std::vector<double> times_around(std::span<const double> targets_s, const Candidates& candidates) {
  std::vector<double> times_s;
  for (const double target_s : targets_s) {
    for (const double share : candidates.shorter_by) times_s.push_back(target_s * (1 - share));
    for (const double share : candidates.splice_by) {
      times_s.push_back(target_s * (1 + share));
      times_s.push_back(target_s * (1 - share));
    }
  }
  return times_s;
}

FrontierOptions sweep_options(const PlannerOptions& options, const PipelineWork& work,
                              std::vector<double> times_s) {
  FrontierOptions sweep =
      options.exact_sweep ? FrontierOptions{} : automatic_sweep(work.schedule.passes.size());
  sweep.times_s = std::move(times_s);
  return sweep;
}

}  // namespace

double saving_pct(double value, double reference) { return 100.0 * (1.0 - value / reference); }

PipelinePlanner::PipelinePlanner(const PipelineWork& work, const PlannerOptions& options,
                                 const RunContext& context)
    : work_(work),
      options_(options),
      problem_(crash_problem(work)),
      rounder_(work),
      baseline_(simulate(work, highest_clocks(work))),
      swept_times_s_(
          times_around(options.deadlines_s, candidates_for(work.schedule.passes.size()))),
      frontier_(sweep_frontier(problem_, sweep_options(options, work, swept_times_s_), context)),
      least_time_s_(rounder_.least_time_s()) {
  for (const PassType& type : work.types) {
    if (std::ranges::any_of(type.options, &ClockOption::mixed)) granularity_ = Granularity::kernel;
  }
  double least_j = std::numeric_limits<double>::infinity();
  for (const FrontierVertex& vertex : frontier_.vertices) {
    const double total_j = vertex.cost_j + waiting_power_w() * vertex.time_s;
    if (total_j < least_j) {
      least_j = total_j;
      cheapest_time_s_ = vertex.time_s;
    }
  }
}

// The least energy that the frontier's bound and the lines allow at any time until the deadline, or
// until `reach` times the slowest useful time: beyond that only waiting grows.
double PipelinePlanner::bound_j(double deadline_s, AfterEnd after_end,
                                std::span<const PriceLine> lines, double reach) const {
  const auto total_j = [&](double time_s) {
    double cost_j = frontier_.lower_bound_j(time_s);
    for (const PriceLine& l : lines) cost_j = std::max(cost_j, l.least_j - l.price_w * time_s);
    return cost_j + waiting_power_w() * time_s;
  };
  if (after_end == AfterEnd::wait) return total_j(deadline_s);
  const double least_s = std::min(least_time_s_, deadline_s);
  const double most_s = std::min(deadline_s, std::max(least_s, reach * frontier_.slowest_time_s));
  const double at_s = convex_argmin(least_s, most_s, total_j);
  return std::min({total_j(at_s), total_j(most_s), total_j(least_s)});
}

double PipelinePlanner::total_j(const Question& question, const PipelinePlan& plan) const {
  const bool waits = question.after_end == AfterEnd::wait;
  return rounder_.cost_j(plan) +
         waiting_power_w() * (waits ? question.limit_s : rounder_.time_s(plan));
}

// Rounds and splices every candidate, keeps the cheapest.
std::optional<PipelinePlan> PipelinePlanner::pick_best(const Question& question,
                                                       std::span<const FrontierPlan> candidates,
                                                       const RunContext& context) const {
  const bool waits = question.after_end == AfterEnd::wait;
  std::vector<double> fastest_s;
  for (const std::uint32_t curve : problem_.curve_of_activity)
    fastest_s.push_back(problem_.curves[curve].front().time_s);
  std::optional<PipelinePlan> best = rounder_.round(fastest_s, question.limit_s);
  if (!best) return best;
  double best_j = total_j(question, *best);
  // A target below the deadline (the cheapest time) is kept as a limit, so that spending slack
  // does not lengthen the iteration beyond what pays.
  const double useful_s = waits ? question.limit_s : std::max(question.target_s, least_time_s_);
  const auto consider = [&](std::optional<PipelinePlan> plan) {
    if (!plan || total_j(question, *plan) >= best_j) return;
    best_j = total_j(question, *plan);
    best = std::move(plan);
  };
  consider(rounder_.in_a_row(useful_s, waits ? 0.0 : waiting_power_w(), context));
  const std::size_t rounded = candidates_for(work_.schedule.passes.size()).shorter_by.size();
  for (const FrontierPlan& candidate : candidates.first(rounded))
    consider(rounder_.round(candidate.duration_s, useful_s));
  for (std::size_t k = rounded; k < candidates.size(); k += 2) {
    for (const SlowPart part :
         {SlowPart::begin, SlowPart::end, SlowPart::both_ends, SlowPart::middle}) {
      consider(
          rounder_.splice(candidates[k].duration_s, candidates[k + 1].duration_s, useful_s, part));
    }
  }
  return best;
}

std::optional<std::vector<FrontierPlan>> PipelinePlanner::durations(
    std::vector<double> times_s, const RunContext& context) const {
  if (times_s == swept_times_s_ && !frontier_.interrupted) return frontier_.plans;
  FrontierOptions sweep = sweep_options(options_, work_, std::move(times_s));
  sweep.only_times = true;
  Frontier swept = sweep_frontier(problem_, sweep, context);
  if (swept.interrupted) return std::nullopt;
  return std::move(swept.plans);
}

// One sweep for all questions; a plan is missing where no plan ends in time.
std::vector<std::optional<PipelinePlan>> PipelinePlanner::answer(
    std::span<const Question> questions, const RunContext& context) const {
  std::vector<double> targets_s;
  for (const Question& question : questions) targets_s.push_back(question.target_s);
  const Candidates candidates = candidates_for(work_.schedule.passes.size());
  auto swept = durations(times_around(targets_s, candidates), context);
  std::vector<std::optional<PipelinePlan>> plans(questions.size());
  if (!swept) return plans;
  for (std::size_t i = 0; i < questions.size(); ++i)
    plans[i] = pick_best(
        questions[i], std::span(*swept).subspan(i * candidates.size(), candidates.size()), context);
  return plans;
}

PipelinePlanner::Question PipelinePlanner::question(double limit_s, AfterEnd after_end) const {
  const double useful_s = after_end == AfterEnd::wait ? frontier_.slowest_time_s : cheapest_time_s_;
  return {limit_s, std::min(limit_s, useful_s), after_end};
}

void PipelinePlanner::replay(PipelineResult& result, PipelinePlan plan) const {
  result.status = SolveStatus::feasible;
  result.plan = std::move(plan);
  result.run = simulate(work_, result.plan, {.switching = options_.switching});
  const double wait_s = result.after_end == AfterEnd::wait
                            ? std::max(0.0, result.deadline_s - result.run.time_s)
                            : 0.0;
  result.energy_j = result.run.energy_j + waiting_power_w() * wait_s;
  // The bound may exceed the energy in the last digits: with a long wait these are joules.
  result.lower_bound_j = std::min(result.lower_bound_j, result.energy_j);
  const bool costs = result.energy_j > 0.0;  // unless neither passes nor waiting draw anything
  result.gap_frac = costs ? std::max(0.0, 1.0 - result.lower_bound_j / result.energy_j) : 0.0;
}

PipelineResult PipelinePlanner::result_of(double deadline_s, std::optional<PipelinePlan> plan,
                                          double lower_bound_j) const {
  PipelineResult result;
  result.deadline_s = deadline_s;
  result.least_time_s = least_time_s_;
  result.lower_bound_j = lower_bound_j;
  if (plan) replay(result, *std::move(plan));
  return result;
}

std::vector<PipelineResult> PipelinePlanner::plan(std::span<const double> deadlines_s,
                                                  AfterEnd after_end,
                                                  const RunContext& context) const {
  std::vector<PipelineResult> results;
  std::vector<std::size_t> open;
  std::vector<Question> questions;
  for (const double deadline_s : deadlines_s) {
    if (!(deadline_s > 0.0) || !std::isfinite(deadline_s)) {
      throw UsageError(fmt::format("deadline is {} s; expected a number > 0", deadline_s));
    }
    if (deadline_s >= least_time_s_) {
      open.push_back(results.size());
      questions.push_back(question(deadline_s, after_end));
    }
    PipelineResult& result = results.emplace_back();
    result.granularity = granularity_;
    result.after_end = after_end;
    result.deadline_s = deadline_s;
    result.least_time_s = least_time_s_;
  }
  std::vector<PipelineResult> found(open.size());
  for (std::size_t i = 0; i < open.size(); ++i) {
    found[i] = results[open[i]];
    found[i].lower_bound_j = bound_j(found[i].deadline_s, after_end);
  }
  if (options_.switching.is_free()) {
    const auto plans = answer(questions, context);
    for (std::size_t i = 0; i < open.size(); ++i)
      if (plans[i]) replay(found[i], *plans[i]);
  } else {
    auto answers = answer_switching(questions, found, options_.switching, context);
    hold_longer(questions, std::move(answers), found, context);
  }
  for (std::size_t i = 0; i < open.size(); ++i) results[open[i]] = std::move(found[i]);
  keep_one_limit(results, context);
  make_monotone(results);
  return results;
}

// Nobody measured how long a power limit takes to act, so a stage keeps one. Tried are each limit
// for all stages, and for each stage the one under which its passes spend most of their time in the
// plan that may change limits; that one too, where it keeps one by itself. Bounds are of all plans.
void PipelinePlanner::keep_one_limit(std::vector<PipelineResult>& results,
                                     const RunContext& context) const {
  const std::vector<std::set<double>> limits = limits_of(work_);
  if (std::ranges::all_of(limits, [](const auto& of) { return of.size() <= 1; })) return;
  std::set<double> all;
  for (const auto& of : limits) all.insert(of.begin(), of.end());
  for (PipelineResult& result : results) {
    if (!result.found()) continue;
    std::vector<std::map<double, double>> time_s(limits.size());  // by limit
    for (std::size_t p = 0; p < result.run.passes.size(); ++p) {
      const ClockOption& option =
          work_.type_of(id_at<PassId>(p)).options[index(result.plan.option_of_pass[p])];
      const TimedPass& pass = result.run.passes[p];
      time_s[work_.schedule.passes[p].stage][option.power_limit_w] += pass.end_s - pass.start_s;
    }
    const bool keeps_one =
        std::ranges::all_of(time_s, [](const auto& of) { return of.size() <= 1; });
    std::vector<std::vector<double>> tried;
    for (const double limit_w : all) tried.emplace_back(limits.size(), limit_w);
    std::vector<double>& usual = tried.emplace_back();
    for (const auto& of : time_s) {
      usual.push_back(of.empty() ? *all.begin()
                                 : std::ranges::max_element(of, {}, [](const auto& entry) {
                                     return entry.second;
                                   })->first);
    }
    PipelineResult best = result;
    if (!keeps_one) {
      best.status = SolveStatus::infeasible;
      best.plan = {};
      best.run = {};
    }
    for (const std::vector<double>& limit_w : tried) {
      const std::optional<LimitedWork> limited = with_limits(work_, limit_w);
      if (!limited) continue;
      PlannerOptions options = options_;
      options.deadlines_s = {result.deadline_s};
      const PipelinePlanner planner(limited->work, options, context);
      PipelinePlan plan = planner.plan(options.deadlines_s, result.after_end, context).front().plan;
      if (plan.option_of_pass.empty()) continue;
      for (std::size_t p = 0; p < plan.option_of_pass.size(); ++p)
        plan.option_of_pass[p] =
            limited->options[index(work_.type_of_pass[p])][index(plan.option_of_pass[p])];
      best = cheaper_of(std::move(best), plan);
    }
    result = std::move(best);
  }
}

PipelineResult PipelinePlanner::cheaper_of(PipelineResult result, const PipelinePlan& plan) const {
  PipelineResult other = result;
  replay(other, plan);
  if (other.run.time_s > other.deadline_s) return result;
  if (!result.found()) return other;
  const bool fits = other.energy_j < result.energy_j &&
                    (can_be_set(other.plan, other.run) || !can_be_set(result.plan, result.run));
  return fits ? other : result;
}

// A plan for an earlier deadline is one for a later deadline too: it stays where it is cheaper.
void PipelinePlanner::make_monotone(std::vector<PipelineResult>& results) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].status == SolveStatus::feasible) order.push_back(i);
  sort_by(order, [&](std::size_t i) { return results[i].deadline_s; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    PipelineResult& result = results[order[i]];
    result = cheaper_of(std::move(result), results[order[i - 1]].plan);
  }
}

}  // namespace rubato
