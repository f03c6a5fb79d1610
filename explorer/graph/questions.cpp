#include "explorer/graph/questions.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

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
  return !any_time && grain != Granularity::automatic &&
         !(question.grain == Granularity::automatic && grain == Granularity::launch);
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

// A bound for a longer time holds for a shorter one too. How far segments are searched depends on
// their gaps, which must not depend on what else is asked.
void share_bounds(std::span<GraphPlanResult> results) {
  for (GraphPlanResult& result : results) {
    if (result.question.grain == Granularity::iteration ||
        result.question.grain == Granularity::automatic)
      continue;
    for (const GraphPlanResult& later : results) {
      if (differ_in_slack(later.question, result.question) && later.deadline_s >= result.deadline_s)
        result.lower_bound_j = std::max(result.lower_bound_j, later.lower_bound_j);
    }
  }
}

}  // namespace

// Whether a plan for `within` could be better than what is found for `asked`: bounds do not say no.
bool GraphPlanner::could_save(const GraphPlanResult& within, const GraphPlanResult& asked,
                              const RunContext& context) const {
  if (asked.question.grain == Granularity::iteration || !looks_at(asked.question, within.question))
    return false;
  if (!asked.found() || asked.question.grain == Granularity::automatic) return true;
  const double enough_j = asked.run.total_energy_j * (1.0 - optimal_gap_frac);
  return bound_j(within.deadline_s) + held_.least_j(within.deadline_s) < enough_j &&
         bound_apart_j(within, asked.deadline_s, held_, context) < enough_j;
}

// Answers those questions within the ones asked that could_save(). Results of the ones asked take
// plans that are better.
std::vector<GraphPlanResult> GraphPlanner::answers_within(std::span<GraphPlanResult> asked,
                                                          const RunContext& context) {
  if (context.stop_requested()) return {};  // prices may be missing
  std::vector<GraphQuestion> questions;
  for (const GraphPlanResult& result : asked) questions.push_back(result.question);
  const auto useful = [&](const GraphPlanResult& within) {
    return std::ranges::any_of(
        asked, [&](const GraphPlanResult& one) { return could_save(within, one, context); });
  };
  std::vector<GraphPlanResult> candidates, answers;
  for (const GraphQuestion& question :
       questions_within(questions, model_.graph().gpus().size(), any_clock_frac())) {
    candidates.push_back(begun(question));
    if (!useful(candidates.back())) candidates.pop_back();
  }
  for (const GraphPlanResult& one : candidates) targets_->beside.add(target_s(one.deadline_s));
  for (GraphPlanResult& one : candidates) {
    if (context.stop_requested()) break;
    if (!useful(one)) continue;
    try_uniform(one);
    answer(one, context);
    for (GraphPlanResult& result : asked) {
      if (result.question.grain != Granularity::automatic)
        keep_known_plans(result, std::span(&one, 1));
    }
    answers.push_back(std::move(one));
  }
  return answers;
}

std::vector<GraphPlanResult> GraphPlanner::plan(std::span<const GraphQuestion> questions,
                                                const RunContext& context) {
  std::vector<GraphPlanResult> results;
  for (const GraphQuestion& question : questions) results.push_back(begun(question));
  const bool many_clocks = std::ranges::any_of(
      questions, [](const GraphQuestion& q) { return q.grain != Granularity::iteration; });
  if (many_clocks) targets_.emplace(targets_for(results, context));
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_by(order, [&](std::size_t q) { return results[q].deadline_s; });
  sort_by(order, [&](std::size_t q) { return results[q].question.grain; });
  for (const std::size_t q : order) {
    GraphPlanResult& result = results[q];
    const Granularity grain = result.question.grain;
    if (!result.question.is_local()) try_uniform(result);
    result.status = SolveStatus::time_limit;  // stopped: what is known by now, without a bound
    if (context.stop_requested() || grain == Granularity::automatic) continue;
    if (grain != Granularity::iteration) answer(result, context);
    result.lower_bound_j = lower_bound_j(result, context);
    result.status = SolveStatus::infeasible;
  }
  within_.clear();
  if (many_clocks) within_ = answers_within(results, context);
  for (GraphPlanResult& one : within_) {  // as if asked for
    keep_known_plans(one, results);
    keep_known_plans(one, within_);
  }

  for (const std::size_t q : order) {
    GraphPlanResult& result = results[q];
    keep_known_plans(result, results);
    keep_known_plans(result, within_);
    if (context.stop_requested() || result.question.grain != Granularity::automatic) continue;
    answer_automatic(result, result.deadline_s, context);
    result.lower_bound_j = lower_bound_j(result, context);
    result.status = SolveStatus::infeasible;
  }
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
