#include "traces/power_columns.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// Names of columns as log_field() gives them; of several the first of the names listed wins.
using Names = std::span<const std::string_view>;
constexpr auto time_names =
    std::to_array<std::string_view>({"timestamp", "unix", "unix.time", "epoch", "time", "datetime",
                                     "date.time", "elapsed", "ts", "t"});
constexpr auto power_names =
    std::to_array<std::string_view>({"power.draw.instant",
                                     "power.instant",
                                     "instant.power",
                                     "instantaneous.power",
                                     "power.draw",
                                     "power",
                                     "pwr",
                                     "powr",
                                     "155",
                                     "power.usage",
                                     "dcgm.fi.dev.power.usage",
                                     "gpu.power",
                                     "gpu.power.draw",
                                     "board.power",
                                     "current.socket.power",
                                     "socket.power",
                                     "watts",
                                     "watt",
                                     "power.watts",
                                     "power.draw.average",
                                     "power.average",
                                     "average.power",
                                     "avg.power",
                                     "average.socket.power",
                                     "current.socket.graphics.package.power",
                                     "average.graphics.package.power"});
// "core" and "mem" alone are shares of use in nvidia-smi dmon: they count with a unit only.
constexpr auto core_names = std::to_array<std::string_view>(
    {"clocks.current.sm", "clocks.sm", "clocks.current.graphics", "clocks.gr", "sm.clock", "smclk",
     "pclk", "gfxclk", "gfx.clk", "gfx.0.clk", "sclk.clock.speed:", "100", "core"});
constexpr auto mem_names = std::to_array<std::string_view>(
    {"clocks.current.memory", "clocks.mem", "mem.clock", "memclk", "mclk", "101", "mem"});

struct IdentityNames {
  std::string_view label;
  std::vector<std::string_view> names;
};
// In the order in which they are told.
const std::array identities{
    IdentityNames{"host", {"host", "hostname", "node", "nodename", "node.name"}},
    IdentityNames{"index",
                  {"index", "gpu", "gpu.index", "gpu.id", "device", "device.id", "device.index",
                   "idx", "entity"}},
    IdentityNames{"bus id",
                  {"pci.bus.id", "gpu.bus.id", "bus.id", "pci.bus", "pci.address", "bdf"}},
    IdentityNames{"UUID", {"uuid", "gpu.uuid"}},
    IdentityNames{"serial", {"serial", "gpu.serial"}},
    IdentityNames{"name", {"name", "gpu.name", "model", "modelname", "model.name"}}};

std::optional<std::size_t> column_of(const std::vector<LogField>& header, Names names) {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(header, name, &LogField::name);
    if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  }
  return std::nullopt;
}

// "power3", "gpu3.power": powers of several GPUs side by side.
std::optional<std::string> gpu_of_column(const std::string& name) {
  for (const auto& [before, behind] : {std::pair<std::string_view, std::string_view>{"power", ""},
                                       {"gpu", ".power"},
                                       {"gpu.", ".power"},
                                       {"power.gpu", ""}}) {
    if (!name.starts_with(before) || !name.ends_with(behind) ||
        name.size() <= before.size() + behind.size())
      continue;
    const std::string digits =
        name.substr(before.size(), name.size() - before.size() - behind.size());
    if (parse_count(digits)) return digits;
  }
  return std::nullopt;
}

std::optional<std::size_t> clock_column(const std::vector<LogField>& header, Names names) {
  const auto column = column_of(header, names);
  if (column && header[*column].name == names.back() && header[*column].unit.empty())
    return std::nullopt;
  return column;
}

// "00000000:07:00.0", "0000:07:00.0" and "07:00.0" are the same place.
std::string bus_id(std::string_view text) {
  std::string id = lower_case(text);
  if (std::ranges::count(id, ':') == 2) {
    const std::size_t domain = id.find(':');
    if (id.find_first_not_of('0') >= domain) id = id.substr(domain + 1);
  }
  return id;
}

