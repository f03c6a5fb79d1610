// rubato budget: caps and clocks of several jobs within the watts of a rack.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/budget/jobs.hpp"
#include "explorer/budget/periods.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/results/plan_choice.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/options/questions.hpp"
#include "tools/options/values.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/screen.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

constexpr double errors_in_90_pct = 1.6449, s_per_h = 3600.0, w_per_kw = 1000.0;

struct BudgetOptions {
  std::string file, series, list, total;
  std::optional<double> watts;
  bool least_watts = false;
  double odds_pct = percent * usual_odds_frac, price = 0.0, carbon_price = 0.0;
  OutputFormat format = OutputFormat::table;
};

std::vector<Period> periods_of(const BudgetOptions& o) {
  Period all{.price_per_kwh = o.price};
  if (o.watts) all.most_w = *o.watts;
  return o.series.empty() ? std::vector{all} : read_periods(o.series, all);
}

std::optional<TotalLimit> total_limit(const BudgetOptions& o) {
  if (o.total.empty()) return std::nullopt;
  if (o.series.empty() || o.watts || o.least_watts)
    throw UsageError(
        "--total bounds the sum over the periods of --series: without --watts and --least-watts",
        {.in = {}, .hint = "--watts and the column watts bound each period for itself"});
  constexpr double least = 1e-9, most = 1e15;
  std::string_view unit;
  for (const std::string_view known : {"kWh", "kg"})
    if (o.total.ends_with(known)) unit = known;
  return TotalLimit{number_of("--total", "", o.total, least, most, unit), unit};
}

// Whether the errors of all options are known: else there are no odds.
const BudgetJob* job_of_unknown_error(const std::vector<BudgetJob>& jobs) {
  const auto found = std::ranges::find_if(jobs, [](const BudgetJob& job) {
    return std::ranges::any_of(job.options, [](const JobOption& one) { return !one.power_error; });
  });
  return found == jobs.end() ? nullptr : &*found;
}

std::string watts_text(double watts) {
  std::string text = format_fixed(watts, 0);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text + " W";
}

