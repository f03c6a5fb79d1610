#include <algorithm>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/terminal/screen.hpp"
#include "tools/terminal/screen_parts.hpp"

namespace rubato {

std::string status_text(SolveStatus status, std::span<const Mark> marks) {
  return std::string(has_mark(marks, MarkKind::limit_not_reached)
                         ? name_of(MarkKind::limit_not_reached)
                         : name_of(status));
}

namespace {

std::optional<Prices> prices_in(const ShownRun& run) {
  for (const ShownPlan& plan : run.plans) {
    if (const auto* cost = std::get_if<LeastCost>(&plan.goal)) return cost->prices;
  }
  return std::nullopt;
}

// How a plan is set, or why it is not.
std::string set_with(const ShownPlan& plan) {
  if (!plan.found) return "";
  if (!plan.as.verdict.applicable) return "cannot be set";
  if (!plan.as.holds) return "late";
  if (!has_odds(plan.as.odds_in_time, plan.as.odds_frac)) return "late too often";
  if (plan.setting.find("To set: nothing") != std::string::npos) return "nothing to do";
  if (plan.as.saving == Saving::unlikely) return "unlikely to save";
  if (plan.as.saving == Saving::likely) return "not known";
  const std::size_t tool = plan.setting.find("-smi");
  if (tool == std::string::npos) return "rubato apply";
  const std::size_t begin = plan.setting.rfind(' ', tool);
  return plan.setting.substr(begin + 1, tool + 4 - begin - 1);
}

Cell cell(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

Column programs(const char* key) { return {.key = key, .for_programs = true}; }
Column people(const char* key, const char* title) {
  return {.key = key, .title = title, .decimals = 1, .room = Room::needed, .for_people = true};
}

// The columns of plans; a terminal shows only those in which they differ.
std::vector<Column> plan_columns(const ShownRun& run) {
  const auto none = [&](const auto& has) { return std::ranges::none_of(run.plans, has); };
  const auto all_same = [&](const auto& value) {
    return std::ranges::all_of(
        run.plans, [&](const ShownPlan& plan) { return value(plan) == value(run.plans.front()); });
  };
  const bool same_slack = all_same([](const ShownPlan&p) { return slack_pct(p.goal); }),
             same_goal = all_same([](const ShownPlan&p) { return goal_words(p.goal); }),
             same_aggregation = all_same([](const ShownPlan&p) { return p.as.aggregation; }),
             no_odds = none([](const ShownPlan&p) { return p.as.odds_in_time.has_value(); }),
             no_sms = none([](const ShownPlan&p) { return p.as.comm_sms.has_value(); }),
             no_jitter = none([](const ShownPlan&p) { return p.jittered_s.has_value(); }),
             all_found = none([](const ShownPlan&p) { return !p.found; });
  return {programs("granularity"),
          people("plan", "one clock for"),
          {"aggregation", "", 3, same_aggregation},
          {"goal", "", 3, same_goal},
          {"slack_pct", "slack %", 1, same_slack, Room::needed},
          {"status", "", 3, all_found, Room::needed},
          programs("deadline_s"),
          programs("time_s"),
          programs("energy_j"),
          {"clocks"},
          programs("time_change_pct"),
          programs("time_change_low_pct"),
          programs("time_change_high_pct"),
          programs("time_change_expected_pct"),
          people("time", "time %"),
          programs("energy_change_pct"),
          programs("energy_change_low_pct"),
          programs("energy_change_high_pct"),
          programs("energy_change_expected_pct"),
          people("energy", "energy %"),
          {.key = "energy_range",
           .title = "90 %",
           .room = Room::detail,
           .for_people = true,
           .whole = true},
          programs("odds_in_time_pct"),
          {.key = "odds", .for_programs = no_odds, .room = Room::needed, .for_people = true},
          programs("cost"),
          {"cost_change_pct", "cost %", 1, !prices_in(run), Room::needed},
          programs("lower_bound_j"),
          programs("bound_change_pct"),
          {"gap_pct", "gap %", 3, false, Room::detail},
          programs("average_power_w"),
          programs("clock_switches"),
          {"clock_switches_per_s", "switches/s", 0, false, Room::detail},
          programs("counted_time_change_pct"),
          programs("counted_energy_change_pct"),
          programs("late_launches"),
          programs("stalled_s"),
          programs("solve_time_s"),
          {"comm_sms", "comm SMs", 0, no_sms},
          {"jitter_mean_time_s", "jittered s", 4, no_jitter},
          {"jitter_p95_time_s", "95 % below s", 4, no_jitter},
          people("set_with", "set with"),
          programs("in_time"),
          programs("notes"),
          programs("is_answer")};
}

std::vector<Cell> plan_row(const ShownRun& run, const std::optional<Prices>& prices,
                           const ShownPlan& plan, bool is_default, bool is_answer) {
  const Cost &base = run.defaults, &planned = plan.planned, &applied = plan.applied();
  const auto known = [&](double value) { return plan.found ? Cell(value) : Cell(); };
  const auto change = [&](const Cost& cost, double Cost::*of) {
    return known(change_pct(cost.*of, base.*of));
  };
  const auto interval = [&](Interval SavingInterval::*what, double Interval::*end) {
    return plan.interval ? known((*plan.interval).*what.*end) : Cell();
  };
  const auto range = as_applied(plan, base, &Cost::energy_j, &SavingInterval::energy);
  const auto cost = [&](const Cost& c) { return prices->of(c.time_s, c.energy_j, run.gpus); };
  const bool waste = std::holds_alternative<LeastWaste>(plan.goal);
  using S = SavingInterval;
  using I = Interval;
  const std::string unit(name_of(plan.as.granularity));
  return {unit,
          is_default ? "default" : unit,
          is_default ? "-" : plan.as.aggregation,
          is_default ? "default" : name_of(plan.goal),
          waste && !is_default ? Cell(slack_pct(plan.goal)) : Cell(),
          is_default ? "-" : status_text(plan.status, plan.marks),
          cell(plan.deadline_s),
          known(planned.time_s),
          known(planned.energy_j),
          plan.found ? Cell(plan.clocks) : Cell(),
          change(planned, &Cost::time_s),
          interval(&S::time, &I::low_pct),
          interval(&S::time, &I::high_pct),
          interval(&S::time, &I::median_pct),
          change(applied, &Cost::time_s),
          change(planned, &Cost::energy_j),
          interval(&S::energy, &I::low_pct),
          interval(&S::energy, &I::high_pct),
          interval(&S::energy, &I::median_pct),
          change(applied, &Cost::energy_j),
          range ? range_cell(range->low_pct, range->high_pct, 1) : Cell(),
          odds_cell(plan.as.odds_in_time),
          plan.as.odds_in_time ? Cell(odds_words(*plan.as.odds_in_time)) : Cell(),
          prices ? known(cost(planned)) : Cell(),
          prices ? known(change_pct(cost(planned), cost(base))) : Cell(),
          cell(plan.bound_j),
          plan.bound_j ? Cell(change_pct(*plan.bound_j, base.energy_j)) : Cell(),
          plan.gap_frac ? Cell(percent * *plan.gap_frac) : Cell(),
          known(planned.energy_j / planned.time_s),
          plan.found ? Cell(static_cast<std::int64_t>(plan.clock_switches)) : Cell(),
          known(plan.clock_switches / planned.time_s),
          plan.counted ? change(*plan.counted, &Cost::time_s) : Cell(),
          plan.counted ? change(*plan.counted, &Cost::energy_j) : Cell(),
          cell(plan.late_launches),
          cell(plan.stalled_s),
          cell(plan.solve_time_s),
          cell(plan.as.comm_sms),
          plan.jittered_s ? Cell(plan.jittered_s->first) : Cell(),
          plan.jittered_s ? Cell(plan.jittered_s->second) : Cell(),
          is_default ? Cell() : Cell(set_with(plan)),
          plan.found ? Cell(is_default || plan.as.holds) : Cell(),
          kinds_text(plan.marks),
          is_answer};
}

}  // namespace

OutputTable plans_table(const ShownRun& run, bool all) {
  const NamedPlans named(run);
  const std::optional<Prices> prices = prices_in(run);
  OutputTable table(plan_columns(run));
  ShownPlan defaults{.as = {},
                     .goal = {},
                     .found = true,
                     .planned = run.defaults,
                     .clocks = run.default_clock,
                     .marks = run.marks};
  table.add_row(plan_row(run, prices, defaults, true, false));
  for (std::size_t i = 0; i < run.plans.size(); ++i) {
    const ShownPlan& plan = run.plans[i];
    const bool beside = named.headline == nullptr || plan.as.want == named.headline->want;
    const auto answer = std::ranges::find(named.answers, plan.as.want, &PlanAnswer::want);
    const bool unanswered = !answer->plan && !answer->keeps_default;
    if (all || beside || unanswered || named.is_answer(i))
      table.add_row(plan_row(run, prices, plan, false, named.is_answer(i)));
  }
  return table;
}

OutputTable answers_table(const ShownRun& run) {
  OutputTable table({{"want"},
                     {"is_headline"},
                     {"plan"},
                     {"granularity"},
                     {"set_to"},
                     {"energy_change_pct"},
                     {"time_change_pct"},
                     {"known"}});
  const NamedPlans named(run);
  for (const PlanAnswer& answer : named.answers) {
    if (!answer.plan && !answer.keeps_default) continue;
    const ShownPlan* plan = answer.plan ? &run.plans[*answer.plan] : nullptr;
    const Cost& applied = plan == nullptr ? run.defaults : plan->applied();
    table.add_row({answer.want, std::int64_t{&answer == named.headline},
                   answer.plan ? Cell(static_cast<std::int64_t>(*answer.plan)) : Cell(),
                   std::string(name_of(plan == nullptr ? Granularity::run : plan->as.granularity)),
                   plan == nullptr ? run.default_clock : plan->clocks,
                   change_pct(applied.energy_j, run.defaults.energy_j),
                   change_pct(applied.time_s, run.defaults.time_s), std::int64_t{answer.known}});
  }
  return table;
}

OutputTable notes_table(const ShownRun& run) {
  OutputTable table({{"granularity"},
                     {"aggregation", "", 3, true},
                     {.key = "goal", .for_programs = true},
                     {"slack_pct", "slack %", 1},
                     {"note"},
                     {"reason"}});
  const auto add = [&](const std::string& granularity, const std::string& aggregation,
                       const std::string& goal, const Cell& slack, const std::vector<Mark>& marks) {
    for (const Mark& mark : marks)
      table.add_row(
          {granularity, aggregation, goal, slack, std::string(name_of(mark.kind)), mark.reason});
  };
  add("run", "-", "default", Cell(), run.marks);
  for (const ShownPlan& plan : run.plans) {
    const bool waste = std::holds_alternative<LeastWaste>(plan.goal);
    add(std::string(name_of(plan.as.granularity)), plan.as.aggregation, name_of(plan.goal),
        waste ? Cell(slack_pct(plan.goal)) : Cell(), plan.marks);
  }
  return table;
}

}  // namespace rubato
