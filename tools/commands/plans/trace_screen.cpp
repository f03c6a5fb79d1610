#include "tools/commands/plans/trace_screen.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/answers.hpp"

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

std::string planned_text(const std::string& work, const ExplorationInput& input,
                         const Exploration& found) {
  const Totals& base = found.baseline.total;
  return fmt::format(
      "{} on {}, {} W, {} clocks: {}, {:.5g} J and {:.1f} W at the default clocks ({}){}", work,
      input.spec.title, format_number(input.power_limit_w.value_or(input.spec.power_limit.limit_w)),
      found.grid.size(), time_text(base.time_s), base.energy_j, base.average_power_w(),
      clock_words(found.grid.label(found.grid.default_clock())),
      input.host_power_w > 0.0
          ? fmt::format(", {} W of them the rest of the node", format_number(input.host_power_w))
          : "");
}

double share_pct(const Exploration& found, CoefficientSource source) {
  return coverage_pct(found)[static_cast<std::size_t>(source)];
}

bool any_changes(const Exploration& found) {
  return std::ranges::any_of(found.plans, [](const PlanResult& plan) {
    return plan.sim.total.clock_switches > 0 || plan.counted;
  });
}

// What a change takes where plans are played.
SwitchModel played_switching(const ExplorationInput& input) {
  return input.switching.is_free() ? switch_model(input.spec) : input.switching;
}

std::string rests_on_text(const ExplorationInput& input, const Exploration& found) {
  const auto of = [&](CoefficientSource source) { return share_pct(found, source); };
  std::string text =
      input.measured
          ? "times and energies of the table"
          : "times of kernels: " +
                shares_text(
                    {{of(CoefficientSource::measured), "measured"},
                     {of(CoefficientSource::anchored), "anchored (captured time, modelled split)"},
                     {of(CoefficientSource::scaled), "scaled from other shapes"},
                     {of(CoefficientSource::derived), "derived from FLOPs and bytes"},
                     {of(CoefficientSource::guessed), "guessed"}});
  if (any_changes(found))
    text += fmt::format("; a switch takes {}", change_text(played_switching(input)));
  return text;
}

std::string next_text(const ExplorationInput& input, const Exploration& found) {
  constexpr double most_pct = 50.0;
  const double known =
      share_pct(found, CoefficientSource::measured) + share_pct(found, CoefficientSource::anchored);
  if (!input.measured && known < most_pct)
    return fmt::format("profile one step on {} and explore that file", input.spec.title);
  if (any_changes(found) && !played_switching(input).guess.empty())
    return "how long a switch takes: sudo -E rubato latency, then --switching latency=...";
  if (!input.measured && share_pct(found, CoefficientSource::anchored) > most_pct)
    return "a sweep of the kernels at several clocks (rubato capture), for rubato calibrate";
  return "";
}

// The clock of each pass, where each has one; else how many there are.
std::string clocks_in_words(const ExplorationInput& input, const Exploration& found,
                            const PlanResult& plan) {
  std::map<Pass, std::set<ClockId>> by_pass;
  const std::vector<Site> launches = sites(input.trace, plan.plan);
  for (std::size_t i = 0; i < launches.size(); ++i)
    by_pass[input.trace.kernels[index(launches[i].kernel)].pass].insert(plan.plan.clock_of_site[i]);
  std::string text;
  for (const auto& [pass, clocks] : by_pass) {
    if (clocks.size() > 1 || by_pass.size() < 2)
      return fmt::format("{}, one per {}", clocks_text(found.grid, plan.plan.clock_of_site),
                         name_of(plan.question.granularity));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(pass),
                        found.grid.label(*clocks.begin()));
  }
  return text;
}

std::string setting_of(const ExplorationInput& input, const Exploration& found,
                       const PlanResult& plan, const std::string& db,
                       const std::string& plan_file) {
  const ClockId first = plan.plan.clock_of_site.front();
  if (std::ranges::all_of(plan.plan.clock_of_site, [&](ClockId c) { return c == first; }))
    return fmt::format("{}\n {}", clock_words(found.grid.label(first)),
                       one_clock_line(input.spec, found.grid[first]));
  const Totals& total = plan.sim.total;
  return fmt::format(
      "{}; {:.2g} switches/s{}\n{}", clocks_in_words(input, found, plan),
      static_cast<double>(total.clock_switches) / total.time_s,
      switching_of(input, plan.question).is_free() && !plan.counted ? ", taken as free" : "",
      play_text(name_of(plan.question.granularity), plan.question.goal, db, plan_file));
}

// What is said where no plan was found: how fast the fastest plan would be.
std::string fastest_text(const Exploration& found) {
  const Front* fastest = nullptr;
  for (const Front& front : found.fronts) {
    if (front.points.empty()) continue;
    if (fastest == nullptr || front.points.front().time_s < fastest->points.front().time_s)
      fastest = &front;
  }
  if (fastest == nullptr) return "";
  const Totals& base = found.baseline.total;
  const FrontPoint& point = fastest->points.front();
  return fmt::format("nothing; the fastest plan, per {}: energy {} %, time {} %",
                     name_of(fastest->granularity),
                     format_signed(change_pct(point.energy_j, base.energy_j), 1),
                     format_signed(change_pct(point.time_s, base.time_s), 1));
}

// Kernels whose work cannot be right.
std::string dropped_text(const Exploration& found) {
  double dropped_s = 0.0;
  for (std::size_t k = 0; k < found.work_dropped.size(); ++k) {
    if (found.work_dropped[k]) dropped_s += found.baseline.by_kernel[k].time_s;
  }
  const auto dropped = std::ranges::count(found.work_dropped, true);
  return dropped == 0 ? ""
                      : fmt::format(
                            "work of {} kernels ({:.1f} % of the time) is not used: it "
                            "would need more than the GPU's peak",
                            dropped, percent * dropped_s / found.baseline.total.time_s);
}

}  // namespace

ShownRun shown_run(const std::string& work, const ExplorationInput& input, const Exploration& found,
                   const std::string& db, const std::string& plan_file) {
  const Totals& base = found.baseline.total;
  ShownRun run{.planned = planned_text(work, input, found),
               .rests_on = rests_on_text(input, found),
               .next = next_text(input, found),
               .default_clock = found.grid.label(found.grid.default_clock()),
               .defaults = {base.time_s, base.energy_j},
               .odds_frac = found.odds_frac,
               .marks = found.baseline_marks,
               .notes = {dropped_text(found)},
               .fastest = fastest_text(found),
               .interrupted = found.interrupted};
  for (const PlanResult& plan : found.plans) {
    const Totals& total = plan.sim.total;
    ShownPlan& shown = run.plans.emplace_back();
    shown.as = contender_of(found, plan);
    shown.goal = plan.question.goal;
    shown.status = plan.status;
    shown.marks = plan.marks;
    shown.bolder = plan.bolder;
    shown.found = plan.found();
    if (!plan.found()) continue;
    shown.planned = {total.time_s, total.energy_j};
    if (plan.counted) shown.counted = Cost{plan.counted->time_s, plan.counted->energy_j};
    shown.interval = plan.interval;
    shown.clock_switches = static_cast<double>(total.clock_switches);
    shown.gap_frac = plan.gap_frac;
    shown.solve_time_s = plan.solve_time_s;
    shown.clocks = clocks_text(found.grid, plan.plan.clock_of_site);
    shown.setting = setting_of(input, found, plan, db, plan_file);
  }
  return run;
}

}  // namespace rubato
