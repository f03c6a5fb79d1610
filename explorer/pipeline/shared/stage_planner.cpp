#include "explorer/pipeline/shared/stage_planner.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rubato {

StagePlanner::StagePlanner(const PipelinePlanner& all, const PlannerOptions& options,
                           std::span<const Granularity> granularities, const RunContext& context)
    : all_(all), asked_(granularities.begin(), granularities.end()) {
  if (asked_.empty()) return;
  // A GPU holds one stage, so one of the two is searched.
  const Granularity finest = std::ranges::max(asked_);
  for (const Granularity one : {Granularity::run, Granularity::gpu, Granularity::stage,
                                Granularity::pass, Granularity::kernel}) {
    const bool asked = std::ranges::find(asked_, one) != asked_.end();
    if (asked || (one < finest && one != Granularity::gpu)) searched_.push_back(one);
  }
  const bool mixed = std::ranges::any_of(all.work().types, [](const PassType& type) {
    return std::ranges::any_of(type.options, &ClockOption::mixed);
  });
  if (mixed) {
    uniform_work_ = with_options(
        all.work(), [](std::size_t, const ClockOption& option) { return !option.mixed; });
    uniform_.emplace(uniform_work_->work, options, context);
  }
  shared_.emplace(planner(Granularity::pass));
}

const PipelinePlanner& StagePlanner::planner(Granularity granularity) const {
  return granularity == Granularity::kernel || !uniform_ ? all_ : *uniform_;
}

std::vector<PipelineResult> StagePlanner::plan(Granularity granularity,
                                               std::span<const double> deadlines_s,
                                               const RunContext& context) const {
  std::vector<PipelineResult> results =
      granularity < Granularity::pass
          ? shared_->plan(granularity, deadlines_s, context)
          : planner(granularity).plan(deadlines_s, AfterEnd::go_on, context);
  for (PipelineResult& result : results) {
    result.granularity = granularity;
    if (&planner(granularity) == &all_) continue;
    for (std::size_t p = 0; p < result.plan.option_of_pass.size(); ++p) {
      OptionId& option = result.plan.option_of_pass[p];
      option = uniform_work_->options[index(all_.work().type_of_pass[p])][index(option)];
    }
  }
  return results;
}

// The coarser plan where it takes less energy, or has the odds that the result lacks.
PipelineResult StagePlanner::cheaper_of(PipelineResult result,
                                        const PipelineResult& coarser) const {
  if (!coarser.found()) return result;
  const bool has = result.found() && has_odds(result.odds_in_time, result.odds_frac),
             coarser_has = has_odds(coarser.odds_in_time, coarser.odds_frac);
  if (has && !coarser_has) return result;
  PipelineResult other = result;
  if (!has && coarser_has) other.plan = {};  // so that anything is cheaper
  other = all_.cheaper_of(std::move(other), coarser.plan);
  if (other.plan.option_of_pass != coarser.plan.option_of_pass) return result;
  if (!has && coarser_has && result.found() && result.energy_j < other.energy_j)
    other.bolder = {result.energy_j / all_.baseline().energy_j - 1.0, *result.odds_in_time};
  if (!other.bolder) other.bolder = coarser.bolder;
  other.odds_in_time = coarser.odds_in_time;
  other.interval = coarser.interval;
  return other;
}

std::vector<std::vector<PipelineResult>> StagePlanner::plans_with_odds(
    const PipelineIntervals* intervals, std::span<const double> deadlines_s, double odds_frac,
    const RunContext& context) const {
  std::map<Granularity, std::vector<PipelineResult>> found;
  for (const Granularity granularity : searched_) {
    std::vector<PipelineResult> results = plan_with_odds(
        all_, [&](std::span<const double> times_s) { return plan(granularity, times_s, context); },
        intervals, deadlines_s, odds_frac, context);
    for (const auto& coarser : found) {
      for (std::size_t d = 0; d < results.size(); ++d)
        results[d] = cheaper_of(std::move(results[d]), coarser.second[d]);
    }
    found.emplace(granularity, std::move(results));
  }
  std::vector<std::vector<PipelineResult>> asked;
  for (const Granularity granularity : asked_) asked.push_back(found.at(granularity));
  return asked;
}

std::vector<PipelineResult> StagePlanner::plans_of_goal(const Goal& goal, const PlanJudge& judge,
                                                        const RunContext& context) const {
  std::vector<PipelineResult> found;  // shape [searched_]
  for (const Granularity granularity : searched_) {
    const bool one_clock = granularity == Granularity::run;
    PipelineResult& result = found.emplace_back(plan_of_goal(
        planner(granularity), goal, judge,
        [&](std::span<const double> times_s) { return plan(granularity, times_s, context); },
        one_clock ? shared_->times_of_one_clock() : std::vector<double>{}, found, context));
    result.granularity = granularity;
    if (one_clock && result.found()) {
      result.status = SolveStatus::optimal;
      result.gap_frac = 0.0;
    }
  }
  std::vector<PipelineResult> asked;
  for (const Granularity granularity : asked_)
    asked.push_back(*std::ranges::find(found, granularity, &PipelineResult::granularity));
  return asked;
}

}  // namespace rubato