Cell known(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

const JobOption* chosen(const BudgetJob& job, const BudgetAnswer& answer, std::size_t at) {
  const std::size_t option = answer.option_of_job[at];
  return option == job.options.size() ? nullptr : &job.options[option];
}

// Ends of 90 % of a value with a relative standard error.
std::optional<double> end_of(double value, const std::optional<double>& error, double sign) {
  if (!error) return std::nullopt;
  return value * (1.0 + sign * errors_in_90_pct * *error);
}

OutputTable jobs_table(const JobFile& file, const std::vector<PlannedPeriod>& planned) {
  const bool one = planned.size() == 1;
  OutputTable table({{"begin_h", "from h", 2, one},
                     {.key = "job", .whole = true},
                     {"gpus", "GPUs", 0},
                     {.key = "setting", .title = "set to", .room = Room::needed, .whole = true},
                     {"power_w", "W", 0, false, Room::needed},
                     {"power_change_pct", "W change %", 1},
                     {"worth_per_s", file.worth + "/s", 4},
                     {"worth_change_pct", "change %", 1, false, Room::needed},
                     {.key = "worth_change_low_pct", .for_programs = true},
                     {.key = "worth_change_high_pct", .for_programs = true},
                     {.key = "command", .for_programs = true}});
  for (const PlannedPeriod& period : planned) {
    for (std::size_t j = 0; j < file.jobs.size(); ++j) {
      const BudgetJob& job = file.jobs[j];
      const JobOption& today = job.options.front();
      const JobOption* option = chosen(job, period.answer, j);
      if (option == nullptr) {
        table.add_row({period.begin_h, job.name, job.gpus, "waits", *job.paused_w,
                       change_pct(*job.paused_w, today.power_w), 0.0, -percent, -percent, -percent,
                       Cell()});
        continue;
      }
      const double change = change_pct(job.worth_per_s(*option), job.worth_per_s(today));
      const auto end = [&](double sign) -> Cell {
        const auto ratio = end_of(1.0 + change / percent, option->time_error, sign);
        return ratio ? Cell(percent * (*ratio - 1.0)) : Cell();
      };
      table.add_row({period.begin_h, job.name, job.gpus, option->setting, option->power_w,
                     change_pct(option->power_w, today.power_w), job.worth_per_s(*option), change,
                     end(-1.0), end(1.0),
                     option->command.empty() ? Cell() : Cell(option->command)});
    }
  }
  return table;
}

// What each setting of each job gives: for planners of other tools.
OutputTable options_table(const JobFile& file) {
  OutputTable table({{.key = "job", .whole = true},
                     {"gpus", "GPUs", 0},
                     {.key = "setting", .whole = true},
                     {"time_s", "step s", 4},
                     {.key = "time_low_s", .for_programs = true},
                     {.key = "time_high_s", .for_programs = true},
                     {"worth_per_s", file.worth + "/s", 4},
                     {"power_w", "W", 0},
                     {.key = "power_low_w", .for_programs = true},
                     {.key = "power_high_w", .for_programs = true},
                     {"energy_j", "J/step", 1},
                     {"j_per_worth", "J/" + file.worth, 4},
                     {.key = "command", .for_programs = true}});
  for (const BudgetJob& job : file.jobs) {
    for (const JobOption& one : job.options) {
      const double energy_j = one.power_w * one.time_s;
      table.add_row({job.name, job.gpus, one.setting, one.time_s,
                     known(end_of(one.time_s, one.time_error, -1.0)),
                     known(end_of(one.time_s, one.time_error, 1.0)), job.worth_per_s(one),
                     one.power_w, known(end_of(one.power_w, one.power_error, -1.0)),
                     known(end_of(one.power_w, one.power_error, 1.0)), energy_j,
                     energy_j / job.worth_per_step,
                     one.command.empty() ? Cell() : Cell(one.command)});
    }
  }
  return table;
}

double gap_pct(const BudgetAnswer& answer) {
  if (answer.proven) return 0.0;
  return percent * (answer.bound_per_s - answer.value_per_s) / std::abs(answer.value_per_s);
}

OutputTable periods_table(const JobFile& file, const std::vector<PlannedPeriod>& planned) {
  OutputTable table({{"begin_h", "from h", 2},
                     {"hours", "hours", 2},
                     {"most_w", "limit W", 0},
                     {"price_per_kwh", "price/kWh", 4},
                     {"power_w", "W", 0, false, Room::needed},
                     {"today_w", "W today", 0},
                     {"odds_pct", "odds %", 0},
                     {"worth", file.worth, 1, false, Room::needed},
                     {"worth_today", file.worth + " today", 1},
                     {"kwh", "kWh", 2},
                     {"cost", "cost of energy", 2},
                     {"kg_co2e", "kg CO2e", 2},
                     {"gap_pct", "gap %", 3},
                     {.key = "proven", .for_programs = true}});
  const auto finite = [](double value) { return std::isfinite(value) ? Cell(value) : Cell(); };
  for (const PlannedPeriod& one : planned) {
    const BudgetAnswer& answer = one.answer;
    const BudgetAnswer today =
        budget_of(file.jobs, one.question, std::vector<std::size_t>(file.jobs.size(), 0));
    const double seconds = one.period.hours * s_per_h,
                 kwh = answer.power_w * one.period.hours / w_per_kw;
    table.add_row({one.begin_h, one.period.hours, finite(one.period.most_w),
                   one.question.price_per_kwh, answer.power_w, today.power_w,
                   answer.odds ? Cell(percent * *answer.odds) : Cell(),
                   answer.worth_per_s * seconds, today.worth_per_s * seconds, kwh,
                   one.question.price_per_kwh * kwh, one.period.kg_per_kwh * kwh, gap_pct(answer),
                   answer.proven});
  }
  return table;
}

// Sums over periods.
struct Sums {
  double worth = 0.0, today = 0.0, j = 0.0, today_j = 0.0;
  double worth_error = 0.0;  // of worth, the same in all periods
  bool error_known = true;
  double least_odds = 1.0;
  bool odds_known = true, limited = false, all_proven = true;
  double worst_gap_pct = 0.0;
};

Sums sums_of(const BudgetOptions& o, const JobFile& file,
             const std::vector<PlannedPeriod>& planned) {
  Sums sums;
  for (const PlannedPeriod& one : planned) {
    const BudgetAnswer today =
        budget_of(file.jobs, one.question, std::vector<std::size_t>(file.jobs.size(), 0));
    const double seconds = one.period.hours * s_per_h;
    sums.worth += one.answer.worth_per_s * seconds;
    sums.today += today.worth_per_s * seconds;
    sums.j += one.answer.power_w * seconds;
    sums.today_j += today.power_w * seconds;
    sums.error_known = sums.error_known && one.answer.worth_error;
    sums.worth_error += one.answer.worth_error.value_or(0.0) * one.answer.worth_per_s * seconds;
    sums.limited = sums.limited || !o.total.empty() || std::isfinite(one.period.most_w);
    sums.odds_known =
        sums.odds_known && (one.answer.odds || (o.total.empty() && std::isinf(one.period.most_w)));
    sums.least_odds = std::min(sums.least_odds, one.answer.odds.value_or(1.0));
    sums.all_proven = sums.all_proven && one.answer.proven;
    sums.worst_gap_pct = std::max(sums.worst_gap_pct, gap_pct(one.answer));
  }
  return sums;
}

std::string more_or_less(double pct, std::string_view what) {
  return fmt::format("{:.1f} % {} {}", std::abs(pct), pct > 0.0 ? "more" : "less", what);
}

std::string saves_text(const JobFile& file, const Sums& sums) {
  const double worth_pct = change_pct(sums.worth, sums.today);
  std::string text = fmt::format("{}, {}", more_or_less(change_pct(sums.j, sums.today_j), "power"),
                                 more_or_less(worth_pct, file.worth));
  if (sums.error_known && sums.today > 0.0) {
    const double half_pct = percent * errors_in_90_pct * sums.worth_error / sums.today;
    text += fmt::format(" (90 %: {} to {} %)", format_signed(worth_pct - half_pct, 1),
                        format_signed(worth_pct + half_pct, 1));
  }
  if (!sums.limited) return text;
  return text + (sums.odds_known ? fmt::format("; {:.0f} % odds of staying within the limit",
                                               std::floor(percent * sums.least_odds))
                                 : "; the odds of staying within the limit are not known");
}

std::string settings_text(const JobFile& file, const BudgetAnswer& answer) {
  constexpr std::size_t most = 12;
  std::string text;
  std::size_t shown = 0, left = 0;
  for (std::size_t j = 0; j < file.jobs.size(); ++j) {
    const JobOption* option = chosen(file.jobs[j], answer, j);
    if (option == nullptr || option->command.empty()) continue;
    if (++shown > most) {
      ++left;
      continue;
    }
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n ", printable(file.jobs[j].name),
                        option->command);
  }
  if (left > 0) text += fmt::format("\n and {} more: --csv has a command for each", left);
  return text.empty() ? "nothing: keep the default clocks" : text;
}