bool says(const LoggedGpu& gpu, std::string_view wanted) {
  return std::ranges::any_of(gpu, [&](const auto& one) {
    const auto& [label, value] = one;
    if (label == "bus id") return bus_id(value) == bus_id(wanted);
    if (label == "index" && parse_count(wanted)) return parse_count(value) == parse_count(wanted);
    const std::string have = lower_case(value), want = lower_case(wanted);
    return have == want || (label == "UUID" && want.starts_with("gpu-") && have.starts_with(want));
  });
}

}  // namespace

PowerColumns power_columns(std::vector<LogField> header, char separator) {
  PowerColumns s;
  s.separator = separator;
  s.header = std::move(header);
  s.time = column_of(s.header, time_names);
  if (!s.time && s.header.front().name.empty()) s.time = 0;  // the index of a data frame
  s.date = column_of(s.header, std::array<std::string_view, 1>{"date"});
  if (!s.time && s.date) std::swap(s.time, s.date);
  for (const std::string_view name : power_names) {
    if (const auto column = column_of(s.header, std::span(&name, 1))) s.powers.push_back(*column);
  }
  for (std::size_t i = 0; i < s.header.size() && s.powers.empty(); ++i) {
    if (const auto gpu = gpu_of_column(s.header[i].name)) s.side_by_side.emplace_back(i, *gpu);
  }
  s.core = clock_column(s.header, core_names);
  s.mem = clock_column(s.header, mem_names);
  for (const IdentityNames& one : identities) {
    if (const auto column = column_of(s.header, one.names))
      s.identity.emplace_back(*column, one.label);
  }
  return s;
}

std::optional<PowerColumns> power_header(std::string_view line) {
  if (line.starts_with("# HELP") || line.starts_with("# TYPE")) return std::nullopt;  // Prometheus
  const std::string_view bare = line.starts_with('#') ? without_blanks(line.substr(1)) : line;
  for (const char separator : {',', ';', '\t', ' '}) {
    const auto cells = log_cells(bare, separator);
    if (cells.size() < 2 && separator != ' ') continue;
    std::vector<LogField> header;
    for (const std::string_view cell : cells) header.push_back(log_field(cell));
    const auto entity = std::ranges::find_if(
        header, [](const LogField& field) { return field.name.ends_with("entity"); });
    if (entity != header.end() && separator == ' ')
      header.erase(header.begin(), entity);  // what is before it is no column of ours
    if (header.empty()) continue;
    PowerColumns found = power_columns(std::move(header), separator);
    found.entity = separator == ' ' && found.header.front().name.ends_with("entity");
    const bool named = !found.powers.empty() || !found.side_by_side.empty();
    const bool blanks_mean_little = separator == ' ' && !line.starts_with('#');
    if (found.entity || (named && (found.time || !blanks_mean_little))) return found;
  }
  return std::nullopt;
}

bool has_column(const std::vector<LogField>& header, std::string_view name) {
  return std::ranges::find(header, name, &LogField::name) != header.end();
}

std::vector<std::string_view> log_cells(std::string_view line, char separator) {
  std::vector<std::string_view> cells;
  for (const std::string_view cell : split(line, separator)) {
    if (separator != ' ' || !without_blanks(cell).empty()) cells.push_back(without_blanks(cell));
  }
  return cells;
}

std::string text_of(const LoggedGpu& gpu) {
  std::vector<std::string> parts;
  for (const auto& [label, value] : gpu)
    parts.push_back(fmt::format("{} {}", label, printable(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool is_gpu(const LoggedGpu& gpu, std::string_view wanted) {
  if (says(gpu, wanted)) return true;
  const std::vector<std::string_view> parts = split(wanted, '/');
  return parts.size() > 1 && std::ranges::all_of(parts, [&](std::string_view part) {
           return says(gpu, without_blanks(part));
         });
}

bool may_be_one(const LoggedGpu& a, const LoggedGpu& b) {
  return std::ranges::all_of(a, [&](const auto& one) {
    const auto other = std::ranges::find(b, one.first, &LoggedGpu::value_type::first);
    return other == b.end() || other->second == one.second;
  });
}

}  // namespace rubato
