#include "tools/terminal/screen.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/terminal/screen_parts.hpp"

namespace rubato {

NamedPlans::NamedPlans(const ShownRun& run) {
  for (const ShownPlan& one : run.plans) plans.push_back(one.as);
  answers = choose_answers(plans);
  headline = rubato::headline(plans, answers);
  if (headline == nullptr) return;
  if (headline->plan) plan = &run.plans[*headline->plan];
  const auto first = std::ranges::find(plans, headline->want, &Contender::want);
  asked = &run.plans[static_cast<std::size_t>(first - plans.begin())].goal;
}

bool NamedPlans::is_answer(std::size_t plan_index) const {
  return std::ranges::any_of(answers,
                             [&](const auto& answer) { return answer.plan == plan_index; });
}

namespace {

// What playing a plan changes of a saving that was planned, in points.
double moved_pct(const ShownPlan& plan, const Cost& base, double Cost::*of) {
  return plan.counted
             ? change_pct((*plan.counted).*of, base.*of) - change_pct(plan.planned.*of, base.*of)
             : 0.0;
}

}  // namespace

std::optional<Interval> as_applied(const ShownPlan& plan, const Cost& base, double Cost::*of,
                                   Interval SavingInterval::*interval) {
  if (!plan.interval) return std::nullopt;
  Interval moved = (*plan.interval).*interval;
  const double by_pct = moved_pct(plan, base, of);
  moved.low_pct += by_pct;
  moved.high_pct += by_pct;
  return moved;
}

namespace {

constexpr std::size_t labels_at = 10;  // characters before the text of a line

// What was asked for: "at most 5 % more time"; empty: no time was.
std::string within_words(const Goal& goal) {
  const auto* waste = std::get_if<LeastWaste>(&goal);
  if (waste == nullptr) return "";
  return waste->slack_frac == 0.0 ? "no more time"
         : waste->slack_frac < 0.0
             ? fmt::format("at least {:.4g} % less time", -percent * waste->slack_frac)
             : fmt::format("at most {:.4g} % more time", percent * waste->slack_frac);
}

std::string changed(double pct) { return fmt::format("{} %", format_signed(pct, 1)); }

// "12.4 % energy (90 %: 3.9 to 23.6), time +1.8 % (96 % odds of at most 10 % more time)".
std::string saves_text(const ShownRun& run, const ShownPlan& plan) {
  const Cost &base = run.defaults, &applied = plan.applied();
  std::string text;
  const double objective_pct = percent * (plan.as.objective_frac - 1.0);
  const std::string goal = goal_words(plan.goal);
  if (std::holds_alternative<LeastEdp>(plan.goal) || std::holds_alternative<LeastEd2p>(plan.goal))
    text += fmt::format("{} {}: ", goal.substr(goal.find(' ') + 1), changed(objective_pct));
  if (std::holds_alternative<LeastCost>(plan.goal))
    text += fmt::format("cost {}: ", changed(objective_pct));
  const double energy_pct = change_pct(applied.energy_j, base.energy_j);
  text += energy_pct <= 0.0 ? fmt::format("{} % energy", format_signed(-energy_pct, 1).substr(1))
                            : fmt::format("energy {}", changed(energy_pct));
  if (const auto range = as_applied(plan, base, &Cost::energy_j, &SavingInterval::energy)) {
    const double sign = energy_pct <= 0.0 ? -1.0 : 1.0;
    const double low = std::min(sign * range->low_pct, sign * range->high_pct),
                 high = std::max(sign * range->low_pct, sign * range->high_pct);
    text += fmt::format(" (90 %: {:.1f} to {:.1f})", low + 0.0, high + 0.0);
  }
  text += fmt::format(", time {}", changed(change_pct(applied.time_s, base.time_s)));
  const std::string within = within_words(plan.goal);
  if (!within.empty() && plan.as.odds_in_time)
    text += fmt::format(" ({} odds of {})", odds_words(*plan.as.odds_in_time), within);
  if (within.empty()) text += fmt::format(" ({})", goal);
  return text;
}

// The best single clock beside an answer of several.
const ShownPlan* best_one_clock(const ShownRun& run, const NamedPlans& named) {
  const ShownPlan* best = nullptr;
  for (const ShownPlan& plan : run.plans) {
    if (plan.as.want != named.headline->want || !plan.as.holds || plan.as.clocks != 1 ||
        !has_odds(plan.as.odds_in_time, plan.as.odds_frac))
      continue;
    if (best == nullptr || plan.as.objective_frac < best->as.objective_frac) best = &plan;
  }
  return best;
}

std::string odds_asked(const ShownRun& run) {
  return run.odds_frac > 0.0 ? fmt::format(" with {:.4g} % odds", percent * run.odds_frac) : "";
}

// The plan that saves most beside default clocks that are the answer: too little, or it is not
// likely to.
const ShownPlan* best_guess(const ShownRun& run, const NamedPlans& named) {
  const ShownPlan* best = nullptr;
  double least_frac = 1.0 - least_saving_frac;
  for (const ShownPlan& plan : run.plans) {
    if (plan.as.want != named.headline->want || !plan.as.holds || !plan.as.verdict.applicable ||
        !has_odds(plan.as.odds_in_time, plan.as.odds_frac) || plan.as.objective_frac >= least_frac)
      continue;
    best = &plan;
    least_frac = plan.as.objective_frac;
  }
  return best;
}

bool is_unlikely(const ShownPlan* plan) {
  return plan != nullptr && plan->as.saving == Saving::unlikely;
}

// What a plan would save that was not made for the odds asked for; empty: there is none.
std::string bolder_text(const ShownRun& run, const NamedPlans& named) {
  if (named.headline == nullptr || (named.plan == nullptr && is_unlikely(best_guess(run, named))))
    return "";
  constexpr double worth_saying_frac = 1e-3;  // beyond the answer; less reads as the same
  const double saved_frac =
      named.plan == nullptr ? 0.0 : named.plan->applied().energy_j / run.defaults.energy_j - 1.0;
  std::optional<BolderPlan> bolder;
  for (const ShownPlan& plan : run.plans) {
    if (plan.as.want == named.headline->want && plan.bolder &&
        plan.bolder->energy_frac < saved_frac - worth_saying_frac &&
        (!bolder || plan.bolder->is_better_than(*bolder)))
      bolder = plan.bolder;
  }
  if (!bolder) return "";
  return fmt::format("a plan with {} odds of being in time would save {:.1f} %: --odds {:.0f}",
                     odds_words(bolder->odds_in_time), -percent * bolder->energy_frac,
                     std::floor(percent * bolder->odds_in_time));
}

// The plan that would be better than the answer if changes of clock were free.
std::string free_text(const ShownRun& run, const NamedPlans& named) {
  const ShownPlan* free = nullptr;
  double best = named.plan == nullptr ? 1.0 : named.plan->as.objective_frac;
  for (const ShownPlan& plan : run.plans) {
    if (!plan.counted || (named.headline != nullptr && plan.as.want != named.headline->want))
      continue;
    const double planned = value_of_goal(plan.goal, plan.planned, run.gpus) /
                           value_of_goal(plan.goal, run.defaults, run.gpus);
    if (planned >= best - alike_objective_frac ||
        plan.as.objective_frac < planned + alike_objective_frac)
      continue;
    best = planned;
    free = &plan;
  }
  if (free == nullptr) return "";
  const auto energy = [&](const Cost& cost) {
    return changed(change_pct(cost.energy_j, run.defaults.energy_j));
  };
  return fmt::format(
      "one clock for each {} would change energy by {} if switches were free; with their cost it "
      "is {}, time {}",
      name_of(free->as.granularity), energy(free->planned), energy(*free->counted),
      changed(change_pct(free->counted->time_s, run.defaults.time_s)));
}

std::string set_text(const ShownRun& run, const NamedPlans& named) {
  if (named.headline == nullptr) {
    const bool time = std::ranges::all_of(run.plans, [](const ShownPlan& plan) {
      return std::holds_alternative<LeastWaste>(plan.goal);
    });
    return fmt::format("nothing: no plan {}{}",
                       time ? "is in time" : "keeps within the time or budget",
                       time ? odds_asked(run) : "");
  }
  if (named.plan != nullptr && !named.headline->known)
    return fmt::format(
        "not known: {} may save nothing (zero is within the 90 % interval); measure it before you "
        "set it (docs/apply.md)",
        clock_words(named.plan->clocks));
  if (named.plan != nullptr) return named.plan->setting;
  const std::string within = within_words(*named.asked);
  const ShownPlan* guess = best_guess(run, named);
  bool found = false, holds = false;
  for (const ShownPlan& plan : run.plans) {
    if (plan.as.want != named.headline->want) continue;
    found |= plan.found;
    holds |= plan.as.holds;
  }
  if (found && !holds)
    return fmt::format("nothing: keep the {}; as applied, every plan {}", run.default_name,
                       within.empty() ? "exceeds its budget" : "is late");
  if (is_unlikely(guess))
    return fmt::format(
        "nothing: keep the {}; no plan{}{} is likely to save energy, the best guess saves {}",
        run.default_name, within.empty() ? "" : " in " + within, odds_asked(run),
        saves_text(run, *guess));
  const bool some_save = guess != nullptr;
  return within.empty()
             ? fmt::format("nothing: keep the {}; no plan is better{}", run.default_name,
                           some_save ? " by a point" : "")
             : fmt::format("nothing: keep the {}; no plan in {}{} saves {}", run.default_name,
                           within, odds_asked(run), some_save ? "a point of energy" : "energy");
}

}  // namespace

ScreenLines screen_lines(const ShownRun& run) {
  const NamedPlans named(run);
  std::string saves = "nothing";
  if (named.plan != nullptr) {
    saves = named.headline->known ? saves_text(run, *named.plan)
                                  : "not known; the best guess: " + saves_text(run, *named.plan);
    const ShownPlan* one = best_one_clock(run, named);
    if (one != nullptr && one != named.plan && one->as.objective_frac < 1.0 - least_saving_frac)
      saves += fmt::format("; one clock for all, {}: {}", clock_words(one->clocks),
                           changed(change_pct(one->applied().energy_j, run.defaults.energy_j)));
  } else if (named.headline == nullptr && !run.fastest.empty()) {
    saves = run.fastest;
  }
  std::string rests_on = run.rests_on;
  if (named.plan != nullptr) {
    const std::vector<const std::vector<Mark>*> lists{&run.marks, &named.plan->marks};
    rests_on += doubts_text(lists);
  }
  std::string planned = run.planned;
  for (const ShownPlan& plan : run.plans) {
    const auto* cost = std::get_if<LeastCost>(&plan.goal);
    if (cost == nullptr) continue;
    const double of_one = cost->prices.of(run.defaults.time_s, run.defaults.energy_j, run.gpus);
    planned += fmt::format("; 1000 of them cost {:.4g}", 1000.0 * of_one);
    break;
  }
  return {
      {"Planned", planned},
      {"Set", set_text(run, named)},
      {"Saves", saves},
      {"Rests on", rests_on},
      {"Next", !run.next.empty() ? run.next
               : run.interrupted ? "the same with more time: the search ended before all was tried"
               : named.plan == nullptr && !bolder_text(run, named).empty()
                   ? "rubato capture sweep: clocks measured on this GPU would narrow what is open"
                   : "nothing to measure: all that counts was measured"}};
}

std::string lines_json(const ScreenLines& lines) {
  constexpr std::array names{"planned", "set", "saves", "rests_on", "next"};
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < names.size(); ++i) object[names[i]] = lines[i].second;
  object["notes"] = nlohmann::ordered_json::array();
  for (const auto& [label, text] : lines) {
    if (label == note_label) object["notes"].push_back(text);
  }
  return json_text(object);
}

