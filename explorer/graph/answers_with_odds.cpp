#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/algorithms/parallel.hpp"
#include "common/numbers.hpp"
#include "explorer/graph/rehearsal.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/plan/margin.hpp"

namespace rubato {

namespace {

// Plans as they are played.
std::vector<GraphPlanOutcome> played_answers(Rehearsal& rehearsal, GraphPlanner& planner,
                                             std::span<const GraphQuestion> questions,
                                             const PlanUse& use, const RunContext& context) {
  std::vector<GraphPlanOutcome> outcomes, within;
  std::vector<GraphPlanOutcome*> automatic;
  std::vector<const GraphPlanOutcome*> known;
  for (GraphPlanResult& result : planner.plan(questions, context, use))
    outcomes.push_back(rehearsal.played(std::move(result)));
  for (GraphPlanOutcome& one : outcomes) {
    if (one.result.question.grain == Granularity::segment)
      automatic.push_back(&one);
    else
      known.push_back(&one);
  }
  if (!automatic.empty()) {
    for (const GraphPlanResult& one : planner.within()) within.push_back(rehearsal.played(one));
  }
  for (const GraphPlanOutcome& one : within) known.push_back(&one);
  parallel_for(
      automatic.size(),
      [&](std::size_t i) {
        Rehearsal own(planner.model(), planner);
        if (!use.tries) *automatic[i] = own.in_time(std::move(*automatic[i]), known, context);
        own.set_as_played(*automatic[i]);
      },
      LoopTasks::singly);
  for (GraphPlanOutcome& one : outcomes) {
    if (one.result.found()) one.change = change_against(one.result.run, planner.baseline());
  }
  return outcomes;
}

constexpr double rounding = 1e-9;  // as planners count

std::vector<double> slacks_of(std::span<const GraphQuestion> questions) {
  std::vector<double> slacks_frac;
  for (const GraphQuestion& question : questions) slacks_frac.push_back(question.slack_frac);
  return slacks_frac;
}

// In place of its own the bound of what was asked for.
void take_bound(const GraphPlanResult& asked, GraphPlanResult& result) {
  result.lower_bound_j = asked.lower_bound_j;
  result.gap_frac = std::max(1.0 - asked.lower_bound_j / result.run.total_energy_j, 0.0);
  if (result.gap_frac > optimal_gap_frac) result.status = SolveStatus::feasible;
}

// Another plan as the answer: the question, its bound and the bolder plan stay.
void answer_with(const GraphPlanOutcome& plan, GraphPlanOutcome& outcome) {
  const GraphPlanResult asked = std::move(outcome.result);
  const std::optional<BolderPlan> bolder = outcome.bolder;
  outcome = plan;
  if (bolder) outcome.bolder = bolder;
  GraphPlanResult& result = outcome.result;
  result.question = asked.question;
  result.deadline_s = asked.deadline_s;
  take_bound(asked, result);
}

// Questions as plans_with_odds() asks them.
class AskedGraph {
 public:
  AskedGraph(const GraphModel& model, GraphPlanner& planner, const GraphModel& as_captured,
             double odds_frac, const RunContext& context)
      : planner_(planner),
        rehearsal_(model, planner),
        intervals_(model, as_captured, planner.grid(), planner.baseline()),
        odds_frac_(odds_frac),
        context_(context) {}

  // @param first_frac  slacks to plan for at first: those of the questions, or less
  // @param tries       to plan for less time than that
  std::vector<GraphPlanOutcome> answers(std::span<const GraphQuestion> questions,
                                        std::span<const double> first_frac, int tries) {
    if (questions.empty()) return {};
    questions_ = questions;
    const std::vector<double> slacks_frac = slacks_of(questions);
    std::vector<MarginTarget> first;
    for (const double target_frac : first_frac) first.push_back({first.size(), target_frac});
    return plans_with_odds(*this, planned(first, {.bounded_frac = slacks_frac}), first_frac,
                           slacks_frac, odds_frac_, tries, context_);
  }

