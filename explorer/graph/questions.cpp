#include "explorer/graph/questions.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "common/algorithms/parallel.hpp"
#include "common/algorithms/sort_by.hpp"
#include "explorer/graph/planner.hpp"

namespace rubato {

bool takes_plans_of(const GraphQuestion& question, const GraphQuestion& other) {
  if (question.is_local() || other.is_local()) return question == other;
  return other.grain <= question.grain;
}

namespace {

// Whether plans for the usual smaller slacks are of use. Where changes take time, those of launches
// seldom are.
bool looks_at_less_time(const GraphQuestion& question, Granularity grain, double any_clock_frac) {
  const bool any_time =
      question.slack_frac > usual_slacks_frac.back() && question.slack_frac >= any_clock_frac;
  return !any_time && grain != Granularity::segment &&
         !(question.grain == Granularity::segment && grain == Granularity::launch);
}

}  // namespace

bool looks_at(const GraphQuestion& question, const GraphQuestion& other, double any_clock_frac) {
  if (!takes_plans_of(question, other)) return false;
  if (other.slack_frac == question.slack_frac) return true;
  return other.slack_frac < question.slack_frac &&
         std::ranges::find(usual_slacks_frac, other.slack_frac) != usual_slacks_frac.end() &&
         looks_at_less_time(question, other.grain, any_clock_frac);
}

bool differ_in_slack(const GraphQuestion& a, const GraphQuestion& b) {
  GraphQuestion at_slack = a;
  at_slack.slack_frac = b.slack_frac;
  return at_slack == b;
}

std::vector<GraphQuestion> questions_within(std::span<const GraphQuestion> asked, std::size_t gpus,
                                            double any_clock_frac) {
  std::vector<GraphQuestion> within;
  const auto add = [&](const GraphQuestion& one) {
    if (std::ranges::find(asked, one) == asked.end() &&
        std::ranges::find(within, one) == within.end())
      within.push_back(one);
  };
  for (const GraphQuestion& question : asked) {
    if (question.is_local()) continue;
    for (const Granularity grain :
         {Granularity::gpu, Granularity::pass, Granularity::kernel, Granularity::launch}) {
      if (grain > question.grain || (grain == Granularity::gpu && gpus == 1)) continue;
      add({grain, question.slack_frac});
      if (!looks_at_less_time(question, grain, any_clock_frac)) continue;
      for (const double slack_frac : usual_slacks_frac)
        if (slack_frac < question.slack_frac) add({grain, slack_frac});
    }
  }
  return within;
}

bool GraphPlanner::looks_at(const GraphQuestion& question, const GraphQuestion& other) const {
  return rubato::looks_at(question, other, any_clock_frac());
}

double GraphPlanner::any_clock_frac() const { return slowest_s(uniform_) / baseline_.span_s - 1.0; }

// Keeps the best plan of those for coarser questions and for less time: they answer this one too.
void GraphPlanner::keep_known_plans(GraphPlanResult& result,
                                    std::span<const GraphPlanResult> known) {
  for (const GraphPlanResult& one : known) {
    if (!one.found() || !looks_at(result.question, one.question)) continue;
    if (result.switching.is_free() && one.switching.is_free()) {
      if (result.found() && one.run.total_energy_j >= result.run.total_energy_j) continue;
      result.plan = one.plan;
      result.run = one.run;
    } else {
      keep_if_better(result, one.plan);
    }
  }
}

namespace {

// A bound for a longer time holds for a shorter one too.
void share_bounds(std::span<GraphPlanResult> results) {
  for (GraphPlanResult& result : results) {
    if (result.question.grain == Granularity::run || result.question.grain == Granularity::segment)
      continue;
    for (const GraphPlanResult& later : results) {
      if (differ_in_slack(later.question, result.question) && later.deadline_s >= result.deadline_s)
        result.lower_bound_j = std::max(result.lower_bound_j, later.lower_bound_j);
    }
  }
}

}  // namespace

std::optional<std::vector<ClockId>> GraphPlanner::local_clocks(const LaunchUnits& units,
                                                               const Goal& goal) const {
  if (units.size() == 0) return std::vector<ClockId>{};
  const std::size_t clocks = grid_.size(), kernels = model_.graph().kernels().size();
  std::vector<Cost> launched;  // one launch of each kernel alone, shape [kernels() x clocks]
  for (std::size_t k = 0; k < beside_.kernels(); ++k) {
    for (const ClockPair& clock : grid_.pairs()) {
      const OperatingPoint point =
          model_.evaluate(id_at<KernelId>(k % kernels), clock, id_at<ThrottleId>(k / kernels));
      launched.push_back({point.time_s, point.energy_j + model_.host_power_w() * point.time_s});
    }
  }
  std::vector<double> time_s(units.size() * clocks), energy_j(time_s.size());
  for (std::uint32_t u = 0; u < units.size(); ++u) {
    for (const std::uint32_t launch : units.members(u)) {
      for (std::size_t c = 0; c < clocks; ++c) {
        const Cost& one = launched[beside_.kernel_of(launch) * clocks + c];
        time_s[u * clocks + c] += beside_.time_s(launch, id_at<ClockId>(c));
        energy_j[u * clocks + c] += model_.work()[launch] * one.energy_j;
      }
    }
  }
  Solution solution = solve_local({units.size(), clocks, std::move(time_s), std::move(energy_j)},
                                  goal, grid_.default_clock());
  if (solution.clock_of_unit.empty()) return std::nullopt;
  return std::move(solution.clock_of_unit);
}

GraphPlan GraphPlanner::local_plan(const GraphQuestion& question, const Goal& goal) const {
  const LaunchUnits units = units_of(question);
  const auto clocks = local_clocks(units, goal);
  return clocks ? plan_of(units, *clocks) : GraphPlan{};
}

// Whether a plan for `within` could be better than what is found for `asked`: bounds do not say no.
// @param within_bound_j  worked out once
bool GraphPlanner::could_save(const GraphPlanResult& within, const GraphPlanResult& asked,
                              std::optional<double>& within_bound_j,
                              const RunContext& context) const {
  if (asked.question.grain == Granularity::run || !looks_at(asked.question, within.question))
    return false;
  if (!asked.found() || asked.question.grain == Granularity::segment) return true;
  const double enough_j = asked.run.total_energy_j * (1.0 - optimal_gap_frac);
  if (bound_j(within.deadline_s) >= enough_j) return false;
  if (!within_bound_j) within_bound_j = bound_apart_j(within, within.deadline_s, context);
  return *within_bound_j < enough_j;
}

// Answers those questions within the ones asked that could_save(). Results of the ones asked take
// plans that are better.
std::vector<GraphPlanResult> GraphPlanner::answers_within(std::span<GraphPlanResult> asked,
                                                          const RunContext& context) {
  if (context.stop_requested()) return {};  // prices may be missing
  std::vector<GraphQuestion> questions;
  for (const GraphPlanResult& result : asked) questions.push_back(result.question);
  struct Candidate {
    GraphPlanResult result;
    std::optional<double> bound_j = {};
  };
  const auto useful = [&](Candidate& within) {
    return std::ranges::any_of(asked, [&](const GraphPlanResult& one) {
      return could_save(within.result, one, within.bound_j, context);
    });
  };
  std::vector<Candidate> candidates;
  std::vector<GraphPlanResult> answers;
  for (const GraphQuestion& question :
       questions_within(questions, model_.graph().gpus().size(), any_clock_frac())) {
    candidates.push_back({begun(question)});
    if (!useful(candidates.back())) candidates.pop_back();
  }
  for (Candidate& candidate : candidates) {
    if (context.stop_requested()) break;
    if (!useful(candidate)) continue;
    GraphPlanResult& one = candidate.result;
    answer(one, context);
    for (GraphPlanResult& result : asked) {
      if (result.question.grain != Granularity::segment)
        keep_known_plans(result, std::span(&one, 1));
    }
    answers.push_back(std::move(one));
  }
  return answers;
}

// Results take plans of each other, and of what was not asked, where they save more.
// @param order  coarsest first, then those of the least time
void GraphPlanner::take_known_plans(std::span<GraphPlanResult> results,
                                    std::span<const std::size_t> order, const RunContext& context) {
  within_ = answers_within(results, context);
  for (GraphPlanResult& one : within_) {  // as if asked for
    keep_known_plans(one, results);
    keep_known_plans(one, within_);
  }
  for (const std::size_t q : order) {
    keep_known_plans(results[q], results);
    keep_known_plans(results[q], within_);
  }
}

std::vector<GraphPlanResult> GraphPlanner::plan(std::span<const GraphQuestion> questions,
                                                const RunContext& context, const PlanUse& use) {
  std::vector<GraphPlanResult> results;
  std::vector<double> bounded_s;
  for (const GraphQuestion& question : questions) {
    const std::size_t q = results.size();
    results.push_back(begun(question));
    bounded_s.push_back(use.bounded_frac.empty() ? results[q].deadline_s
                                                 : baseline_.span_s * (1.0 + use.bounded_frac[q]));
  }
  const bool many_clocks = std::ranges::any_of(
      questions, [](const GraphQuestion& q) { return q.grain != Granularity::run; });
  if (many_clocks) prepare(context);
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_by(order, [&](std::size_t q) { return results[q].deadline_s; });
  sort_by(order, [&](std::size_t q) { return results[q].question.grain; });
  const auto of_each = [&](const std::function<void(GraphPlanResult&, double)>& body) {
    parallel_for(
        order.size(), [&](std::size_t i) { body(results[order[i]], bounded_s[order[i]]); },
        LoopTasks::singly);
  };
  of_each([&](GraphPlanResult& result, double bounded_at_s) {
    const Granularity grain = result.question.grain;
    if (grain == Granularity::run || grain == Granularity::segment)
      try_uniform(result);
    else
      answer(result, context);
    result.status = SolveStatus::time_limit;  // stopped: what is known by now, without a bound
    if (context.stop_requested() || grain == Granularity::segment) return;
    if (!use.tries) result.lower_bound_j = lower_bound_j(result, bounded_at_s, context);
    result.status = SolveStatus::infeasible;
  });
  within_.clear();
  if (many_clocks && !use.tries) take_known_plans(results, order, context);
  of_each([&](GraphPlanResult& result, double bounded_at_s) {
    if (context.stop_requested() || result.question.grain != Granularity::segment) return;
    answer_automatic(result, context);
    if (!use.tries) result.lower_bound_j = lower_bound_j(result, bounded_at_s, context);
    result.status = SolveStatus::infeasible;
  });
  share_bounds(results);
  for (GraphPlanResult& result : results) {
    if (!result.found()) continue;
    const double energy_j = result.run.total_energy_j;
    result.gap_frac = std::max(energy_j - result.lower_bound_j, 0.0) / energy_j;
    if (result.status == SolveStatus::time_limit) continue;
    result.status = result.gap_frac <= optimal_gap_frac ? SolveStatus::optimal
                    : context.stop_requested()          ? SolveStatus::time_limit
                                                        : SolveStatus::feasible;
  }
  return results;
}

}  // namespace rubato
