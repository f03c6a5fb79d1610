#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "explorer/graph/rehearsal.hpp"
#include "explorer/plan/margin.hpp"

namespace rubato {

namespace {

// Plans as they are played.
std::vector<GraphPlanOutcome> played_answers(Rehearsal& rehearsal, GraphPlanner& planner,
                                             std::span<const GraphQuestion> questions,
                                             const RunContext& context) {
  std::vector<GraphPlanOutcome> outcomes, within;
  std::vector<GraphPlanOutcome*> automatic;
  std::vector<const GraphPlanOutcome*> known;
  for (GraphPlanResult& result : planner.plan(questions, context))
    outcomes.push_back(rehearsal.played(std::move(result)));
  for (GraphPlanOutcome& one : outcomes) {
    if (one.result.question.grain == GraphGrain::automatic)
      automatic.push_back(&one);
    else
      known.push_back(&one);
  }
  if (!automatic.empty()) {
    for (const GraphPlanResult& one : planner.within()) within.push_back(rehearsal.played(one));
  }
  for (const GraphPlanOutcome& one : within) known.push_back(&one);
  for (GraphPlanOutcome* one : automatic) {
    *one = rehearsal.in_time(std::move(*one), known, context);
    rehearsal.set_as_played(*one);
  }
  for (GraphPlanOutcome& one : outcomes) {
    if (one.result.found()) one.change = change_against(one.result.run, planner.baseline());
  }
  return outcomes;
}

// Answers with the odds asked for: plans are made for so much less time that they have them.
class AnswersWithOdds {
 public:
  AnswersWithOdds(const GraphModel& model, GraphPlanner& planner, const GraphModel& as_captured,
                  double odds_frac, const RunContext& context)
      : planner_(planner),
        rehearsal_(model, planner),
        intervals_(model, as_captured, planner.grid(), planner.baseline()),
        odds_frac_(odds_frac),
        context_(context) {}

  std::vector<GraphPlanOutcome> to(std::span<const GraphQuestion> questions) {
    if (odds_frac_ == 0.0) return asked_only(questions);
    // What is planned at once says how much less time it takes to have the odds. What takes long to
    // plan is asked for that time, once.
    std::vector<GraphQuestion> one_clock(questions.begin(), questions.end()), quick, segments;
    for (GraphQuestion& question : one_clock)
      question = {GraphGrain::iteration, question.slack_frac};
    for (const GraphQuestion& question : questions)
      (question.grain == GraphGrain::automatic ? segments : quick).push_back(question);
    const std::vector<Search> of_one_clock =
        searched(one_clock, one_clock, MarginSearch::tries_of_quick_plans);
    std::vector<Search> of_quick = searched(quick, quick, MarginSearch::tries);
    std::vector<GraphQuestion> first = segments;
    for (GraphQuestion& question : first)
      question.slack_frac = target_of(question, of_one_clock, of_quick);
    std::vector<Search> of_segments = searched(segments, first, MarginSearch::tries);
    std::vector<GraphPlanOutcome> outcomes;
    auto next_quick = of_quick.begin(), next_segments = of_segments.begin();
    for (std::size_t q = 0; q < questions.size(); ++q) {
      const bool is_quick = questions[q].grain != GraphGrain::automatic;
      outcomes.push_back(std::move((is_quick ? next_quick : next_segments)->asked));
      if (!is_quick && !outcomes.back().bolder)
        outcomes.back().bolder = of_one_clock[q].asked.bolder;
      ++(is_quick ? next_quick : next_segments);
      keep_better(of_one_clock[q].asked, outcomes.back());
    }
    return outcomes;
  }

 private:
  struct Search {
    GraphPlanOutcome asked;  // in the end the answer
    std::optional<MarginSearch> margin = {};
    std::optional<GraphPlanOutcome> best = {};
  };

  // The most time that a plan of another grain which has the odds was made for; the slack itself
  // where one clock for all has the odds at once.
  static double target_of(const GraphQuestion& question, std::span<const Search> one_clock,
                          std::span<const Search> quick) {
    std::optional<double> most_frac;
    for (const std::span<const Search> searches : {one_clock, quick}) {
      for (const Search& search : searches) {
        const GraphPlanOutcome& plan = search.asked;
        if (plan.result.question.slack_frac != question.slack_frac || !plan.bolder) continue;
        most_frac = std::max(most_frac.value_or(0.0), plan.change.time_frac);
      }
    }
    return most_frac.value_or(question.slack_frac);
  }

  // @param first  what to plan for at first: the questions, or less time
  // @param tries  to plan for less time than that
  std::vector<Search> searched(std::span<const GraphQuestion> questions,
                               std::span<const GraphQuestion> first, int tries) {
    std::vector<Search> searches;
    if (questions.empty()) return searches;
    for (GraphPlanOutcome& one : played_answers(rehearsal_, planner_, first, context_)) {
      const GraphQuestion& question = questions[searches.size()];
      const double target_frac = first[searches.size()].slack_frac;
      Search& search = searches.emplace_back(Search{std::move(one)});
      answer_instead(question, search.asked);
      const auto kept_frac = appraise(question.slack_frac, search.asked);
      if (kept_frac && !has_odds(search.asked.odds_in_time, odds_frac_) &&
          search.asked.verdict.applicable)
        search.margin.emplace(target_frac, *kept_frac, question.slack_frac);
    }
    for (int i = 0; i < tries && !context_.stop_requested(); ++i) try_shorter(questions, searches);
    for (std::size_t q = 0; q < searches.size(); ++q) {
      Search& search = searches[q];
      if (!search.margin) continue;
      if (!search.best && questions[q].slack_frac >= 0.0)
        search.best = defaults_instead(search.asked);
      if (!search.best) continue;
      search.best->bolder = {search.asked.change_as_played().energy_frac,
                             *search.asked.odds_in_time};
      search.asked = std::move(*search.best);
    }
    return searches;
  }

