#include "tools/terminal/exploration_answer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/version.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/answers.hpp"
#include "tools/terminal/exploration_tables.hpp"

namespace rubato {

namespace {

// What the times of kernels rest on, as shares of the default time in percent.
std::array<double, coefficient_sources> coverage_pct(const Exploration& found) {
  std::array<double, coefficient_sources> share_pct{};
  for (std::size_t k = 0; k < found.coefficient_sources.size(); ++k)
    share_pct[static_cast<std::size_t>(found.coefficient_sources[k])] +=
        percent * found.baseline.by_kernel[k].time_s / found.baseline.total.time_s;
  return share_pct;
}

std::string coverage_text(const Exploration& found) {
  const std::array<double, coefficient_sources> share_pct = coverage_pct(found);
  const auto of = [&](CoefficientSource source) {
    return share_pct[static_cast<std::size_t>(source)];
  };
  return shares_text({{of(CoefficientSource::measured), "measured"},
                      {of(CoefficientSource::anchored), "anchored (captured time, modelled split)"},
                      {of(CoefficientSource::scaled), "scaled from other shapes"},
                      {of(CoefficientSource::derived), "derived from FLOPs and bytes"},
                      {of(CoefficientSource::guessed), "guessed"}});
}

std::string change_text(const PlanResult& plan, const Exploration& found) {
  const Totals &total = plan.sim.total, &base = found.baseline.total;
  const auto interval = [&](Interval SavingInterval::*of) {
    return plan.interval ? std::optional((*plan.interval).*of) : std::nullopt;
  };
  std::string text = fmt::format(
      "energy {}, time {}",
      change_words(change_pct(total.energy_j, base.energy_j), interval(&SavingInterval::energy)),
      change_words(change_pct(total.time_s, base.time_s), interval(&SavingInterval::time)));
  if (plan.counted) {
    text += fmt::format("; changes of clock counted: energy {} %, time {} %",
                        format_signed(change_pct(plan.counted->energy_j, base.energy_j), 2),
                        format_signed(change_pct(plan.counted->time_s, base.time_s), 2));
  }
  return text + doubts_text(std::array{&found.baseline_marks, &plan.marks}) + '\n';
}

// What a plan is the best of: ", in at most 2 % more time, with 93 % odds".
std::string asked_text(const PlanResult& plan) {
  const Goal& goal = plan.question.goal;
  if (const auto* waste = std::get_if<LeastWaste>(&goal))
    return fmt::format(", in at most {:.4g} % more time{}", percent * waste->slack_frac,
                       odds_words(plan.odds_in_time));
  if (std::holds_alternative<LeastCost>(goal)) return ", of least cost";
  return fmt::format(", goal {}", name_of(goal));
}

// Changes of clock; empty where a plan has none.
std::string changes_text(const ExplorationInput& input, const PlanResult& plan) {
  const Totals& total = plan.sim.total;
  if (total.clock_switches == 0) return "";
  const SwitchModel switching = switching_of(input, plan.question);
  return fmt::format(", {:.0f} changes/s{}", switches_per_s(total),
                     switching.is_free()            ? " taken as free"
                     : plan.question.counts_changes ? ", each " + change_text(switching)
                                                    : "");
}

bool asks_for_time(const PlanResult& plan) {
  return std::holds_alternative<LeastWaste>(plan.question.goal);
}

// What is said where no plan was found: how fast the fastest plan would be.
std::string fastest_of_fronts(const Exploration& found) {
  const Front* fastest = nullptr;
  for (const Front& front : found.fronts) {
    if (front.points.empty()) continue;
    if (fastest == nullptr || front.points.front().time_s < fastest->points.front().time_s)
      fastest = &front;
  }
  if (fastest == nullptr) return "No plan is in time.\n";
  const Totals& base = found.baseline.total;
  const FrontPoint& point = fastest->points.front();
  return fmt::format("No plan is in time; the fastest, per {}: energy {} %, time {} %\n",
                     name_of(fastest->granularity),
                     format_signed(change_pct(point.energy_j, base.energy_j), 2),
                     format_signed(change_pct(point.time_s, base.time_s), 2));
}

// Says that no plan is in time or budget. Where all asked for time, it names the fastest plan.
std::string no_plan(const Exploration& found) {
  if (!std::ranges::all_of(found.plans, asks_for_time)) {
    return std::ranges::any_of(found.plans, asks_for_time)
               ? "No plan keeps within the time or budget asked for.\n"
               : "No plan keeps within the budget.\n";
  }
  const PlanResult* fastest = nullptr;
  for (const PlanResult& plan : found.plans) {
    if (!plan.found()) continue;
    if (fastest == nullptr || plan.sim.total.time_s < fastest->sim.total.time_s) fastest = &plan;
  }
  if (fastest == nullptr) return fastest_of_fronts(found);
  return fmt::format("No plan is in time; the fastest, per {}: {}\n  {}",
                     name_of(fastest->question.granularity),
                     clock_words(clocks_text(found.grid, fastest->plan.clock_of_site)),
                     change_text(*fastest, found));
}

}  // namespace

std::string exploration_heading(std::string_view trace, const ExplorationInput& input,
                                const Exploration& found) {
  const Totals& base = found.baseline.total;
  return fmt::format(
      "{} on {}, {} W, {} clocks; times of kernels: {}\nDefault clocks ({}): {}, {:.5g} J, "
      "{:.1f} W{}\n",
      trace, input.spec.title,
      format_number(input.power_limit_w.value_or(input.spec.power_limit.limit_w)),
      found.grid.size(), coverage_text(found),
      clock_words(found.grid.label(found.grid.default_clock())), time_text(base.time_s),
      base.energy_j, base.average_power_w(),
      input.host_power_w > 0.0
          ? fmt::format(", {} of them the rest of the node", format_number(input.host_power_w))
          : "");
}

OutputTable run_table(std::string_view trace, const ExplorationInput& input,
                      const Exploration& found) {
  OutputTable table({{"program_version"},
                     {"trace"},
                     {"gpu"},
                     {"power_limit_w"},
                     {"host_power_w"},
                     {"price_per_kwh"},
                     {"price_per_gpu_hour"},
                     {"pue"},
                     {"clocks"},
                     {"default_clock"},
                     {"default_time_s"},
                     {"default_energy_j"},
                     {"measured_pct"},
                     {"anchored_pct"},
                     {"scaled_pct"},
                     {"derived_pct"},
                     {"guessed_pct"}});
  const std::optional<Prices> prices = asked_prices(found);
  const auto price = [&](double Prices::*value) {
    return prices ? Cell((*prices).*value) : Cell();
  };
  const std::array<double, coefficient_sources> share_pct = coverage_pct(found);
  const auto share = [&](CoefficientSource source) {
    return share_pct[static_cast<std::size_t>(source)];
  };
  table.add_row({std::string(program_version()), std::string(trace), input.spec.name,
                 input.power_limit_w.value_or(input.spec.power_limit.limit_w), input.host_power_w,
                 price(&Prices::per_kwh), price(&Prices::per_gpu_hour), price(&Prices::pue),
                 static_cast<std::int64_t>(found.grid.size()),
                 found.grid.label(found.grid.default_clock()), found.baseline.total.time_s,
                 found.baseline.total.energy_j, share(CoefficientSource::measured),
                 share(CoefficientSource::anchored), share(CoefficientSource::scaled),
                 share(CoefficientSource::derived), share(CoefficientSource::guessed)});
  return table;
}

namespace {

// What plans of a goal are best by: money where it was asked for, else energy.
struct Measure {
  std::optional<Prices> prices;

