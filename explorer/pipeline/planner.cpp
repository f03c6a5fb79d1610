#include "explorer/pipeline/planner.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

namespace {

// Free durations of a slightly shorter time often round better: the vertices
// of their hulls fall on other clocks. Found by trial on the Perseus profiles.
constexpr std::array shorter_by{0.0, 3e-4, 6e-4, 1e-3, 1.5e-3, 2e-3};

// A late plan comes in time after two or three rounds, or never.
constexpr int switching_rounds = 8;

// Minimum of a convex function by golden sections; the result is off by 1e-12
// of the interval, and any point gives a bound when the function is one.
template <class Function>
double convex_argmin(double low, double high, Function f) {
  constexpr double ratio = 0.6180339887498949;
  double a = high - ratio * (high - low), b = low + ratio * (high - low);
  double fa = f(a), fb = f(b);
  for (int i = 0; i < 60; ++i) {
    if (fa <= fb) {
      high = b;
      b = a;
      fb = fa;
      a = high - ratio * (high - low);
      fa = f(a);
    } else {
      low = a;
      a = b;
      fa = fb;
      b = low + ratio * (high - low);
      fb = f(b);
    }
  }
  return fa <= fb ? a : b;
}

FrontierOptions sweep_options(const PlannerOptions& options, const PipelineWork& work) {
  return options.exact_sweep ? FrontierOptions{} : automatic_sweep(work.schedule.passes.size());
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
      frontier_(sweep_frontier(problem_, sweep_options(options, work), context)),
      least_time_s_(rounder_.least_time_s()) {
  double least_j = std::numeric_limits<double>::infinity();
  for (const FrontierVertex& vertex : frontier_.vertices) {
    const double total_j = vertex.cost_j + waiting_power_w() * vertex.time_s;
    if (total_j < least_j) {
      least_j = total_j;
      cheapest_time_s_ = vertex.time_s;
    }
  }
}

double PipelinePlanner::bound_j(double deadline_s, AfterEnd after_end) const {
  if (after_end == AfterEnd::wait) {
    return frontier_.lower_bound_j(deadline_s) + waiting_power_w() * deadline_s;
  }
  const auto total_j = [&](double time_s) {
    return frontier_.lower_bound_j(time_s) + waiting_power_w() * time_s;
  };
  const double least_s = std::min(least_time_s_, deadline_s);
  const double at_s = convex_argmin(least_s, deadline_s, total_j);
  return std::min(total_j(at_s), total_j(deadline_s));
}

// Rounds every candidate, keeps the cheapest, and improves it if it is far from the bound.
std::optional<PipelinePlan> PipelinePlanner::pick_best(
    const Question& question, std::span<const FrontierPlan> candidates) const {
  const bool waits = question.after_end == AfterEnd::wait;
  const auto total_j = [&](const PipelinePlan& plan) {
    const double end_s = waits ? question.limit_s : rounder_.time_s(plan);
    return rounder_.cost_j(plan) + waiting_power_w() * end_s;
  };
  std::vector<double> fastest_s;
  for (const std::uint32_t curve : problem_.curve_of_activity) {
    fastest_s.push_back(problem_.curves[curve].front().time_s);
  }
  std::optional<PipelinePlan> best = rounder_.round(fastest_s, question.limit_s);
  if (!best) return best;
  double best_j = total_j(*best);
  // A target below the deadline (the cheapest time) is kept as a limit, so that spending slack
  // does not lengthen the iteration beyond what pays.
  const double useful_s = waits ? question.limit_s : std::max(question.target_s, least_time_s_);
  for (const FrontierPlan& candidate : candidates) {
    auto plan = rounder_.round(candidate.duration_s, useful_s);
    if (!plan || total_j(*plan) >= best_j) continue;
    best_j = total_j(*plan);
    best = std::move(plan);
  }
  const double least_j = bound_j(question.limit_s, question.after_end);
  const bool far = best_j - least_j > options_.target_gap_frac * best_j;
  if (far && work_.schedule.passes.size() <= options_.improve_up_to) {
    const double limit_s =
        std::min(question.limit_s, std::max(rounder_.time_s(*best), question.target_s));
    PipelinePlan better = rounder_.improve(*best, limit_s);
    if (total_j(better) < best_j) best = std::move(better);
  }
  return best;
}

// One sweep for all questions; a plan is missing where no plan ends in time.
std::vector<std::optional<PipelinePlan>> PipelinePlanner::answer(
    std::span<const Question> questions, const RunContext& context) const {
  FrontierOptions sweep = sweep_options(options_, work_);
  for (const Question& question : questions) {
    for (const double share : shorter_by) sweep.times_s.push_back(question.target_s * (1 - share));
  }
  const Frontier swept = sweep_frontier(problem_, sweep, context);
  std::vector<std::optional<PipelinePlan>> plans;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto candidates =
        std::span(swept.plans).subspan(i * shorter_by.size(), shorter_by.size());
    plans.push_back(swept.interrupted ? std::nullopt : pick_best(questions[i], candidates));
  }
  return plans;
}

PipelinePlanner::Question PipelinePlanner::question(double limit_s, AfterEnd after_end) const {
  const double useful_s = after_end == AfterEnd::wait ? frontier_.slowest_time_s : cheapest_time_s_;
  return {limit_s, std::min(limit_s, useful_s), after_end};
}

void PipelinePlanner::replay(PipelineResult& result, PipelinePlan plan) const {
  result.status = SolveStatus::feasible;
  result.plan = std::move(plan);
  result.run = simulate(work_, result.plan, {.switch_cost = options_.switch_cost});
  const double wait_s = result.after_end == AfterEnd::wait
                            ? std::max(0.0, result.deadline_s - result.run.time_s)
                            : 0.0;
  result.energy_j = result.run.energy_j + waiting_power_w() * wait_s;
  result.lower_bound_j = bound_j(result.deadline_s, result.after_end);
  // Equal but for the last digits is no gap.
  result.gap_frac = std::max(0.0, 1.0 - result.lower_bound_j / result.energy_j);
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
    result.after_end = after_end;
    result.deadline_s = deadline_s;
    result.least_time_s = least_time_s_;
  }
  // Without a price on switching the first round answers all. With one, a plan that ends late is
  // made again for a deadline that is earlier by as much.
  for (int round = 0; round < switching_rounds && !open.empty(); ++round) {
    const auto plans = answer(questions, context);
    std::vector<std::size_t> late;
    std::vector<Question> again;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (!plans[i]) continue;
      PipelineResult& result = results[open[i]];
      replay(result, *plans[i]);
      const double over_s = result.run.time_s - result.deadline_s;
      if (over_s <= 0.0) continue;
      late.push_back(open[i]);
      again.push_back(question(questions[i].limit_s - over_s, after_end));
    }
    open = std::move(late);
    questions = std::move(again);
  }
  for (PipelineResult& result : results) settle(result);
  return results;
}

// What is late in spite of all rounds, or dearer for its switches than never switching.
void PipelinePlanner::settle(PipelineResult& result) const {
  const bool late = result.run.time_s > result.deadline_s;
  if (result.plan.option_of_pass.empty() && result.deadline_s < baseline_.time_s) return;
  PipelineResult unswitched = result;
  replay(unswitched, highest_clocks(work_));
  const bool in_time = unswitched.run.time_s <= result.deadline_s;
  const bool none = result.plan.option_of_pass.empty();
  if (in_time && (none || late || unswitched.energy_j < result.energy_j)) {
    result = std::move(unswitched);
  } else if (late) {
    result.status = SolveStatus::infeasible;
    result.plan = {};
    result.run = {};
  }
}

}  // namespace rubato