  void try_shorter(std::span<const GraphQuestion> questions, std::vector<Search>& searches) {
    std::vector<GraphQuestion> shorter;
    std::vector<std::size_t> of;
    for (std::size_t q = 0; q < searches.size(); ++q) {
      // A plan of segments takes long to find.
      if (!searches[q].margin || questions[q].grain == GraphGrain::automatic) continue;
      const double target_frac = searches[q].margin->next_frac();
      if (!(target_frac > -1.0)) continue;
      shorter.push_back(questions[q]);
      shorter.back().slack_frac = target_frac;
      of.push_back(q);
    }
    if (shorter.empty()) return;
    std::vector<GraphPlanOutcome> tried = played_answers(rehearsal_, planner_, shorter, context_);
    for (std::size_t i = 0; i < of.size(); ++i) {
      Search& search = searches[of[i]];
      GraphPlanOutcome& one = tried[i];
      answer_instead(questions[of[i]], one);
      search.margin->tried(shorter[i].slack_frac, appraise(questions[of[i]].slack_frac, one));
      if (!one.odds_in_time || !has_odds(one.odds_in_time, odds_frac_)) continue;
      if (search.best &&
          one.change_as_played().energy_frac >= search.best->change_as_played().energy_frac)
        continue;
      search.best = std::move(one);
    }
  }

  std::vector<GraphPlanOutcome> asked_only(std::span<const GraphQuestion> questions) {
    std::vector<GraphPlanOutcome> outcomes =
        played_answers(rehearsal_, planner_, questions, context_);
    for (std::size_t q = 0; q < outcomes.size(); ++q)
      (void)appraise(questions[q].slack_frac, outcomes[q]);
    return outcomes;
  }

  // Takes the plan of one clock for all where one of finer grain, planned for less time, saves
  // less.
  void keep_better(const GraphPlanOutcome& one_clock, GraphPlanOutcome& outcome) const {
    if (!outcome.bolder || !one_clock.result.found() ||
        one_clock.change_as_played().energy_frac >= outcome.change_as_played().energy_frac)
      return;
    const GraphQuestion question = outcome.result.question;
    const double bound_j = outcome.result.lower_bound_j;
    const std::optional<BolderPlan> bolder = outcome.bolder;
    outcome = one_clock;
    outcome.bolder = bolder;
    outcome.result.question = question;
    outcome.result.lower_bound_j = bound_j;
    outcome.result.gap_frac = std::max(1.0 - bound_j / outcome.result.run.total_energy_j, 0.0);
    if (outcome.result.gap_frac > optimal_gap_frac) outcome.result.status = SolveStatus::feasible;
  }

  // Adds how far off a plan may be, and its odds of a deadline.
  // @return the change of time, as applied, that it keeps with the odds; nothing where it is late
  //         if the model is right
  std::optional<double> appraise(double slack_frac, GraphPlanOutcome& one) const {
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
    if (applied_frac > slack_frac + rounding) return std::nullopt;
    return one.interval.times.kept_with(odds_frac_) / percent + added_frac;
  }

  // A plan that was made for less time, as an answer to the question.
  void answer_instead(const GraphQuestion& question, GraphPlanOutcome& one) const {
    one.result.question = question;
    one.result.deadline_s = planner_.baseline().span_s * (1.0 + question.slack_frac);
    if (one.counted)
      one.counted->in_time = one.counted->change.time_frac <= question.slack_frac + rounding;
  }

  // The default clocks, which are in time with certainty.
  GraphPlanOutcome defaults_instead(const GraphPlanOutcome& asked) {
    GraphPlanResult kept = asked.result;
    kept.status = SolveStatus::feasible;
    kept.plan = uniform_plan(planner_.model().graph(), planner_.grid().default_clock());
    kept.run = planner_.baseline();
    kept.gap_frac = std::max(1.0 - kept.lower_bound_j / kept.run.total_energy_j, 0.0);
    GraphPlanOutcome outcome = rehearsal_.played(std::move(kept));
    outcome.change = change_against(outcome.result.run, planner_.baseline());
    (void)appraise(asked.result.question.slack_frac, outcome);
    return outcome;
  }

  static constexpr double rounding = 1e-9;  // as planners count

  GraphPlanner& planner_;
  Rehearsal rehearsal_;
  GraphPlanIntervals intervals_;
  double odds_frac_;
  const RunContext& context_;
};

}  // namespace

std::vector<GraphPlanOutcome> rehearsed_answers(const GraphModel& model, GraphPlanner& planner,
                                                const GraphModel& as_captured,
                                                std::span<const GraphQuestion> questions,
                                                double odds_frac, const RunContext& context) {
  return AnswersWithOdds(model, planner, as_captured, odds_frac, context).to(questions);
}

}  // namespace rubato
