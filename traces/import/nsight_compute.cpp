// CSV of Nsight Compute: the raw page (one column per metric, units in the second line) or the
// long form (one line per metric).

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/kernel_names.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

namespace {

constexpr std::uint64_t max_csv_bytes = std::uint64_t{1} << 30;

struct Metric {
  std::string unit, value;
};

// One profiled launch.
struct CounterRow {
  std::string kernel, stream, device, block, grid;
  std::map<std::string, Metric, std::less<>> metrics;
};

// ---- Numbers as a locale writes them ----

// Separators of thousands that are never decimal ones: blanks (of French, also in UTF-8 and
// Latin-1) and apostrophes (of Swiss German).
std::string without_blanks_between(std::string_view text) {
  constexpr std::array<std::string_view, 6> blanks{
      "\xe2\x80\xaf", "\xe2\x80\x99", "\xc2\xa0", "\xa0", " ", "'"};
  std::string plain(text);
  for (const std::string_view blank : blanks) {
    for (std::size_t at = plain.find(blank); at != std::string::npos; at = plain.find(blank, at))
      plain.erase(at, blank.size());
  }
  return plain;
}

// Which of ',' and '.' is the decimal separator for a number of this text; '\0': either.
// @param whole  whether the number can be a whole one only
char decimal_separator_of(std::string_view text, bool whole) {
  const std::size_t last = text.find_last_of(",.");
  if (last == std::string_view::npos ||
      text.find_first_not_of("0123456789,.-+") != std::string_view::npos)
    return '\0';
  const char separator = text[last], other = separator == ',' ? '.' : ',';
  if (text.find(other) != std::string_view::npos) return separator;  // the last of two kinds
  if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
  const std::vector<std::string_view> groups = split(text, separator);
  constexpr std::size_t group = 3;
  const bool grouped = !groups.front().empty() && groups.front().size() <= group &&
                       groups.front() != "0" &&
                       std::all_of(groups.begin() + 1, groups.end(),
                                   [](std::string_view digits) { return digits.size() == group; });
  if (!grouped) return groups.size() == 2 ? separator : '\0';  // or a version: "12.4.131"
  return groups.size() > 2 || whole ? other : '\0';
}

// The decimal separator of a whole file.
class Locale {
 public:
  void see(std::string_view text, bool whole) {
    const char found = decimal_separator_of(without_blanks_between(text), whole);
    if (found == ',') ++commas_;
    if (found == '.') ++points_;
  }
  [[nodiscard]] std::optional<double> number(std::string_view text) const {
    const char decimal = commas_ > points_ ? ',' : '.', thousands = decimal == ',' ? '.' : ',';
    std::string plain = without_blanks_between(text);
    std::erase(plain, thousands);
    std::ranges::replace(plain, decimal, '.');
    return parse_number(plain);
  }

 private:
  std::size_t commas_ = 0, points_ = 0;
};

// Factor to seconds, bytes or bytes a second; Nsight Compute scales by 1000.
std::optional<double> unit_factor(std::string_view unit) {
  for (const std::string_view rate : {"/second", "/s"}) {
    if (unit.ends_with(rate)) unit.remove_suffix(rate.size());
  }
  static const std::map<std::string_view, double> factors{
      {"ns", 1e-9},      {"nsecond", 1e-9}, {"us", 1e-6},    {"usecond", 1e-6}, {"ms", 1e-3},
      {"msecond", 1e-3}, {"s", 1.0},        {"second", 1.0}, {"byte", 1.0},     {"Kbyte", 1e3},
      {"Mbyte", 1e6},    {"Gbyte", 1e9},    {"Tbyte", 1e12}, {"inst", 1.0},     {"", 1.0}};
  const auto found = factors.find(unit);
  return found != factors.end() ? std::optional(found->second) : std::nullopt;
}

std::array<std::uint32_t, 3> dim3_of(std::string_view text) {
  std::array<std::uint32_t, 3> out{0, 0, 0};
  std::size_t i = 0;
  for (const char* at = text.data(); at != text.data() + text.size() && i < out.size();) {
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), out[i]);
    if (error == std::errc()) ++i;
    at = error == std::errc() ? end : at + 1;
  }
  return out;
}

class NsightComputeReader {
 public:
  NsightComputeReader(const std::filesystem::path& path, const ImportOptions& options)
      : path_(path), options_(options), builder_(path.filename().string()) {}

