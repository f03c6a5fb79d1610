#include "traces/import/kernel_tuner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr std::string_view blanks = " \t\r\n";

// Parameters that say how the GPU was set, not what ran.
constexpr std::array<std::string_view, 3> settings{"nvml_gr_clock", "nvml_mem_clock",
                                                   "nvml_pwr_limit"};

// What readers of sweeps take for numbers of a row or parts of its name. A parameter of such a name
// means something else and gets no column.
constexpr auto columns_of_sweeps = std::to_array<std::string_view>(
    {"kernel", "workload", "workload_id", "batch_size", "stage", "instruction", "pass", "count",
     "core_mhz", "core_mhz_requested", "frequency", "time", "energy", "dram_bytes", "dram_active",
     "dram_read_transactions", "dram_write_transactions"});

JsonDocument parse_cache(std::string_view text, const std::string& name) {
  try {
    return JsonDocument::parse(text, name);
  } catch (const DataError&) {
    // The tuner appends: the file of one that was interrupted has no closing braces.
    const auto end = text.find_last_not_of(std::string(blanks) + ",");
    try {
      return JsonDocument::parse(std::string(text.substr(0, end + 1)) + "}}", name);
    } catch (const DataError&) {
    }
    throw;
  }
}

std::string value_text(const JsonNode& value) {
  if (value.is_text()) return value.text();
  if (value.is_number()) return format_number(value.number());
  return value.boolean() ? "true" : "false";
}

// A number that is there, positive and below 1e15. Failed configurations hold the name of an error,
// or an absurd time.
std::optional<double> positive(const JsonNode& row, std::string_view key) {
  constexpr double absurd = 1e15;
  const auto value = row.find(key);
  if (!value || !value->is_number()) return std::nullopt;
  const double number = value->number();
  return number > 0.0 && number < absurd ? std::optional(number) : std::nullopt;
}

std::string cell(const std::optional<double>& value) {
  return value ? format_number(*value) : std::string{};
}

std::optional<double> rounded(const std::optional<double>& value) {
  return value ? std::optional(std::round(*value)) : std::nullopt;
}

struct Cache {
  std::string kernel, gpu;
  std::vector<std::string> parameters;  ///< settings aside
  std::vector<JsonNode> rows;           ///< with a time, a clock and an energy or power
  std::size_t failed = 0;
};

bool is_complete(const JsonNode& row) {
  return positive(row, "time") && (positive(row, "nvml_energy") || positive(row, "nvml_power")) &&
         (positive(row, "nvml_gr_clock") || positive(row, "core_freq"));
}

Cache cache_of(const JsonNode& root) {
  Cache cache{.kernel = root.at("kernel_name").text(), .gpu = {}, .parameters = {}, .rows = {}};
  if (const auto device = root.find("device_name")) cache.gpu = device->text();
  for (const JsonNode& key : root.at("tune_params_keys").items()) {
    const std::string name = key.text();
    if (std::ranges::find(settings, name) == settings.end()) cache.parameters.push_back(name);
  }
  const JsonNode rows = root.at("cache");
  for (const std::string& key : rows.keys()) {
    const JsonNode row = rows.at(key);
    if (is_complete(row))
      cache.rows.push_back(row);
    else
      ++cache.failed;
  }
  if (cache.rows.empty()) {
    rows.fail("no configuration has 'time', a clock, and 'nvml_energy' or 'nvml_power'",
              "tune 'nvml_gr_clock', or observe 'core_freq', with "
              "NVMLObserver([\"nvml_energy\", \"core_freq\"])");
  }
  return cache;
}

// The parameters that tell configurations apart.
std::vector<std::string> varying(const Cache& cache) {
  std::vector<std::string> out;
  for (const std::string& parameter : cache.parameters) {
    std::set<std::string> values;
    for (const JsonNode& row : cache.rows) values.insert(value_text(row.at(parameter)));
    if (values.size() > 1) out.push_back(parameter);
  }
  return out;
}

}  // namespace

bool is_kernel_tuner_cache(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(blanks);
  return first != std::string_view::npos && text[first] == '{';
}

KernelTunerTable read_kernel_tuner_cache(std::string_view text, const std::string& name) {
  const JsonDocument document = parse_cache(text, name);
  const Cache cache = cache_of(document.root());
  const std::vector<std::string> in_name = varying(cache);
  const bool clock_is_set = std::ranges::any_of(
      cache.rows, [](const JsonNode& row) { return positive(row, "nvml_gr_clock").has_value(); });
  std::vector<std::string> header{
      "kernel",  "gpu",        clock_is_set ? "core_mhz_requested" : "core_mhz",
      "mem_mhz", "time_s",     "energy_j",
      "power_w", "power_cap_w"};
  const std::size_t own = header.size();
  for (const std::string& parameter : cache.parameters) {
    if (std::ranges::find(columns_of_sweeps, parameter) != columns_of_sweeps.end()) continue;
    if (std::ranges::find(header, parameter) == header.end()) header.push_back(parameter);
  }
  KernelTunerTable table{.csv = csv_line(header), .left_out = {}};
  constexpr double s_per_ms = 1e-3;
  for (const JsonNode& row : cache.rows) {
    std::string kernel = cache.kernel;
    for (const std::string& parameter : in_name)
      kernel += fmt::format(" {}={}", parameter, value_text(row.at(parameter)));
    const auto set_mhz = positive(row, "nvml_gr_clock"), set_mem = positive(row, "nvml_mem_clock");
    std::vector<std::string> cells{
        kernel,
        cache.gpu,
        cell(set_mhz ? set_mhz : rounded(positive(row, "core_freq"))),
        cell(set_mem ? set_mem : rounded(positive(row, "mem_freq"))),
        format_number(*positive(row, "time") * s_per_ms),
        cell(positive(row, "nvml_energy")),
        cell(positive(row, "nvml_energy") ? std::nullopt : positive(row, "nvml_power")),
        cell(positive(row, "nvml_pwr_limit"))};
    for (std::size_t column = own; column < header.size(); ++column)
      cells.push_back(value_text(row.at(header[column])));
    table.csv += csv_line(cells);
  }
  if (cache.failed > 0) {
    table.left_out.push_back(fmt::format("{} of {} configurations of {}: no time, clock, or energy",
                                         cache.failed, cache.failed + cache.rows.size(),
                                         cache.kernel));
  }
  return table;
}

}  // namespace rubato
