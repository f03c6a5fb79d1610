#include "explorer/plan/answer.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr double totals_rounding = 1e-9;  // sums of launches differ in the last digits

bool keeps_goal(const Goal& goal, const Cost& total, const Cost& defaults) {
  const auto within = [](double value, double most) {
    return value <= most * (1.0 + totals_rounding);
  };
  if (const auto* waste = std::get_if<LeastWaste>(&goal)) {
    return within(total.time_s,
                  (1.0 + waste->slack_frac + waste->tolerance_frac) * defaults.time_s);
  }
  const auto* time = std::get_if<LeastTime>(&goal);
  return time == nullptr || (within(total.energy_j, time->max_energy_j.value_or(total.energy_j)) &&
                             within(total.energy_j, time->max_average_power_w
                                                        ? *time->max_average_power_w * total.time_s
                                                        : total.energy_j));
}

// One clock for all is that of a run, whatever shared it.
Granularity fineness_of(const Contender& plan) {
  return plan.clocks == 1 && plan.clock_changes == 0 ? Granularity::run : plan.granularity;
}

// Of plans as fine as each other, the simplest of those alike to the best. Null if there is none.
const Contender* simplest_of(std::span<const Contender* const> plans, Granularity fineness) {
  double least_frac = std::numeric_limits<double>::infinity();
  for (const Contender* plan : plans) {
    if (fineness_of(*plan) == fineness) least_frac = std::min(least_frac, plan->objective_frac);
  }
  const auto order = [](const Contender* plan) {
    return std::tuple(plan->clock_changes, plan->clocks, plan->granularity,
                      plan->aggregation != "global", plan->comm_sms.has_value(),
                      plan->objective_frac);
  };
  const Contender* best = nullptr;
  for (const Contender* plan : plans) {
    if (fineness_of(*plan) != fineness || plan->objective_frac > least_frac + alike_objective_frac)
      continue;
    if (best == nullptr || order(plan) < order(best)) best = plan;
  }
  return best;
}

// Among plans of one want. @return nothing: the default clocks, or no plan
const Contender* best_rival(std::vector<const Contender*> plans, bool default_holds) {
  constexpr double enough = 0.9, infinity = std::numeric_limits<double>::infinity();
  double within_fit_frac = default_holds ? 0.0 : -infinity;  // saved
  for (const Contender* plan : plans) {
    if (plan->fitted) within_fit_frac = std::max(within_fit_frac, 1.0 - plan->objective_frac);
  }
  std::erase_if(plans, [&](const Contender* plan) {
    return !plan->fitted && within_fit_frac >= enough * (1.0 - plan->objective_frac);
  });
  const Contender* named = nullptr;
  double named_frac = default_holds ? 1.0 : infinity;  // objective of `named`
  for (const Granularity fineness : granularities) {
    const Contender* best = simplest_of(plans, fineness);
    const double worth_frac = fineness == Granularity::run ? least_saving_frac : finer_saving_frac;
    if (best == nullptr || best->objective_frac > named_frac - worth_frac) continue;
    named = best;
    named_frac = best->objective_frac;
  }
  return named;
}

}  // namespace

std::string want_text(const Goal& goal) {
  std::string text = name_of(goal);
  const auto add = [&](std::string_view word, double value) {
    text += fmt::format(" {}{}", word, format_number(value));
  };
  if (const auto* waste = std::get_if<LeastWaste>(&goal)) {
    // Nine digits: a slack that a deadline stands for has rounding errors.
    if (waste->slack_frac != 0.0) text += fmt::format(" {:.9g}", percent * waste->slack_frac);
    if (waste->tolerance_frac != 0.0)
      text += fmt::format(" + {:.9g}", percent * waste->tolerance_frac);
  } else if (const auto* time = std::get_if<LeastTime>(&goal)) {
    if (time->max_energy_j) add("J ", *time->max_energy_j);
    if (time->max_average_power_w) add("W ", *time->max_average_power_w);
  } else if (const auto* cost = std::get_if<LeastCost>(&goal)) {
    for (const double price : {cost->prices.per_kwh, cost->prices.per_gpu_hour, cost->prices.pue})
      add("", price);
  }
  return text;
}

