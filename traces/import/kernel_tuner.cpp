#include "traces/import/kernel_tuner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr std::string_view blanks = " \t\r\n";

// Parameters that say how the GPU was set, not what ran.
constexpr auto settings = std::to_array<std::string_view>(
    {"nvml_gr_clock", "tegra_gr_clock", "nvml_mem_clock", "nvml_pwr_limit"});

// Core and memory clocks as set and as observed, the first that a row has.
constexpr auto set_core = std::to_array<std::string_view>({"nvml_gr_clock", "tegra_gr_clock"});
constexpr auto seen_core = std::to_array<std::string_view>({"core_freq", "gr_freq", "sm_freq"});

// Observers name what they measured "nvml_energy" (J) and "nvml_power" (W). Those known, by how far
// they are believed; others follow by name. Without a prefix it is the user's own metric.
constexpr auto observers =
    std::to_array<std::string_view>({"nvml_", "ps_", "pmt_", "tegra_", "nvidia_", "rocm_"});

// Observers of something other than the GPU.
constexpr auto of_the_host = std::to_array<std::string_view>({"rapl_", "cpu_", "dram_", "likwid_"});

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

std::optional<double> first_positive(const JsonNode& row, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto value = positive(row, key)) return value;
  }
  return std::nullopt;
}

struct Cache {
  std::string kernel, gpu, observer;
  std::vector<std::string> parameters;  ///< settings aside
  std::vector<JsonNode> rows;           ///< with a time, a clock and an energy or power
  std::vector<std::string> notes;
  std::size_t failed = 0;
};

std::optional<double> energy_of(const JsonNode& row, std::string_view observer) {
  return positive(row, fmt::format("{}energy", observer));
}

std::optional<double> power_of(const JsonNode& row, std::string_view observer) {
  return positive(row, fmt::format("{}power", observer));
}

bool is_complete(const JsonNode& row, std::string_view observer) {
  return positive(row, "time") && (energy_of(row, observer) || power_of(row, observer)) &&
         (first_positive(row, set_core) || first_positive(row, seen_core));
}

// Of the observers of the GPU's energy or power, the one with the most complete rows, and how many
// others there are.
std::pair<std::string, std::size_t> observer_of(const std::vector<JsonNode>& rows) {
  std::map<std::string, std::size_t> complete;
  for (const JsonNode& row : rows) {
    std::set<std::string> seen;
    for (const std::string& key : row.keys()) {
      for (const std::string_view what : {"energy", "power"}) {
        if (key != what && !key.ends_with(fmt::format("_{}", what))) continue;
        const std::string observer = key.substr(0, key.size() - what.size());
        if (std::ranges::find(of_the_host, observer) == of_the_host.end()) seen.insert(observer);
      }
    }
    for (const std::string& observer : seen) complete[observer] += is_complete(row, observer);
  }
  const auto rank = [](const std::string& observer) {
    return observer.empty() ? std::ssize(observers) + 1
                            : std::ranges::find(observers, observer) - observers.begin();
  };
  std::string best = "nvml_";
  std::size_t most = 0, others = 0;
  for (const auto& [observer, count] : complete) {
    others += count > 0 ? 1 : 0;
    if (count < most || (count == most && rank(observer) >= rank(best))) continue;
    best = observer;
    most = count;
  }
  return {best, others > 0 ? others - 1 : 0};
}

Cache cache_of(const JsonNode& root) {
  if (!root.find("cache") && root.find("results"))
    root.fail("is what Kernel Tuner's store_output_file writes, without kernel and GPU",
              "give the file that tune_kernel(..., cache=\"FILE\") writes");
  Cache cache{.kernel = root.at("kernel_name").text(),
              .gpu = {},
              .observer = {},
              .parameters = {},
              .rows = {},
              .notes = {}};
  if (const auto device = root.find("device_name")) cache.gpu = device->text();
  for (const JsonNode& key : root.at("tune_params_keys").items()) {
    const std::string name = key.text();
    if (std::ranges::find(settings, name) == settings.end()) cache.parameters.push_back(name);
  }
  const JsonNode rows = root.at("cache");
  std::vector<JsonNode> all;
  for (const std::string& key : rows.keys()) all.push_back(rows.at(key));
  std::size_t others = 0;
  std::tie(cache.observer, others) = observer_of(all);
  if (cache.observer != "nvml_" || others > 0)
    cache.notes.push_back(fmt::format("energies are those of {}energy or {}power{}", cache.observer,
                                      cache.observer,
                                      others > 0 ? "; the cache has other observers too" : ""));
  for (const JsonNode& row : all) {
    if (is_complete(row, cache.observer))
      cache.rows.push_back(row);
    else
      ++cache.failed;
  }
  if (cache.rows.empty()) {
    rows.fail("no configuration has 'time', a clock, and an energy or power such as 'nvml_energy'",
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
      cache.rows, [](const JsonNode& row) { return first_positive(row, set_core).has_value(); });
  std::vector<std::string> header{
      "kernel",  "gpu",        clock_is_set ? "core_mhz_requested" : "core_mhz",
      "mem_mhz", "time_s",     "energy_j",
      "power_w", "power_cap_w"};
  const std::size_t own = header.size();
  for (const std::string& parameter : cache.parameters) {
    if (std::ranges::find(columns_of_sweeps, parameter) != columns_of_sweeps.end()) continue;
    if (std::ranges::find(header, parameter) == header.end()) header.push_back(parameter);
  }
  KernelTunerTable table{.csv = csv_line(header), .left_out = {}, .notes = cache.notes};
  constexpr double s_per_ms = 1e-3;
  for (const JsonNode& row : cache.rows) {
    std::string kernel = cache.kernel;
    for (const std::string& parameter : in_name)
      kernel += fmt::format(" {}={}", parameter, value_text(row.at(parameter)));
    const auto set_mhz = first_positive(row, set_core), set_mem = positive(row, "nvml_mem_clock");
    const auto energy_j = energy_of(row, cache.observer);
    std::vector<std::string> cells{
        kernel,
        cache.gpu,
        cell(set_mhz ? set_mhz : rounded(first_positive(row, seen_core))),
        cell(set_mem ? set_mem : rounded(positive(row, "mem_freq"))),
        format_number(*positive(row, "time") * s_per_ms),
        cell(energy_j),
        cell(energy_j ? std::nullopt : power_of(row, cache.observer)),
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