  Capture run() {
    builder_.capture().provenance.generator = "Nsight Compute";
    std::int64_t start_ns = 0;
    const std::vector<CounterRow> launches = rows(CsvTable::parse(table_text(), path_.string()));
    find_locale(launches);
    for (const CounterRow& row : launches) add(row, start_ns);
    if (builder_.capture().launches.empty()) {
      throw DataError(
          fmt::format("{}: no launch has gpu__time_duration.sum", printable(path_.string())),
          {.in = {}, .hint = "record with --metrics gpu__time_duration.sum,dram__bytes.sum,..."});
    }
    builder_.capture().left_out.emplace_back(
        "order in time: Nsight Compute runs one kernel at a time, by default at base clocks");
    return std::move(builder_).finish();
  }

 private:
  // Program output and "==PROF==" lines may stand around the table. Where an output was appended to
  // another one, header and units are there again, and lines that are there twice are copies.
  [[nodiscard]] std::string table_text() {
    std::string damage;
    std::string text = read_expanded(path_, std::min(options_.max_expanded_bytes, max_csv_bytes),
                                     options_.partial ? &damage : nullptr);
    if (!damage.empty()) {
      builder_.capture().left_out.push_back(fmt::format("what follows the damage: {}", damage));
      text.resize(text.rfind('\n') + 1);  // the last line is cut
    }
    std::string table;
    std::unordered_set<std::string_view> seen;
    bool quoted = true;
    for (std::string_view line : split(text, '\n')) {
      while (line.ends_with('\r')) line.remove_suffix(1);
      if (table.empty() && is_nsight_compute_header(line))
        quoted = line.starts_with('"');
      else if (table.empty() || line.empty() || quoted != line.starts_with('"'))
        continue;
      if (seen.insert(line).second) {
        table.append(line).append("\n");
      } else if (line.find_first_of("0123456789") < 2) {
        builder_.leave_out("lines that are in the file twice");
      }
    }
    if (table.empty())
      throw DataError(fmt::format("{}: no line begins with \"ID\"", printable(path_.string())));
    return table;
  }

  static CounterRow head(const CsvTable& table, std::size_t row) {
    const auto cell = [&](std::string_view column) {
      const auto found = table.find_column(column);
      return found ? table.cell(row, *found) : std::string();
    };
    return {table.cell(row, table.column("Kernel Name")),
            cell("Stream"),
            cell("Device"),
            cell("Block Size"),
            cell("Grid Size"),
            {}};
  }

  static std::vector<CounterRow> rows(const CsvTable& table) {
    return table.find_column("Metric Name") ? long_rows(table) : wide_rows(table);
  }

  static std::vector<CounterRow> long_rows(const CsvTable& table) {
    const std::size_t id = table.column("ID"), name = table.column("Metric Name"),
                      unit = table.column("Metric Unit"), value = table.column("Metric Value");
    std::vector<CounterRow> rows;
    std::string last;
    for (std::size_t r = 0; r < table.rows(); ++r) {
      const bool timed_again = !rows.empty() && is_time(table.cell(r, name)) &&
                               rows.back().metrics.contains(table.cell(r, name));
      if (rows.empty() || table.cell(r, id) != last || timed_again) rows.push_back(head(table, r));
      last = table.cell(r, id);
      // "Memory Throughput" is a share in one section and bytes a second in another.
      Metric& metric = rows.back().metrics[table.cell(r, name)];
      if (metric.unit.empty() || metric.unit == "%")
        metric = {table.cell(r, unit), table.cell(r, value)};
    }
    return rows;
  }

  static std::vector<CounterRow> wide_rows(const CsvTable& table) {
    std::vector<CounterRow> rows;
    for (std::size_t r = 1; r < table.rows(); ++r) {  // row 0 holds units
      CounterRow& row = rows.emplace_back(head(table, r));
      for (std::size_t c = 0; c < table.header().size(); ++c)
        row.metrics[table.header()[c]] = {table.cell(0, c), table.cell(r, c)};
    }
    return rows;
  }

  // "1.118" alone may be either; percents and bytes, of which there are whole ones only, tell. Of
  // what is no metric ("8.0", a compute capability) nothing is said.
  void find_locale(const std::vector<CounterRow>& launches) {
    for (const CounterRow& row : launches) {
      for (const auto& [name, metric] : row.metrics) {
        const bool is_metric = name.find("__") != std::string::npos || !metric.unit.empty();
        const bool counts = metric.unit == "byte" || metric.unit == "ns" ||
                            metric.unit == "nsecond" || metric.unit == "inst";
        const bool whole =
            counts && (name.ends_with(".sum") || name.ends_with(".max") || name.ends_with(".min"));
        if (is_metric) locale_.see(metric.value, whole);
      }
    }
  }

  // The details page has labels in place of names.
  static constexpr std::string_view time_name = "gpu__time_duration.sum", time_label = "Duration";
  [[nodiscard]] static bool is_time(std::string_view metric) {
    return metric == time_name || metric == time_label;
  }
  [[nodiscard]] std::optional<double> time_s(const CounterRow& row) {
    return value(row, row.metrics.contains(time_name) ? time_name : time_label);
  }

