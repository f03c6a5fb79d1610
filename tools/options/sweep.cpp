#include "tools/options/sweep.hpp"

#include <array>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "models/gpu/device.hpp"
#include "tools/command_line.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

std::map<std::string, std::string> pairs(const std::vector<std::string>& texts,
                                         std::string_view option) {
  std::map<std::string, std::string> out;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("{} is '{}'; expected NAME=VALUE", option, text));
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

}  // namespace

SweepOptions table_of(const std::string& path) {
  SweepOptions table;
  table.file = path;
  if (!path.ends_with(".toml")) return table;
  const JsonDocument document = JsonDocument::parse_toml(read_file(path), path);
  const JsonNode root = document.root();
  root.expect_keys({"file"}, {"columns", "where", "keep_implausible", "missing"});
  table.file = (std::filesystem::path(path).parent_path() / root.at("file").text()).string();
  const auto pairs_of = [&](const char* key, std::vector<std::string>& pairs) {
    const auto node = root.find(key);
    if (!node) return;
    for (const std::string& name : node->keys())
      pairs.push_back(fmt::format("{}={}", name, node->at(name).text()));
  };
  pairs_of("columns", table.columns);
  pairs_of("where", table.where);
  if (const auto keep = root.find("keep_implausible")) table.keep_implausible = keep->boolean();
  if (const auto missing = root.find("missing")) table.missing = missing->text();
  if (table.missing != "leave-out" && table.missing != "model")
    root.at("missing").fail(
        fmt::format("is '{}'; expected leave-out or model", printable(table.missing)));
  return table;
}

void add_column_options(CommandLine& app, SweepOptions& options) {
  app.add_option("--column", options.columns,
                 "A column by another name: time_s=Duration:ms; may be repeated");
  app.add_option("--where", options.where,
                 "Only rows with this value: 'gpu=GTX 1080 Ti'; may be repeated");
  app.add_flag("--keep-implausible", options.keep_implausible,
               "Keep rows whose power falls sharply at a higher clock");
  app.group("Table of measurements", {"--column", "--where", "--keep-implausible"});
}

Option* add_sweep_options(CommandLine& app, SweepOptions& options) {
  Option* sweep = app.add_option("SWEEP", options.file,
                                 "CSV: kernel, core_mhz, mem_mhz, time_s, power_w or energy_j")
                      ->reads_file();
  app.add_option("--idle", options.idle, "CSV with idle power: core_mhz, mem_mhz, power_w");
  add_column_options(app, options);
  return sweep;
}

void add_fit_options(CommandLine& app, FitOptions& options) {
  app.add_option("--sigma", options.sigma, "Relative error of a measurement that a fit may leave")
      ->capture_default_str()
      ->positive();
  app.add_option(
         "--curve-points", options.curve_core_mhz,
         "Core clocks in MHz where the voltage curve may bend, ascending, e.g. 345,975,1305 "
         "[up to twelve of the swept ones]")
      ->delimiter(',')
      ->positive();
  app.add_flag("--power-only", options.power_only,
               "Fit voltage, core and base power; times and DRAM stay those of --gpu");
}

SweepFitOptions fit_options(const FitOptions& options) {
  return {.time_sigma = options.sigma,
          .power_sigma = options.sigma,
          .curve_core_mhz = options.curve_core_mhz,
          .power_only = options.power_only};
}

SweepColumns sweep_columns(const SweepOptions& options) {
  return {.renamed = pairs(options.columns, "--column"),
          .where = pairs(options.where, "--where"),
          .keep_implausible = options.keep_implausible};
}

Sweep load_sweep(const SweepOptions& options, const GpuSpec& spec) {
  Sweep sweep = read_sweep(options.file, spec, sweep_columns(options));
  if (!options.idle.empty()) add_idle(sweep, options.idle, spec);
  for (const std::string& line : sweep.left_out) tell("left out: {}\n", printable(line));
  for (const std::string& line : sweep.notes) tell("note: {}\n", printable(line));
  return sweep;
}

GpuSpec load_gpu_for_sweep(const std::string& gpu, const SweepOptions& options) {
  const std::array device{gpu_in_sweep(options.file, sweep_columns(options))};
  if (device.front().empty()) return load_gpu(gpu.empty() ? usual_gpu() : gpu);
  if (gpu.empty()) return load_gpu_of_devices(device, options.file);
  GpuSpec spec = load_gpu(gpu);
  if (match_device(spec, device.front()) == DeviceMatch::other)
    tell("note: measured on {}, but the GPU model is that of {}\n", printable(device.front()),
         printable(spec.title));
  return spec;
}

}  // namespace rubato