std::string screen_text(const ScreenLines& lines_of_screen) {
  std::string text;
  for (const auto& [label, words] : lines_of_screen) {
    const std::size_t room =
        line_width() == TableStyle::no_limit ? line_width() : line_width() - labels_at;
    std::string begin = fmt::format("{:<{}}", label, labels_at);
    const std::string lines = wrapped(words, room);
    for (std::string_view line : split(lines, '\n')) {
      if (line.empty()) continue;
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      text += begin + std::string(line) + '\n';
      begin.assign(labels_at, ' ');
    }
  }
  return text;
}

std::vector<std::string> notes_of(const ShownRun& run) {
  const NamedPlans named(run);
  std::vector<std::string> notes;
  const auto add = [&](std::string note) {
    if (!note.empty()) notes.push_back(std::move(note));
  };
  add(bolder_text(run, named));
  std::set<MarkKind> said;
  const auto add_marks = [&](const std::vector<Mark>& marks) {
    for (const Mark& mark : marks) {
      if (is_doubt(mark.kind) && said.insert(mark.kind).second)
        add(fmt::format("{}: {}", name_of(mark.kind), mark.reason));
    }
  };
  add_marks(run.marks);
  if (named.plan != nullptr) add_marks(named.plan->marks);
  for (const std::string& note : run.notes) add(note);
  add(free_text(run, named));
  return notes;
}