  [[nodiscard]] std::optional<double> dram_bytes(const CounterRow& row) {
    if (const auto both = value(row, "dram__bytes.sum")) return both;
    const auto read = value(row, "dram__bytes_read.sum"),
               written = value(row, "dram__bytes_write.sum");
    if (read && written) return *read + *written;
    const auto label = row.metrics.find("Memory Throughput");
    if (label == row.metrics.end() || label->second.unit == "%") return std::nullopt;
    const auto per_s = value(row, "Memory Throughput"), lasts_s = time_s(row);
    return per_s && lasts_s ? std::optional(*per_s * *lasts_s) : std::nullopt;
  }

  // Nothing where the metric is missing or n/a.
  [[nodiscard]] std::optional<double> value(const CounterRow& row, std::string_view metric) {
    const auto found = row.metrics.find(metric);
    if (found == row.metrics.end() || found->second.value.empty() ||
        found->second.value.starts_with("n/a") || found->second.value == "nan")
      return std::nullopt;
    const auto number = locale_.number(found->second.value);
    const bool no_unit = found->second.unit.empty() && is_time(metric);
    const auto factor = no_unit ? std::nullopt : unit_factor(found->second.unit);
    const double value = number && factor ? *number * *factor : -1.0;
    if (value >= 0.0 && std::isfinite(value)) return value;
    if (options_.partial) {
      builder_.leave_out("values that are no number >= 0 or have an unknown unit");
      return std::nullopt;
    }
    throw DataError(
        fmt::format("{}: {} is '{}' '{}'; expected a number >= 0 with a unit of time or bytes",
                    printable(path_.string()), metric, printable(found->second.value),
                    printable(found->second.unit)),
        {.in = printable(row.kernel), .hint = "record with --print-units base"});
  }

  // Outside the tensor cores; unknown where those were busy, which these counters do not see.
  [[nodiscard]] std::optional<double> flops(const CounterRow& row) {
    if (value(row, "sm__inst_executed_pipe_tensor.sum").value_or(0.0) > 0.0) return std::nullopt;
    std::optional<double> sum;
    for (const char precision : {'f', 'h', 'd'}) {
      for (const auto& [operation, count] : {std::pair{"add", 1.0}, {"mul", 1.0}, {"fma", 2.0}}) {
        const auto found =
            value(row, fmt::format("smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum", precision,
                                   operation));
        if (found) sum = sum.value_or(0.0) + count * *found;
      }
    }
    return sum;
  }

  void add(const CounterRow& row, std::int64_t& start_ns) {
    const auto lasts_s = time_s(row);
    if (lasts_s.value_or(0.0) == 0.0) return builder_.leave_out_untimed_launch();
    Kernel kernel;
    kernel.label = row.kernel;
    kernel.kind = kernel_class_of(row.kernel);
    const LaunchShape shape{dim3_of(row.grid), dim3_of(row.block)};
    if (shape.grid[0] > 0 && shape.block[0] > 0) kernel.launch = shape;
    kernel.dram_bytes = dram_bytes(row);
    kernel.flops = flops(row);
    if (kernel.dram_bytes || kernel.flops) kernel.work_source = WorkSource::measured;
    constexpr double ns_per_s = 1e9;
    const CapturedLaunch launch{
        .kernel = builder_.kernel(kernel, short_kernel_name(row.kernel)),
        .stream = builder_.stream(static_cast<std::uint32_t>(parse_count(row.device).value_or(0)),
                                  static_cast<std::int64_t>(parse_count(row.stream).value_or(0))),
        .start_ns = start_ns,
        .duration_ns = clamped_ns(*lasts_s * ns_per_s),
        .launch_ns = {},
        .step = {},
        .pass = Pass::unknown};
    if (builder_.launch(launch)) start_ns = launch.end_ns();
  }

  const std::filesystem::path& path_;
  const ImportOptions& options_;
  CaptureBuilder builder_;
  Locale locale_;
};

}  // namespace

bool is_nsight_compute_header(std::string_view line) {
  if (line.starts_with('"')) line.remove_prefix(1);
  if (!line.starts_with("ID")) return false;
  line.remove_prefix(2);
  if (line.starts_with('"')) line.remove_prefix(1);
  return !line.empty() && std::string_view(",;\t").find(line.front()) != std::string_view::npos &&
         line.find("Kernel Name") != std::string_view::npos;
}

Capture import_nsight_compute(const std::filesystem::path& path, const ImportOptions& options) {
  return NsightComputeReader(path, options).run();
}

}  // namespace rubato