  [[nodiscard]] bool is_of(const Goal& goal) const {
    return std::holds_alternative<LeastCost>(goal) == prices.has_value();
  }
  [[nodiscard]] double operator()(const Totals& total) const {
    return prices ? prices->of(total.time_s, total.energy_j) : total.energy_j;
  }
};

std::string nothing_gained(const Exploration& found, const Measure& measure) {
  if (measure.prices) return "No plan costs less than the default clocks: keep them.\n";
  return std::ranges::all_of(found.plans, asks_for_time)
             ? fmt::format("No plan that is in time{} saves energy: keep the default clocks.\n",
                           asked_odds_words(found.odds_frac))
             : "No plan that meets its goal saves energy: keep the default clocks.\n";
}

// "cost -2.31 %, " before what the plan takes; empty where energy is the measure.
std::string cost_text(const Totals& total, const Totals& base, const Measure& measure) {
  if (!measure.prices) return "";
  return fmt::format("cost {} %, ", format_signed(change_pct(measure(total), measure(base)), 2));
}

// @param tie  the plan equals the default clocks to the last digit shown, so these stay
std::string one_clock_text(const ExplorationInput& input, const Exploration& found,
                           const PlanResult& plan, bool tie, const Measure& measure) {
  const ClockId chosen = plan.plan.clock_of_site.front(), usual = found.grid.default_clock();
  if (tie && chosen != usual) {
    return fmt::format("One clock for all{}: {}, no other saves anything\n  {}", asked_text(plan),
                       clock_words(found.grid.label(usual)),
                       one_clock_line(input.spec, found.grid[usual]));
  }
  return fmt::format("One clock for all{}: {}\n  {}{}  {}", asked_text(plan),
                     clock_words(found.grid.label(chosen)),
                     cost_text(plan.sim.total, found.baseline.total, measure),
                     change_text(plan, found), one_clock_line(input.spec, found.grid[chosen]));
}

bool counts_changes(const Exploration& found) {
  return std::ranges::any_of(found.plans,
                             [](const PlanResult& plan) { return plan.question.counts_changes; });
}

// The plan that would be better than the answer if changes of clock were free.
// @param want  of the answer; empty: of any plan
// @param best  energy or cost that it must be below
std::string free_plan_text(const Exploration& found, const Answers<PlanResult>& answers,
                           const Measure& measure, std::string_view want, double best) {
  const PlanResult* free = nullptr;
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const PlanResult& plan = found.plans[i];
    if (!measure.is_of(plan.question.goal) || !plan.counted) continue;
    if (!want.empty() && answers.contenders[i].want != want) continue;
    if (measure(plan.sim.total) >= best) continue;
    if (free == nullptr || measure(plan.sim.total) < measure(free->sim.total)) free = &plan;
  }
  if (free == nullptr) return "";
  const Totals& base = found.baseline.total;
  const auto takes = [&](const Totals& total) {
    return fmt::format("{}energy {} %", cost_text(total, base, measure),
                       format_signed(change_pct(total.energy_j, base.energy_j), 2));
  };
  return fmt::format(
      "Per {}: {} if changes of clock were free; with what they take {}, time {} %.\n{}",
      name_of(free->question.granularity), takes(free->sim.total), takes(*free->counted),
      format_signed(change_pct(free->counted->time_s, base.time_s), 2),
      std::holds_alternative<LeastWaste>(free->question.goal) && !counts_changes(found)
          ? "  To plan with them: --granularity segment\n"
          : "");
}

// Of the plans that want what the answer wants: the best one with one clock. Null: there is none.
const PlanResult* best_one_clock(const Answers<PlanResult>& answers, std::string_view want) {
  const Contender* best = nullptr;
  for (const Contender& plan : answers.contenders) {
    if (plan.want != want || !plan.holds || plan.clocks != 1 ||
        !has_odds(plan.odds_in_time, plan.odds_frac))
      continue;
    if (best == nullptr || plan.objective_frac < best->objective_frac) best = &plan;
  }
  return best == nullptr
             ? nullptr
             : &answers.plans[static_cast<std::size_t>(best - answers.contenders.data())];
}

// The answer to one kind of goal, and the best clock for all beside it.
std::string answer_text(const ExplorationInput& input, const Exploration& found,
                        const Answers<PlanResult>& answers, const Measure& measure,
                        std::string_view db) {
  const Totals& base = found.baseline.total;
  std::vector<PlanAnswer> of_measure;
  for (const PlanAnswer& answer : answers.answers) {
    const auto plan = std::ranges::find(answers.contenders, answer.want, &Contender::want);
    if (measure.is_of(
            found.plans[static_cast<std::size_t>(plan - answers.contenders.begin())].question.goal))
      of_measure.push_back(answer);
  }
  const PlanAnswer* named = headline(answers.contenders, of_measure);
  if (named == nullptr) {
    const std::string free = free_plan_text(found, answers, measure, "", measure(base));
    return (free.empty() ? no_plan(found)
                         : fmt::format("No plan is in time{} once changes of clock are counted.\n",
                                       asked_odds_words(found.odds_frac))) +
           free;
  }
  const PlanResult* best = answers.plan(*named);
  const Totals& reached = best == nullptr ? base : best->counted ? *best->counted : best->sim.total;
  const std::string free = free_plan_text(found, answers, measure, named->want,
                                          measure(reached) - alike_objective_frac * measure(base));
  if (best == nullptr)
    return nothing_gained(found, measure) + bolder_line(answers.boldest(named->want)) + free;
  const PlanResult* one_clock = best_one_clock(answers, named->want);
  std::string text;
  if (one_clock != nullptr) {
    const Totals& one = one_clock->sim.total;
    const bool tie = std::abs(measure(one) - measure(base)) <= least_saving_frac * measure(base);
    text += one_clock_text(input, found, *one_clock, tie && best != one_clock, measure);
  }
  if (best == one_clock) return text + bolder_line(best->bolder) + free;
  return text +
         fmt::format("{}{}: {}{}\n  {}{}{}", per_text(name_of(best->question.granularity)),
                     asked_text(*best),
                     clock_words(clocks_text(found.grid, best->plan.clock_of_site)),
                     changes_text(input, *best), cost_text(best->sim.total, base, measure),
                     change_text(*best, found),
                     play_lines(name_of(best->question.granularity), db,
                                std::holds_alternative<LeastCost>(best->question.goal))) +
         bolder_line(best->bolder) + free;
}

}  // namespace