double value_of_goal(const Goal& goal, const Cost& total, double gpus) {
  const double time_s = total.time_s, energy_j = total.energy_j;
  if (std::holds_alternative<LeastEdp>(goal)) return energy_j * time_s;
  if (std::holds_alternative<LeastEd2p>(goal)) return energy_j * time_s * time_s;
  if (std::holds_alternative<LeastTime>(goal)) return time_s;
  if (const auto* cost = std::get_if<LeastCost>(&goal))
    return cost->prices.of(time_s, energy_j, gpus);
  return energy_j;
}

Contender contender(const Goal& goal, const std::optional<Cost>& applied, const Cost& defaults,
                    double gpus) {
  const auto* waste = std::get_if<LeastWaste>(&goal);
  Contender plan{.want = want_text(goal),
                 .slack_frac = waste != nullptr ? waste->slack_frac : 0.0,
                 .default_holds = keeps_goal(goal, defaults, defaults)};
  if (!applied) return plan;
  plan.holds = keeps_goal(goal, *applied, defaults);
  plan.objective_frac = value_of_goal(goal, *applied, gpus) / value_of_goal(goal, defaults, gpus);
  return plan;
}

Saving saving_of(double low, double expected, double high) noexcept {
  if (low >= 0.0 || high < 0.0) return Saving::known;
  // Quantiles of a Gaussian, in standard deviations.
  constexpr double three_in_four = 0.6745, end_of_90_pct = 1.6449;
  return -expected * end_of_90_pct >= three_in_four * (high - expected) ? Saving::likely
                                                                        : Saving::unlikely;
}

std::vector<PlanAnswer> choose_answers(std::span<const Contender> plans) {
  std::vector<PlanAnswer> answers;
  for (const Contender& first : plans) {
    if (std::ranges::find(answers, first.want, &PlanAnswer::want) != answers.end()) continue;
    PlanAnswer& answer = answers.emplace_back(PlanAnswer{.want = first.want});
    std::array<std::vector<const Contender*>, 2> rivals;  // of likely saving: second
    for (const Contender& plan : plans) {
      if (plan.want != first.want || !plan.holds || !plan.verdict.applicable ||
          !has_odds(plan.odds_in_time, plan.odds_frac))
        continue;
      if (!first.default_holds || plan.saving == Saving::known)
        rivals[0].push_back(&plan);
      else if (plan.saving == Saving::likely)
        rivals[1].push_back(&plan);
    }
    const Contender* best = best_rival(rivals[0], first.default_holds);
    if (best == nullptr) best = best_rival(rivals[1], first.default_holds);
    if (best != nullptr) answer.plan = static_cast<std::size_t>(best - plans.data());
    answer.keeps_default = best == nullptr && first.default_holds;
    answer.known = best == nullptr || best->saving == Saving::known;
  }
  return answers;
}

const PlanAnswer* headline(std::span<const Contender> plans, std::span<const PlanAnswer> answers) {
  // Strict and relaxed waste are one goal.
  const auto goal = [](const Contender& plan) {
    const std::string_view name = std::string_view(plan.want).substr(0, plan.want.find(' '));
    return names_waste(name) ? strict_waste : name;
  };
  const PlanAnswer* best = nullptr;
  const Contender* of_best = nullptr;
  for (const PlanAnswer& answer : answers) {
    if (!answer.plan && !answer.keeps_default) continue;
    const Contender& plan = *std::ranges::find(plans, answer.want, &Contender::want);
    const bool takes = of_best == nullptr ||
                       (goal(plan) == goal(*of_best) && plan.slack_frac < of_best->slack_frac);
    if (takes) std::tie(best, of_best) = std::tuple(&answer, &plan);
  }
  return best;
}

}  // namespace rubato
