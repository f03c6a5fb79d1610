// rubato verify: a promised saving beside the measured one.

#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/results/measurements.hpp"
#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

OutputTable verification_table(const Verification& found) {
  OutputTable table({{"quantity"},
                     {"promised_pct", "promised %", 2},
                     {"promised_low_pct", "from", 2, false, Room::detail},
                     {"promised_high_pct", "to", 2, false, Room::detail},
                     {"measured_pct", "measured %", 2},
                     {"measured_low_pct", "from", 2, false, Room::detail},
                     {"measured_high_pct", "to", 2, false, Room::detail},
                     {.key = "verdict", .room = Room::needed}});
  const auto add = [&](const char* quantity, const ChangeRange& promised,
                       const ChangeRange& measured, PromiseVerdict verdict) {
    table.add_row({std::string(quantity), percent * promised.value, percent * promised.low,
                   percent * promised.high, percent * measured.value, percent * measured.low,
                   percent * measured.high, std::string(name_of(verdict))});
  };
  add("energy", found.promised_energy, found.measured_energy, found.energy);
  add("time", found.promised_time, found.measured_time, found.time);
  return table;
}

std::string_view energy_text(const Verification& found) {
  switch (found.energy) {
    case PromiseVerdict::kept:
      return found.promised_energy.value < 0.0
                 ? "The promised saving came: the measured interval meets the promised one."
                 : "No saving was promised, and the measured interval meets the promised one.";
    case PromiseVerdict::better:
      return "More was saved than promised: the measured interval lies below the promised one.";
    case PromiseVerdict::missed:
      return found.saves()
                 ? "The promised saving did not come, a smaller one did: the measured interval "
                   "lies above the promised one."
                 : "The promised saving did not come: the measured interval lies above the "
                   "promised one, and does not exclude that nothing is saved.";
    case PromiseVerdict::undecided: break;
  }
  return "Undecided: the measured interval meets the promised one, but does not exclude that "
         "nothing is saved; measure more pairs.";
}

std::string verify_answer(const Verification& found) {
  const ChangeRange& energy = found.measured_energy;
  std::string answer;
  answer.append("Measured: ")
      .append("energy " +
              change_words(percent * energy.value, Interval{.low_pct = percent * energy.low,
                                                            .median_pct = percent * energy.value,
                                                            .high_pct = percent * energy.high}))
      .append(fmt::format(", time {}; promised: energy {}, time {}.",
                          change_words(percent * found.measured_time.value),
                          change_words(percent * found.promised_energy.value),
                          change_words(percent * found.promised_time.value)))
      .append("\n")
      .append(std::string(energy_text(found)));
  if (found.time == PromiseVerdict::missed) answer.append(" It takes more time than promised.");
  return answer;
}

}  // namespace

Action setup_verify(CommandLine& app) {
  struct Options {
    std::string plan, measured, db;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("--plan", o->plan, "Plan file of rubato export --plan")->required();
  app.add_option("--measured", o->measured,
                 "Windows of rubato.measure: columns pair, arm, steps, time_s, energy_j")
      ->required();
  app.add_option("--db", o->db, "Store it in this result database; its report shows it");
  add_format_options(app, o->format);
  app.footer("Status 1: the saving or the time was missed, or the saving is undecided.");
  return [o](const RunContext& context) {
    if (!o->db.empty()) (void)ResultStore::open(o->db);
    const Verification found = verify(o->plan, o->measured);
    const OutputTable table = verification_table(found);
    if (o->format == OutputFormat::table) {
      print_notes(answer_text(
          fmt::format("The plan per {} of {}; {} pairs of windows in {}", found.granularity,
                      printable(o->plan), found.pairs, printable(o->measured)),
          verify_answer(found)));
      print_tables({{"verification", &table}}, o->format);
      print_notes(fmt::format(
          "{:.1f} W at the default clocks, {:.1f} W under the plan. Promised: interval of the "
          "model; measured: 90 %, Student's t.\n",
          found.default_power_w, found.plan_power_w));
    } else {
      print(table, o->format);
    }
    if (!o->db.empty()) {
      const std::int64_t id = store_verification(o->db, found, context.command_line);
      tell("stored as verification {} in {}\n", id, o->db);
    }
    return found.came() ? ExitStatus::done : ExitStatus::no_plan;
  };
}

}  // namespace rubato