std::string exploration_answer(const ExplorationInput& input, const Exploration& found,
                               std::string_view db) {
  const std::optional<Prices> prices = asked_prices(found);
  const bool only_cost = std::ranges::all_of(found.plans, [](const PlanResult& plan) {
    return std::holds_alternative<LeastCost>(plan.question.goal);
  });
  const Answers<PlanResult> answers = answers_of(found);
  std::string text;
  if (!prices || !only_cost) text += answer_text(input, found, answers, {}, db);
  if (!prices) return text;
  const Totals& base = found.baseline.total;
  return text +
         fmt::format(
             "Least cost at {}: a second more pays where it saves more J.\n"
             "1000 steps of one GPU at the default clocks cost {:.4g}.\n",
             prices_text(*prices), 1000.0 * prices->of(base.time_s, base.energy_j)) +
         answer_text(input, found, answers, {prices}, db);
}

std::string shares_text(std::initializer_list<std::pair<double, std::string_view>> parts) {
  constexpr double shown_pct = 0.05;
  std::string text;
  for (const auto& [part_pct, words] : parts) {
    if (part_pct < shown_pct) continue;
    text += fmt::format("{}{:.1f} % {}", text.empty() ? "" : ", ", part_pct, words);
  }
  return text;
}

std::string odds_words(const std::optional<double>& odds_in_time) {
  // Draws are some hundreds: none of them late is no certainty.
  return !odds_in_time ? ""
                       : fmt::format(", with {:.0f} % odds",
                                     std::floor(percent * std::min(*odds_in_time, 0.99)));
}

std::string asked_odds_words(double odds_frac) {
  return odds_frac > 0.0 ? fmt::format(" with {:.4g} % odds", percent * odds_frac) : "";
}

std::string bolder_line(const std::optional<BolderPlan>& bolder) {
  if (!bolder || bolder->energy_frac > -least_saving_frac) return "";
  return fmt::format(
      "Planned for all of that time: energy {} %, but in time with {:.0f} % odds only "
      "(--odds 0)\n",
      format_signed(percent * bolder->energy_frac, 2), percent * bolder->odds_in_time);
}

std::string clock_words(std::string_view label) {
  const std::size_t slash = label.find('/');
  if (label == "auto/auto") return "the driver's choice";
  if (slash == std::string_view::npos) return std::string(label);
  const std::string_view mem = label.substr(0, slash), core = label.substr(slash + 1);
  return fmt::format("memory {}, core {}{}", mem, core, core == "auto" ? "" : " MHz");
}

std::string per_text(std::string_view granularity) {
  return granularity == "segment" ? "Per segment (run of launches)"
                                  : fmt::format("Per {}", granularity);
}

}  // namespace rubato