void print_answer(const BudgetOptions& o, const JobFile& file,
                  const std::vector<PlannedPeriod>& planned) {
  const OutputTable jobs = jobs_table(file, planned), periods = periods_table(file, planned);
  if (o.format != OutputFormat::table) {
    const OutputTable options = options_table(file);
    std::vector<NamedTable> tables{{"periods", &periods}, {"jobs", &jobs}};
    if (o.list == "options") tables.push_back({"options", &options});
    return print_tables(tables, o.format);
  }
  const Sums sums = sums_of(o, file, planned);
  double gpus = 0.0, hours = 0.0;
  for (const BudgetJob& job : file.jobs) gpus += job.gpus;
  for (const PlannedPeriod& one : planned) hours += one.period.hours;
  const bool one = planned.size() == 1;
  const double most_w = planned.front().period.most_w;
  const BudgetJob* unknown = job_of_unknown_error(file.jobs);
  print(screen_text(ScreenLines{
      {"Planned",
       fmt::format("{} jobs on {:.0f} GPUs{}{}; at the default clocks {}; worth: {}",
                   file.jobs.size(), gpus,
                   one && std::isfinite(most_w) ? " within " + watts_text(most_w) : "",
                   one ? ""
                       : fmt::format(" in {} periods, {:.4g} hours{}", planned.size(), hours,
                                     o.total.empty() ? "" : ", within " + o.total + " in all"),
                   watts_text(sums.today_j / hours / s_per_h * (one ? hours : 1.0)), file.worth)},
      {"Set", one ? settings_text(file, planned.front().answer)
                  : "what the table of jobs says for each period: --list jobs"},
      {"Saves", saves_text(file, sums)},
      {"Rests on",
       sums.all_proven
           ? "settings of stored runs and tables; no choice among them is better (proven)"
           : fmt::format("settings of stored runs and tables; no choice among them is more than "
                         "{:.3g} % better",
                         sums.worst_gap_pct)},
      {"Next", unknown == nullptr
                   ? "nothing to measure: errors of all jobs are known"
                   : fmt::format("the power of '{}' at its default clocks, by a meter: watts and "
                                 "watts_error_pct in {}",
                                 printable(unknown->name), printable(o.file))}}));
  print("\n");
  if (!one) print(periods, o.format);
  if (one || o.list == "jobs") print(jobs, o.format);
  if (o.list == "options") {
    print("\n");
    print(options_table(file), o.format);
  }
}