  std::vector<GraphPlanOutcome> planned(std::span<const MarginTarget> targets,
                                        const PlanUse& use = {.tries = true}) {
    std::vector<GraphQuestion> asked;
    for (const MarginTarget& target : targets) {
      asked.push_back(questions_[target.question]);
      asked.back().slack_frac = target.slack_frac;
    }
    std::vector<GraphPlanOutcome> plans =
        played_answers(rehearsal_, planner_, asked, use, context_);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const GraphQuestion& question = questions_[targets[i].question];
      GraphPlanOutcome& one = plans[i];
      one.result.question = question;
      one.result.deadline_s = planner_.baseline().span_s * (1.0 + question.slack_frac);
      if (one.counted)
        one.counted->in_time = one.counted->change.time_frac <= question.slack_frac + rounding;
    }
    return plans;
  }

  std::optional<double> appraise(std::size_t question, GraphPlanOutcome& one) const {
    return appraise_within(questions_[question].slack_frac, one);
  }
  std::optional<double> appraise_within(double slack_frac, GraphPlanOutcome& one) const {
    if (!one.result.found()) return std::nullopt;
    const GraphPlanResult& result = one.result;
    one.interval = intervals_.of(result.plan, result.run);
    const double applied_frac = one.change_as_played().time_frac;
    const double added_frac = applied_frac - one.change.time_frac;
    const bool untouched = std::ranges::all_of(result.plan.clock_of_activity, [&](ClockId clock) {
      return clock == planner_.grid().default_clock();
    });
    one.odds_in_time = untouched
                           ? (slack_frac >= 0.0 ? 1.0 : 0.0)
                           : one.interval.times.odds_within(percent * (slack_frac - added_frac));
    return one.interval.times.kept_with(odds_frac_) / percent + added_frac;
  }

  [[nodiscard]] static double energy_frac(const GraphPlanOutcome& one) {
    return one.change_as_played().energy_frac;
  }

  static void take_bound(const GraphPlanOutcome& asked, GraphPlanOutcome& other) {
    rubato::take_bound(asked.result, other.result);
  }

  GraphPlanOutcome kept_defaults(std::size_t question, const GraphPlanOutcome& asked) {
    GraphPlanResult kept = asked.result;
    kept.status = SolveStatus::feasible;
    kept.plan = uniform_plan(planner_.model().graph(), planner_.grid().default_clock());
    kept.run = planner_.baseline();
    GraphPlanOutcome outcome = rehearsal_.played(std::move(kept));
    outcome.change = change_against(outcome.result.run, planner_.baseline());
    (void)appraise(question, outcome);
    return outcome;
  }

  // Takes a coarser plan, which is one of the finer grain too, where it saves more as played. A
  // plan that does not count stays: it says what free changes of clock would save.
  void keep_better(const GraphPlanOutcome& coarser, GraphPlanOutcome& outcome) {
    const auto is_better = [&](const GraphPlanOutcome& other) {
      return counts(other) && energy_frac(other) < energy_frac(outcome) - rounding;
    };
    if (!is_better(coarser) || (outcome.result.found() && !counts(outcome))) return;
    if (outcome.result.question.grain != Granularity::segment || !planner_.switching())
      return answer_with(coarser, outcome);
    GraphPlanResult result = coarser.result;
    result.question = outcome.result.question;
    result.switching = *planner_.switching();
    result.plan.only_main_streams_ask = true;  // as of every automatic plan
    result.run = GraphSimulator(planner_.model(), planner_.grid())
                     .run(result.plan, {.switching = result.switching});
    GraphPlanOutcome segments = rehearsal_.played(std::move(result));
    rehearsal_.set_as_played(segments);
    segments.change = change_against(segments.result.run, planner_.baseline());
    (void)appraise_within(outcome.result.question.slack_frac, segments);
    if (is_better(segments)) answer_with(segments, outcome);
  }
  // The same of all that were asked for together, coarsest first.
  void keep_coarser(std::vector<GraphPlanOutcome>& outcomes) {
    const auto takes = [](const GraphQuestion& fine, const GraphQuestion& coarse) {
      return !fine.is_local() && !coarse.is_local() && coarse.grain < fine.grain &&
             coarse.slack_frac == fine.slack_frac;
    };
    for (const Granularity grain : granularities) {
      for (GraphPlanOutcome& fine : outcomes) {
        if (fine.result.question.grain != grain) continue;
        for (const GraphPlanOutcome& coarse : outcomes)
          if (takes(fine.result.question, coarse.result.question)) keep_better(coarse, fine);
      }
    }
  }

