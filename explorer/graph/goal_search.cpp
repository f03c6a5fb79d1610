#include "explorer/graph/goal_search.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "explorer/graph/rehearsal.hpp"
#include "explorer/plan/goal_bound.hpp"

namespace rubato {

namespace {

// Each halves the distance of slacks next to the best. A budget has an edge, other goals are flat
// where they are least.
constexpr int refinements = 2, refinements_of_budgets = 5;
constexpr double least_step_frac = 1e-4;  // of the time at the default clocks

class GoalSearch {
 public:
  GoalSearch(const GraphExploration& found, std::span<const Question> questions,
             const RunContext& context)
      : model_(*found.model),
        planner_(*found.planner),
        baseline_(planner_.baseline()),
        gpus_(static_cast<double>(model_.graph().gpus().size())),
        context_(context) {
    for (const Question& question : questions) {
      const std::string want = want_text(question.goal);
      const auto known = std::ranges::find(wants_, want);
      goal_of_.push_back(static_cast<std::size_t>(known - wants_.begin()));
      if (known == wants_.end()) {
        wants_.push_back(want);
        goals_.push_back(question.goal);
      }
      if (question.aggregation == Aggregation::global) grains_.insert(question.granularity);
    }
  }

  std::vector<GraphPlanOutcome> to(std::span<const Question> questions) {
    const bool only_iteration = std::ranges::all_of(questions, [](const Question& question) {
      return question.granularity == Granularity::run;
    });
    for (const Goal& goal : goals_) {
      one_clock_.push_back(best_single_clock(goal));
      bounds_.push_back(only_iteration ? GoalBound{} : bound_of(goal));
    }
    ask(first_slacks());
    for (int i = 0; i < refinements_of_budgets && !context_.stop_requested(); ++i)
      ask(slacks_beside_best(i < refinements));
    std::vector<GraphPlanOutcome> outcomes;
    for (std::size_t q = 0; q < questions.size(); ++q) {
      const double bound = bounds_[goal_of_[q]].least_frac;
      outcomes.push_back(outcome_of(questions[q], one_clock_[goal_of_[q]], bound));
    }
    return outcomes;
  }

 private:
  using BySlack = std::map<double, GraphPlanOutcome>;
  using Slacks = std::set<std::pair<Granularity, double>>;

  [[nodiscard]] Cost defaults() const { return {baseline_.span_s, baseline_.total_energy_j}; }
  [[nodiscard]] double slack_of(double span_s) const { return span_s / baseline_.span_s - 1.0; }

  [[nodiscard]] static bool is_segments(const GraphPlanOutcome& one) {
    return one.result.question.grain == Granularity::segment;
  }

  // A plan as the goal sees it: segments as played, others with free changes of clock.
  [[nodiscard]] Contender judged(const Goal& goal, const GraphPlanOutcome& one) const {
    std::optional<Cost> applied;
    if (one.result.found()) {
      const PlanChange& change = is_segments(one) ? one.change_as_played() : one.change;
      applied = {(1.0 + change.time_frac) * baseline_.span_s,
                 (1.0 + change.energy_frac) * baseline_.total_energy_j};
    }
    return contender(goal, applied, defaults(), gpus_);
  }

  // Before all others: plans within a budget, then segments that can be applied, then the least.
  [[nodiscard]] std::tuple<bool, bool, double> rank(const Goal& goal,
                                                    const GraphPlanOutcome& plan) const {
    const Contender one = judged(goal, plan);
    return {!one.holds, is_segments(plan) && !plan.verdict.applicable, one.objective_frac};
  }

  [[nodiscard]] BySlack::const_iterator best_of(const Goal& goal, const BySlack& plans) const {
    return std::ranges::min_element(plans, {},
                                    [&](const auto& plan) { return rank(goal, plan.second); });
  }

  // Every clock was replayed already. Its plan is one of every granularity.
  [[nodiscard]] GraphPlanOutcome best_single_clock(const Goal& goal) const {
    const auto best = std::ranges::min_element(planner_.uniform(), {}, [&](const UniformRun& run) {
      const Contender one = contender(goal, Cost{run.span_s, run.energy_j}, defaults(), gpus_);
      return std::pair(!one.holds, one.objective_frac);
    });
    return outcome_of(Granularity::run, uniform_plan(model_.graph(), best->clock));
  }

  [[nodiscard]] GraphPlanOutcome outcome_of(Granularity grain, GraphPlan plan) const {
    GraphPlanResult result;
    if (!plan.clock_of_activity.empty()) {
      result.run = GraphSimulator(model_, planner_.grid()).run(plan);
      result.plan = std::move(plan);
      result.deadline_s = result.run.span_s;
      result.question = {grain, slack_of(result.run.span_s)};
    }
    return rehearsed(model_, planner_, model_, {std::move(result)}).front();
  }