std::string first_notes(std::span<const std::string> notes, std::string_view where,
                        std::size_t most) {
  std::string text;
  for (const std::string& note : notes.first(std::min(most, notes.size())))
    text += fmt::format("note: {}\n", note);
  if (notes.size() > most) text += fmt::format("{} more: {}\n", notes.size() - most, where);
  return text;
}

std::string notes_text(const ShownRun& run, bool all) {
  const std::vector<std::string> notes = notes_of(run);
  std::string text = first_notes(notes, "--list notes", all ? notes.size() : few_notes);
  if (run.interrupted)
    text +=
        "The search ended before all was tried: plans are the best known by then, and bounds "
        "that are missing are not known.\n";
  return text;
}

ScreenLines print_exploration(const ShownRun& run, const std::function<PlannedRun()>& rows,
                              std::span<const ListedTable> own,
                              const std::vector<std::string>& listed, OutputFormat format) {
  const bool json = format == OutputFormat::json, terminal = format == OutputFormat::table;
  const OutputTable plans = plans_table(run), answers = answers_table(run),
                    notes = notes_table(run);
  OutputTable lines({{"planned"}, {"set"}, {"saves"}, {"rests_on"}, {"next"}, {"notes"}});
  ScreenLines said = screen_lines(run);
  std::vector<Cell> texts;
  for (const auto& [label, text] : said) texts.emplace_back(text);
  const std::vector<std::string> all_notes = notes_of(run);
  texts.emplace_back(fmt::format("{}", fmt::join(all_notes, "\n")));
  lines.add_row(std::move(texts));
  const auto is_listed = [&](std::string_view name) {
    return std::ranges::find(listed, name) != listed.end();
  };
  std::optional<PlannedRun> planned;
  const auto of_rows = [&](auto make) {
    return [&, make] {
      if (!planned) planned = rows();
      return make(*planned);
    };
  };
  const auto about = of_rows([](const PlannedRun& of) { return run_table(of.run); });
  std::vector<ListedTable> tables(own.begin(), own.end());
  for (const ListedTable& one : {ListedTable{"passes", of_rows(passes_table)},
                                 ListedTable{"kernels", of_rows(kernels_table)},
                                 ListedTable{"segments", of_rows(segments_table)}}) {
    if (std::ranges::find(own, one.name, &ListedTable::name) == own.end()) tables.push_back(one);
  }
  std::vector<OutputTable> made;
  made.reserve(tables.size() + 1);
  std::vector<NamedTable> asked;
  if (json)
    asked = {{"run", &made.emplace_back(about())}, {"answer", &lines}, {"answers", &answers}};
  if (!terminal || is_listed("plans")) asked.push_back({"plans", &plans});
  if (json || is_listed("notes")) asked.push_back({"notes", &notes});
  for (const ListedTable& one : tables) {
    if (!is_listed(one.name) && !(json && one.always)) continue;
    made.push_back(one.make());
    if (is_listed(one.name) || made.back().rows() > 0) asked.push_back({one.name, &made.back()});
  }
  if (terminal) {
    print(screen_text(said) + '\n');
    print(plans_table(run, false), format);
    const std::string below = notes_text(run, is_listed("notes"));
    if (!below.empty()) print_notes('\n' + below);
    if (!asked.empty()) print("\n");
  }
  constexpr int json_schema = 1;  // docs/explore.schema.json
  print_tables(asked, format, json_schema);
  for (const std::string& note : all_notes) said.emplace_back(note_label, note);
  return said;
}

}  // namespace rubato