 private:
  [[nodiscard]] bool counts(const GraphPlanOutcome& one) const {
    return one.result.found() && one.verdict.applicable && has_odds(one.odds_in_time, odds_frac_) &&
           one.change_as_played().time_frac <= one.result.question.slack_frac + rounding;
  }

  GraphPlanner& planner_;
  Rehearsal rehearsal_;
  GraphPlanIntervals intervals_;
  double odds_frac_;
  const RunContext& context_;
  std::span<const GraphQuestion> questions_;
};

// The most time that a plan of another grain which has the odds was made for; the slack itself
// where one clock for all has the odds at once.
double target_of(const GraphQuestion& question, std::span<const GraphPlanOutcome> one_clock,
                 std::span<const GraphPlanOutcome> quick) {
  std::optional<double> most_frac;
  for (const std::span<const GraphPlanOutcome> plans : {one_clock, quick}) {
    for (const GraphPlanOutcome& plan : plans) {
      const GraphQuestion& of = plan.result.question;
      if (of.is_local() || of.slack_frac != question.slack_frac || !plan.bolder) continue;
      most_frac = std::max(most_frac.value_or(0.0), plan.change.time_frac);
    }
  }
  return most_frac.value_or(question.slack_frac);
}

// Coarser plans are candidates, whether they were asked for or not.
std::vector<GraphQuestion> with_coarser(std::span<const GraphQuestion> asked, std::size_t gpus) {
  std::vector<GraphQuestion> all(asked.begin(), asked.end());
  for (const GraphQuestion& question : asked) {
    for (const Granularity grain :
         {Granularity::gpu, Granularity::pass, Granularity::kernel, Granularity::launch}) {
      const GraphQuestion coarser{grain, question.slack_frac};
      if (grain < question.grain && !question.is_local() &&
          (grain != Granularity::gpu || gpus > 1) && std::ranges::find(all, coarser) == all.end())
        all.push_back(coarser);
    }
  }
  return all;
}

// Plans of one clock for all, as played, each made once.
class SingleClocks {
 public:
  SingleClocks(const GraphModel& model, GraphPlanner& planner, const GraphModel& as_captured)
      : planner_(planner),
        rehearsal_(model, planner),
        intervals_(model, as_captured, planner.grid(), planner.baseline()),
        simulator_(model, planner.grid()) {
    for (const UniformRun& run : planner.uniform()) cheapest_.push_back(&run);
    std::ranges::stable_sort(cheapest_, {}, [](const UniformRun* run) { return run->energy_j; });
  }

  // The one of least energy that has the odds within a slack. Null where none takes less than that.
  const GraphPlanOutcome* best(double slack_frac, double odds_frac, double below_frac) {
    const GraphRun& base = planner_.baseline();
    for (const UniformRun* run : cheapest_) {
      if (run->energy_j / base.total_energy_j - 1.0 >= below_frac - rounding) return nullptr;
      if (run->span_s > (1.0 + slack_frac) * base.span_s) continue;
      GraphPlanOutcome& plan = made(run->clock);
      const double applied_frac = plan.change_as_played().time_frac;
      const double added_frac = applied_frac - plan.change.time_frac;
      plan.odds_in_time = plan.interval.times.odds_within(percent * (slack_frac - added_frac));
      if (plan.verdict.applicable && applied_frac <= slack_frac + rounding &&
          has_odds(plan.odds_in_time, odds_frac)) {
        if (plan.counted) plan.counted->in_time = true;
        return &plan;
      }
    }
    return nullptr;
  }

 private:
  GraphPlanOutcome& made(ClockId clock) {
    const auto [at, is_new] = made_.try_emplace(clock);
    if (!is_new) return at->second;
    GraphPlanResult result;
    result.question.grain = Granularity::run;
    result.status = SolveStatus::feasible;
    result.plan = uniform_plan(planner_.model().graph(), clock);
    result.run = simulator_.run(result.plan);
    at->second = rehearsal_.played(std::move(result));
    GraphPlanOutcome& plan = at->second;
    plan.change = change_against(plan.result.run, planner_.baseline());
    plan.interval = intervals_.of(plan.result.plan, plan.result.run);
    return plan;
  }

