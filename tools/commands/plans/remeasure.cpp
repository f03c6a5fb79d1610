// rubato remeasure: what a plan chosen on noisy measurements keeps.

#include <memory>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/choice.hpp"
#include "explorer/confidence/winners_curse.hpp"
#include "models/table/fill.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/terminal/output.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

struct RemeasureOptions {
  std::string trace = "gpt3-xl", gpu, clocks;
  double time_noise_pct = 0.5, energy_noise_pct = 1.0, slack_pct = 0.0;
  std::vector<double> safety{0.0, 1.0, 2.0};
  std::size_t campaigns = 200;
  OutputFormat format = OutputFormat::table;
};

void add(std::vector<Cell>& row, const Interval& interval) {
  row.insert(row.end(), {interval.median_pct, interval.low_pct, interval.high_pct,
                         range_cell(interval.low_pct, interval.high_pct)});
}

std::vector<Column> interval_columns(const std::string& key, const std::string& title) {
  const Room room = key.starts_with("lost") ? Room::detail : Room::usual;
  return {{key + "_pct", title, 2, false, room},
          {.key = key + "_low_pct", .for_programs = true},
          {.key = key + "_high_pct", .for_programs = true},
          {.key = "range", .title = "90 %", .room = room, .for_people = true, .whole = true}};
}

ExitStatus run(const RemeasureOptions& o) {
  const Trace trace = load_trace(o.trace);
  const GpuModel model(load_gpu(o.gpu.empty() ? usual_gpu() : o.gpu), trace);
  const ClockGrid grid = make_clock_grid(model.spec(), o.clocks);
  const ProfileTable table =
      unit_table(fill_profile_table(model, grid), trace, choice_units(trace, Granularity::kernel));
  std::vector<Column> columns{{"safety", "", 1}};
  for (const auto& [key, title] : {std::pair{"promised_energy", "promised energy %"},
                                   {"kept_energy", "kept energy %"},
                                   {"lost_energy", "lost energy %"},
                                   {"kept_time", "kept time %"},
                                   {"lost_time", "lost time %"}}) {
    for (Column& column : interval_columns(key, title)) columns.push_back(std::move(column));
  }
  OutputTable out(std::move(columns));
  std::string answer;
  for (const double safety : o.safety) {
    const WinnersCurse curse =
        winners_curse(table, grid.default_clock(),
                      {.noise = {o.time_noise_pct / percent, o.energy_noise_pct / percent},
                       .time_budget_frac = o.slack_pct / percent,
                       .safety = safety,
                       .campaigns = o.campaigns});
    if (answer.empty())
      answer = answer_text(
          fmt::format("{} on {}, {} clocks", printable(trace.name), printable(model.spec().title),
                      grid.size()),
          std::string().append(fmt::format(
              "A plan per kernel that promises {} % of energy keeps {} %: {:.2f} points were luck.",
              format_signed(curse.promised.energy.median_pct, 2),
              format_signed(curse.kept.energy.median_pct, 2), curse.lost.energy.median_pct)));
    std::vector<Cell> row{safety};
    for (const Interval& interval : {curse.promised.energy, curse.kept.energy, curse.lost.energy,
                                     curse.kept.time, curse.lost.time})
      add(row, interval);
    out.add_row(std::move(row));
  }
  if (o.format == OutputFormat::table) print_notes(answer);
  print(out, o.format);
  if (o.format != OutputFormat::table) return ExitStatus::done;
  print_notes(fmt::format(
      "\n{} campaigns: every kernel of {} is measured at {} clocks with standard errors of {} % of "
      "time and {} % of energy, the plan is chosen on that and measured again. safety: standard "
      "errors added to each clock but the default before choosing. 90 %: interval over campaigns; "
      "medians before it.\n",
      o.campaigns, printable(trace.name), grid.size(), format_number(o.time_noise_pct),
      format_number(o.energy_noise_pct)));
  return ExitStatus::done;
}

}  // namespace

Action setup_remeasure(CommandLine& app) {
  auto o = std::make_shared<RemeasureOptions>();
  app.add_option("TRACE", o->trace, "Shipped name or file")->capture_default_str()->reads_file();
  app.add_option("--gpu NAME", o->gpu, "GPU model; 'rubato gpus' lists them [rtx-3080-ti]");
  app.add_option("--clocks", o->clocks, "Clocks to choose from [full]");
  app.add_option("--time-noise", o->time_noise_pct, "Standard error of a measured time, %")
      ->in_range(0.0, 1e4)
      ->capture_default_str();
  app.add_option("--energy-noise", o->energy_noise_pct, "Standard error of a measured energy, %")
      ->in_range(0.0, 1e4)
      ->capture_default_str();
  app.add_option("--slack", o->slack_pct, "Time allowed beyond the default clocks, %")
      ->capture_default_str();
  app.add_option("--safety", o->safety,
                 "Standard errors added to every clock but the default before choosing")
      ->delimiter(',');
  app.add_option("--campaigns", o->campaigns, "Measurement campaigns to play")
      ->in_range(1, 100'000)
      ->capture_default_str();
  add_format_options(app, o->format);
  app.footer(
      "Every cell is measured with noise, the plan per kernel with the least energy is chosen, and "
      "measured again: the choice favours lucky measurements. Medians and 90 % intervals.");
  return [o](const RunContext&) { return run(*o); };
}

}  // namespace rubato