std::vector<PlannedPeriod> asked_periods(const BudgetOptions& o, const JobFile& file) {
  const bool odds_known = job_of_unknown_error(file.jobs) == nullptr;
  std::vector<PlannedPeriod> planned;
  double begin_h = 0.0;
  for (const Period& period : periods_of(o)) {
    PlannedPeriod& one = planned.emplace_back(
        PlannedPeriod{.period = period, .question = {}, .answer = {}, .begin_h = begin_h});
    begin_h += period.hours;
    one.question = {.goal = o.least_watts ? BudgetGoal::least_power : BudgetGoal::most_worth,
                    .most_w = period.most_w,
                    .odds_frac = odds_known ? std::max(0.5, o.odds_pct / percent) : 0.5,
                    .price_per_kwh = period.price_per_kwh + o.carbon_price * period.kg_per_kwh};
  }
  return planned;
}

// @param least  the choice that takes least; none where a deadline cannot be met
[[noreturn]] void no_plan(const BudgetOptions& o, const BudgetAnswer& least,
                          const std::string& limit, const std::string& least_text) {
  if (least.option_of_job.empty())
    throw NoPlanError("a job meets its deadline at none of its settings",
                      {.in = o.file, .hint = "steps and hours are its deadline"});
  throw NoPlanError(
      fmt::format("no choice of settings stays within {}; the least is {}", limit, least_text),
      {.in = o.file, .hint = "--odds 50 leaves no room for errors; paused_watts lets a job wait"});
}

ExitStatus run(const BudgetOptions& o, const RunContext& context) {
  check_odds(o.odds_pct);
  if (!o.watts && !o.least_watts && o.series.empty() && o.price == 0.0 && o.list != "options")
    throw UsageError("there is no limit: expected --watts, --least-watts, --price or --series");
  if (!o.list.empty() && o.list != "options" && o.list != "jobs")
    throw UsageError(fmt::format("--list '{}' is not known; expected jobs or options", o.list));
  const JobFile file = read_jobs(o.file);
  for (const std::string& note : file.notes) tell("note: {}\n", note);
  const auto total = total_limit(o);
  std::vector<PlannedPeriod> planned = asked_periods(o, file);
  if (total) {
    const BudgetAnswer all = plan_periods(file.jobs, *total, planned, context);
    if (!all.found)
      no_plan(o, all, o.total + " in all", fmt::format("{:.6g} {}", all.power_w, total->unit));
  }
  for (PlannedPeriod& one : planned) {
    if (!total) one.answer = plan_budget(file.jobs, one.question, context);
    if (one.answer.found) continue;
    const BudgetAnswer least = plan_budget(
        file.jobs, {.goal = BudgetGoal::least_power, .odds_frac = one.question.odds_frac});
    no_plan(o, least, watts_text(one.period.most_w), watts_text(least.power_w));
  }
  print_answer(o, file, planned);
  return ExitStatus::done;
}

}  // namespace

Action setup_budget(CommandLine& app) {
  auto o = std::make_shared<BudgetOptions>();
  app.add_option("JOBS", o->file, "Jobs, TOML (docs/budget.md)")->required()->reads_file();
  app.add_option("--watts", o->watts, "What all jobs together may draw, W")->positive();
  app.add_flag("--least-watts", o->least_watts,
               "The least power at which every job meets its deadline, not the most worth");
  app.add_option("--odds", o->odds_pct,
                 "Odds of staying within --watts that the answer must have, %; 50: as likely over "
                 "as not")
      ->capture_default_str();
  app.add_option("--price", o->price, "Price of a kWh, in the unit of worth");
  app.add_option("--carbon-price", o->carbon_price, "Price of a kg CO2e, in the unit of worth");
  app.add_option("--series", o->series,
                 "The day, a CSV of periods: hours, price_per_kwh, kg_per_kwh, watts (each may be "
                 "left out)");
  app.add_option("--total", o->total,
                 "Limit over all periods of --series: energy (500kWh), carbon (120kg) or the price "
                 "of energy (80)");
  app.add_option("--list", o->list,
                 "Also this table: options (throughput and power of every setting), or jobs of "
                 "every period");
  add_format_options(app, o->format);
  app.footer("Changes are relative to the default clocks of all jobs. --csv has the last table.");
  return [o](const RunContext& context) { return run(*o, context); };
}

}  // namespace rubato
