// rubato gpus: the shipped GPU specs.

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "models/gpu/spec.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

namespace {

Cell error_of(const GpuSpec& spec, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = spec.fit_errors.find(name);
    if (found != spec.fit_errors.end()) return found->second;
  }
  return std::monostate{};
}

// Whether a section's source says that its numbers are this GPU's own.
bool is_measured(const GpuSpec& spec, const std::string& section) {
  const auto source = spec.sources.find(section);
  if (source == spec.sources.end()) return false;
  const auto says = [&](std::string_view words) {
    return source->second.find(words) != std::string::npos;
  };
  return (says("measured") || says("fitted")) && !says("not measured") &&
         !says("nothing was measured");
}

// green: fitted to this GPU, with errors on points held out; yellow: some of it was measured on
// this GPU; red: other GPUs, data sheets and guesses.
std::string light(bool tested, bool measured) {
  return tested ? "green" : measured ? "yellow" : "red";
}

std::string clocks_light(const GpuSpec& spec, bool power_measured) {
  constexpr double far_apart = 1.5;  // the highest clock measured over the lowest
  const auto& range = spec.fitted_range;
  const bool wide = range && range->max_core_mhz >= far_apart * range->min_core_mhz;
  return light(wide || (spec.calibrated && !range), range || power_measured);
}

OutputTable list() {
  OutputTable table({{.key = "name", .whole = true},
                     {"times", "times", 0, false, Room::needed},
                     {"power", "power", 0, false, Room::needed},
                     {"clocks", "clocks", 0, false, Room::needed},
                     {"title"},
                     {"fitted", "fitted", 0, false, Room::detail},
                     {"fitted_min_core_mhz", "from MHz", 0, false, Room::detail},
                     {"fitted_max_core_mhz", "to MHz", 0, false, Room::detail},
                     {"fitted_points", "points", 0, false, Room::detail},
                     {"time_mape_pct", "time err %", 2},
                     {"power_mape_pct", "power err %", 2},
                     {"energy_mape_pct", "energy err %", 2},
                     {"rests_on", "rests on", 0, false, Room::detail}});
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    const bool power_only = !spec.fit_errors.empty() || spec.fitted_range;
    const char* fitted = spec.calibrated ? "yes" : power_only ? "power" : "no";
    const Cell time_pct = error_of(spec, {"k_fold_time_mape_pct"});
    const Cell power_pct =
        error_of(spec, {"k_fold_power_mape_pct", "kernels_left_out_power_mape_pct"});
    const auto known = [](const Cell& cell) {
      return !std::holds_alternative<std::monostate>(cell);
    };
    const bool power_measured = spec.calibrated || is_measured(spec, "core_power");
    const bool times_measured =
        spec.calibrated || is_measured(spec, "operators") || is_measured(spec, "memory");
    std::vector<Cell> row{name,
                          light(known(time_pct), times_measured),
                          light(known(power_pct), power_measured),
                          clocks_light(spec, power_measured),
                          spec.title,
                          std::string(fitted)};
    if (const auto& range = spec.fitted_range) {
      row.insert(row.end(), {range->min_core_mhz, range->max_core_mhz,
                             static_cast<std::int64_t>(range->points)});
    } else {
      row.insert(row.end(), 3, std::monostate{});
    }
    row.push_back(time_pct);
    row.push_back(power_pct);
    row.push_back(error_of(spec, {"k_fold_energy_mape_pct"}));
    const auto source = spec.sources.find("core_power");
    row.push_back(source == spec.sources.end() ? Cell() : Cell(source->second));
    table.add_row(std::move(row));
  }
  return table;
}

}  // namespace

Action setup_gpus(CommandLine& app) {
  struct Options {
    std::string name;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("NAME", o->name, "Print this spec as JSON, a start for one of your own");
  add_format_options(app, o->format);
  app.footer(
      "Times and power are green if fitted to this GPU and tested on held-out points (the errors), "
      "yellow if partly measured on this GPU, red if taken from other GPUs, data sheets or "
      "guesses. "
      "Clocks are green if measured over a range of 1.5 or more, yellow if over less, or if only "
      "power was measured. rests_on (--wide, --json) says what was fitted, and by which version. "
      "docs/gpus.md names the data.");
  return [o](const RunContext&) {
    if (o->name.empty()) {
      const OutputTable table = list();
      if (o->format == OutputFormat::table)
        print_notes(fmt::format(
            "{} GPU models are shipped. green: fitted to that GPU and tested; yellow: partly "
            "measured on it; red: scaled from other GPUs.\n\n",
            table.rows()));
      print(table, o->format);
    } else {
      print(to_json(load_gpu_spec(o->name)));
    }
    return ExitStatus::done;
  };
}

}  // namespace rubato