  // Those at which launches alone and the best single clock have each goal least, and around.
  [[nodiscard]] Slacks first_slacks() const {
    constexpr double around_frac = 0.02;
    Slacks asked;
    for (std::size_t g = 0; g < goals_.size(); ++g) {
      const double launches_frac = slack_of(bounds_[g].time_s);
      for (const double slack_frac :
           {one_clock_[g].result.question.slack_frac, launches_frac - around_frac, launches_frac,
            launches_frac + around_frac}) {
        for (const Granularity grain : grains_) {
          if (grain != Granularity::run && slack_frac > -1.0) asked.emplace(grain, slack_frac);
        }
      }
    }
    return asked;
  }

  [[nodiscard]] Slacks slacks_beside_best(bool of_all) const {
    Slacks asked;
    for (const auto& of_grain : plans_) {
      const BySlack& plans = of_grain.second;
      for (const Goal& goal : goals_) {
        if (!of_all && !std::holds_alternative<LeastTime>(goal)) continue;
        const auto best = best_of(goal, plans);
        const auto halve = [&](double a_frac, double b_frac) {
          if (b_frac - a_frac > least_step_frac)
            asked.emplace(of_grain.first, 0.5 * (a_frac + b_frac));
        };
        if (best != plans.begin()) halve(std::prev(best)->first, best->first);
        if (std::next(best) != plans.end()) halve(best->first, std::next(best)->first);
      }
    }
    return asked;
  }

  void ask(const Slacks& slacks) {
    std::vector<GraphQuestion> questions;
    for (const auto& [grain, slack_frac] : slacks) questions.push_back({grain, slack_frac});
    if (questions.empty()) return;
    auto outcomes = rehearsed_answers(model_, planner_, model_, questions, 0.0, context_);
    auto asked = slacks.begin();
    for (GraphPlanOutcome& outcome : outcomes) {
      plans_[asked->first].emplace(asked->second, std::move(outcome));
      ++asked;
    }
  }

  [[nodiscard]] GoalBound bound_of(const Goal& goal) const {
    const Frontier& frontier = planner_.frontier(context_);
    const auto least_j = [&](double /*from_s*/, double to_s) {
      return planner_.bound_of_launches_j(to_s, context_);
    };
    return goal_bound(goal, frontier.least_time_s, slowest_s(planner_.uniform()), least_j,
                      defaults(), gpus_);
  }

  [[nodiscard]] GraphPlanOutcome outcome_of(const Question& question,
                                            const GraphPlanOutcome& one_clock, double bound) const {
    const Goal& goal = question.goal;
    const Granularity grain = question.granularity;
    const GraphQuestion asked{.grain = grain, .aggregation = question.aggregation};
    const GraphPlanOutcome* best = &one_clock;
    GraphPlanOutcome local;
    if (asked.is_local()) {
      local = outcome_of(grain, planner_.local_plan(asked, goal));
      best = &local;
    } else if (const auto plans = plans_.find(grain); plans != plans_.end()) {
      const auto found = best_of(goal, plans->second);
      if (rank(goal, found->second) < rank(goal, one_clock)) best = &found->second;
    }
    const Contender judgement = judged(goal, *best);
    GraphPlanOutcome outcome = judgement.holds ? *best : GraphPlanOutcome{};
    outcome.goal = goal;
    GraphPlanResult& result = outcome.result;
    result.question.grain = grain;
    result.question.aggregation = question.aggregation;
    if (!judgement.holds) return outcome;
    result.question.slack_frac = outcome.change.time_frac;
    result.deadline_s = result.run.span_s;
    result.lower_bound_j = 0.0;
    outcome.odds_in_time.reset();  // no deadline was asked for
    if (outcome.counted) outcome.counted->in_time = true;
    const bool exact = grain == Granularity::run;
    if (exact) bound = judgement.objective_frac;
    result.gap_frac = std::max(0.0, 1.0 - bound / judgement.objective_frac);
    result.status = exact          ? SolveStatus::optimal
                    : bound == 0.0 ? SolveStatus::time_limit  // no bound
                                   : SolveStatus::feasible;
    return outcome;
  }

  const GraphModel& model_;
  GraphPlanner& planner_;
  const GraphRun& baseline_;
  double gpus_;
  const RunContext& context_;
  std::vector<Goal> goals_;           // different ones
  std::vector<std::string> wants_;    // shape [goals]
  std::vector<std::size_t> goal_of_;  // shape [questions]
  std::set<Granularity> grains_;
  std::vector<GraphPlanOutcome> one_clock_;  // shape [goals]
  std::vector<GoalBound> bounds_;            // shape [goals]
  std::map<Granularity, BySlack> plans_;
};

}  // namespace

std::vector<GraphPlanOutcome> plans_of_goals(const GraphExploration& found,
                                             std::span<const Question> questions,
                                             const RunContext& context) {
  if (questions.empty()) return {};
  return GoalSearch(found, questions, context).to(questions);
}

}  // namespace rubato