  GraphPlanner& planner_;
  Rehearsal rehearsal_;
  GraphPlanIntervals intervals_;
  GraphSimulator simulator_;
  std::vector<const UniformRun*> cheapest_;  // first
  std::map<ClockId, GraphPlanOutcome> made_;
};

// Of plans of one clock for all that lack the odds, or are the default clocks for that: the single
// clock of least energy that has them. Every clock is looked at: between those that have the odds
// may be others that do not, which a search for the time to plan for does not pass.
void take_single_clocks(SingleClocks& clocks, double odds_frac,
                        std::vector<GraphPlanOutcome>& plans) {
  for (GraphPlanOutcome& plan : plans) {
    if (!plan.result.found()) continue;
    const bool has = has_odds(plan.odds_in_time, odds_frac);
    if (has && !plan.bolder) continue;
    const double energy_frac = plan.change_as_played().energy_frac;
    const GraphPlanOutcome* best =
        clocks.best(plan.result.question.slack_frac, odds_frac,
                    has ? energy_frac : std::numeric_limits<double>::infinity());
    if (best == nullptr) continue;
    if (!has) plan.bolder = {energy_frac, *plan.odds_in_time};
    answer_with(*best, plan);
  }
}

}  // namespace

std::vector<GraphPlanOutcome> rehearsed_answers(const GraphModel& model, GraphPlanner& planner,
                                                const GraphModel& as_captured,
                                                std::span<const GraphQuestion> asked_for,
                                                double odds_frac, const RunContext& context) {
  AskedGraph asked(model, planner, as_captured, odds_frac, context);
  if (odds_frac == 0.0) return asked.answers(asked_for, slacks_of(asked_for), 0);
  const std::vector<GraphQuestion> questions = with_coarser(asked_for, model.graph().gpus().size());
  // What is planned at once says how much less time it takes to have the odds. What takes long to
  // plan is asked for that time, once.
  std::vector<GraphQuestion> one_clock(questions.begin(), questions.end()), quick, segments;
  for (GraphQuestion& question : one_clock) question = {Granularity::run, question.slack_frac};
  for (const GraphQuestion& question : questions) {
    if (question.grain == Granularity::run) continue;
    (question.grain == Granularity::segment ? segments : quick).push_back(question);
  }
  std::vector<GraphPlanOutcome> of_one_clock = asked.answers(one_clock, slacks_of(one_clock), 0);
  SingleClocks clocks(model, planner, as_captured);
  take_single_clocks(clocks, odds_frac, of_one_clock);
  std::vector<GraphPlanOutcome> of_quick =
      asked.answers(quick, slacks_of(quick), MarginSearch::tries);
  std::vector<double> first_frac;
  for (const GraphQuestion& question : segments)
    first_frac.push_back(target_of(question, of_one_clock, of_quick));
  std::vector<GraphPlanOutcome> of_segments =
                                    asked.answers(segments, first_frac, MarginSearch::tries),
                                outcomes;
  auto next_quick = of_quick.begin(), next_segments = of_segments.begin();
  for (std::size_t q = 0; q < questions.size(); ++q) {
    if (questions[q].grain == Granularity::run) {
      outcomes.push_back(of_one_clock[q]);
      continue;
    }
    const bool is_quick = questions[q].grain != Granularity::segment;
    outcomes.push_back(std::move(*(is_quick ? next_quick : next_segments)++));
    if (questions[q].is_local()) continue;  // one clock for all keeps no limit of its own
    if (!is_quick && !outcomes.back().bolder) outcomes.back().bolder = of_one_clock[q].bolder;
    asked.keep_better(of_one_clock[q], outcomes.back());
  }
  asked.keep_coarser(outcomes);
  outcomes.erase(outcomes.begin() + std::ssize(asked_for), outcomes.end());
  return outcomes;
}

}  // namespace rubato
