// rubato gpus: the shipped GPU specs.

#include <memory>

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

OutputTable list() {
  OutputTable table({{.key = "name", .whole = true},
                     {"title"},
                     {"fitted"},
                     {"fitted_min_core_mhz", "from MHz", 0, false, Room::detail},
                     {"fitted_max_core_mhz", "to MHz", 0, false, Room::detail},
                     {"fitted_points", "points", 0, false, Room::detail},
                     {"time_mape_pct", "time err %", 2},
                     {"power_mape_pct", "power err %", 2},
                     {"energy_mape_pct", "energy err %", 2}});
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    const bool power_only = spec.utilisation || spec.fitted_range;
    const char* fitted = spec.calibrated ? "yes" : power_only ? "power" : "no";
    std::vector<Cell> row{name, spec.title, std::string(fitted)};
    if (const auto& range = spec.fitted_range) {
      row.insert(row.end(), {range->min_core_mhz, range->max_core_mhz,
                             static_cast<std::int64_t>(range->points)});
    } else {
      row.insert(row.end(), 3, std::monostate{});
    }
    row.push_back(error_of(spec, {"k_fold_time_mape_pct", "forward_sweep_time_mape_pct"}));
    row.push_back(error_of(spec, {"k_fold_power_mape_pct", "kernels_left_out_power_mape_pct",
                                  "other_kernels_power_mape_pct"}));
    row.push_back(error_of(spec, {"k_fold_energy_mape_pct", "forward_sweep_energy_mape_pct"}));
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
      "\nErrors are on points that were held out; docs/gpus.md says of which data.\n"
      "Examples:\n  rubato gpus\n  rubato gpus a100-sxm4-80gb > my-gpu.json");
  return [o](const RunContext&) {
    if (o->name.empty()) {
      print(list(), o->format);
    } else {
      print(to_json(load_gpu_spec(o->name)));
    }
    return ExitStatus::done;
  };
}

}  // namespace rubato
