#include "traces/power_log.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\"";
  const std::size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

std::vector<std::string_view> trimmed_cells(std::string_view line, char separator) {
  std::vector<std::string_view> cells = split(line, separator);
  for (std::string_view& cell : cells) cell = trimmed(cell);
  return cells;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> list;
  for (const std::string_view cell : trimmed_cells(line, ' ')) {
    if (!cell.empty()) list.push_back(cell);
  }
  return list;
}

struct Line {
  std::size_t number;
  std::string_view text;
  bool complete;  // ends with a line break
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty()) lines.push_back({number, line, end != std::string_view::npos});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

bool is_missing(std::string_view cell) {
  return cell.empty() || cell == "N/A" || cell == "nan" || cell.front() == '[';
}

// "341.60 W" -> 341.6; the unit may be absent.
std::optional<double> quantity(std::string_view cell) {
  return parse_number(cell.substr(0, cell.find(' ')));
}

// "2024/05/22 17:15:22.123" or with dashes and T, as seconds since 1970 of that calendar.
std::optional<double> calendar_seconds(std::string_view text) {
  if (text.size() < 19) return std::nullopt;
  const auto field = [&](std::size_t at, std::size_t length) {
    return parse_count(text.substr(at, length));
  };
  const auto year = field(0, 4), month = field(5, 2), day = field(8, 2);
  const auto hour = field(11, 2), minute = field(14, 2);
  std::string_view rest = text.substr(17);
  if (rest.back() == 'Z') rest.remove_suffix(1);
  const auto second = parse_number(rest);
  const bool separated = (text[4] == '/' || text[4] == '-') && text[7] == text[4] &&
                         (text[10] == ' ' || text[10] == 'T') && text[13] == ':' && text[16] == ':';
  if (!separated || !year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second < 0.0 || *second >= 61.0)
    return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return 86400.0 * static_cast<double>(days) + 3600.0 * static_cast<double>(*hour) +
         60.0 * static_cast<double>(*minute) + *second;
}

// Field names as written, without "[W]" and in lower case.
std::string field_name(std::string_view cell) {
  return lower_case(trimmed(cell.substr(0, cell.find(" ["))));
}

// Which column holds what; of several the first of the names listed wins.
struct Columns {
  std::optional<std::size_t> time, gpu, power, core, mem;
  std::string power_name;
};

std::optional<std::size_t> first_of(const std::vector<std::string>& header,
                                    std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(header, name);
    if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  }
  return std::nullopt;
}

Columns columns_of(const std::vector<std::string>& header, const PowerLogOptions& options) {
  Columns c;
  c.time = first_of(header, {"timestamp", "timestamp_s", "unix_s", "time_s", "time"});
  c.gpu = first_of(header, {"index", "gpu", "gpu_index"});
  const std::string zeus = fmt::format("power{}", options.gpu.value_or(0));
  const std::string of_gpu = fmt::format("gpu{}_power", options.gpu.value_or(0));
  c.power = first_of(header, {"power.draw.instant", "power.draw", "power.draw.average", "power_w",
                              "power", "power_draw", zeus, of_gpu, "power [w]"});
  c.core = first_of(header, {"clocks.current.sm", "clocks.sm", "clocks.current.graphics",
                             "core_mhz", "sm_clock"});
  c.mem = first_of(header, {"clocks.current.memory", "clocks.mem", "mem_mhz", "mem_clock"});
  if (c.power) c.power_name = header[*c.power];
  return c;
}

// Rows of a log on their way to samples.
class Reader {
 public:
  Reader(std::string name, const PowerLogOptions& options) : options_(options) {
    log_.file = std::move(name);
  }

  [[nodiscard]] PowerLog read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // as Windows writes it
    const std::vector<Line> lines = lines_of(text);
    const auto header = std::ranges::find_if(lines, [](const Line& line) {
      const std::string start = lower_case(line.text.substr(0, 32));
      return line.text.find(',') != std::string_view::npos || start.starts_with("#entity") ||
             start.starts_with("# entity") || start.find(" #entity") != std::string::npos;
    });
    if (header == lines.end()) throw unknown();
    const std::span rows(std::next(header), lines.end());
    if (header->text.find("ntity") != std::string_view::npos) {
      read_dcgm(*header, rows);
    } else {
      read_csv(*header, rows);
    }
    finish();
    return std::move(log_);
  }

 private:
  struct Row {
    std::string gpu;
    PowerSample sample;
  };

  [[nodiscard]] DataError unknown() const {
    return DataError(
        fmt::format("{}: not a power log; expected a CSV with a time and a power column, or the "
                    "table of dcgmi dmon",
                    log_.file),
        {.hint = "nvidia-smi --query-gpu=timestamp,index,power.draw.instant,clocks.sm,clocks.mem "
                 "--format=csv,nounits -lms 100"});
  }
  [[nodiscard]] DataError bad(const Line& line, std::string_view what, std::string_view found,
                              std::string_view expected) const {
    return DataError(fmt::format("{}:{}: {} is '{}'; expected {}", log_.file, line.number, what,
                                 printable(found.substr(0, 60)), expected));
  }

  // Whether a line that lacks cells is the end of a log that was cut off.
  bool cut_off(const Line& line) {
    if (!line.complete) log_.left_out.push_back(fmt::format("line {}: cut off", line.number));
    return !line.complete;
  }

  void read_csv(const Line& first, std::span<const Line> rows) {
    std::vector<std::string> header;
    for (const std::string_view cell : trimmed_cells(first.text, ','))
      header.push_back(field_name(cell));
    if (first_of(header, {"window_name"})) {
      throw DataError(
          fmt::format("{}: a window log of Zeus has energies of windows in monotonic seconds, "
                      "which cannot be put beside a trace",
                      log_.file),
          {.hint = "log a power timeline: zeus.monitor.PowerMonitor, or nvidia-smi -lms 100"});
    }
    if (first_of(header, {"kernel"})) {
      throw DataError(
          fmt::format("{}: a table of kernels, not a power log", log_.file),
          {.in = {}, .hint = "'rubato calibrate', 'rubato validate' and --table take such tables"});
    }
    const Columns columns = columns_of(header, options_);
    if (!columns.time || !columns.power) throw unknown();
    const std::string& power = columns.power_name;
    const bool zeus =
        power == "power" || power.starts_with("power0") || power.starts_with("gpu") ||
        (power.starts_with("power") && power.find_first_of("._ ") == std::string::npos);
    log_.kind = power.starts_with("power.draw") ? PowerLogKind::nvidia_smi
                : zeus                          ? PowerLogKind::zeus
                                                : PowerLogKind::samples;
    log_.instantaneous = power == "power.draw.instant";
    for (const Line& line : rows) {
      const auto cells = trimmed_cells(line.text, ',');
      if (cells.size() != header.size()) {
        if (cut_off(line)) continue;
        throw DataError(fmt::format("{}:{}: {} cells; expected {} as in the header", log_.file,
                                    line.number, cells.size(), header.size()));
      }
      add_csv_row(line, cells, columns);
    }
  }

  void add_csv_row(const Line& line, const std::vector<std::string_view>& cells,
                   const Columns& columns) {
    if (cells[*columns.time].empty() && !line.complete) return;
    Row row;
    row.gpu = columns.gpu ? std::string(cells[*columns.gpu]) : "";
    row.sample.time_s = time_of(line, cells[*columns.time]);
    if (!set_power(row, line, cells[*columns.power])) return;
    if (columns.core) row.sample.core_mhz = clock(cells[*columns.core]);
    if (columns.mem) row.sample.mem_mhz = clock(cells[*columns.mem]);
    rows_.push_back(std::move(row));
  }

  static std::optional<double> clock(std::string_view cell) {
    return is_missing(cell) ? std::nullopt : quantity(cell);
  }

  double time_of(const Line& line, std::string_view cell) {
    // Above 1e9 a number of seconds counts from 1970. Above 1e11 the number is one of milli-,
    // micro- or nanoseconds since 1970.
    constexpr double year_2001_s = 1e9, year_5138_s = 1e11;
    if (const auto calendar = calendar_seconds(cell)) {
      log_.base = cell.back() == 'Z' ? TimeBase::utc : TimeBase::local;
      return *calendar;
    }
    auto seconds = parse_number(cell);
    if (!seconds || *seconds < 0.0)
      throw bad(line, "the time", cell, "a date or seconds since 1970");
    while (*seconds > year_5138_s) *seconds /= 1e3;
    log_.base = *seconds > year_2001_s ? TimeBase::utc : TimeBase::relative;
    return *seconds;
  }

  bool set_power(Row& row, const Line& line, std::string_view cell) {
    constexpr double absurd_w = 1e4;
    if (is_missing(cell)) {
      ++missing_;
      return false;
    }
    const auto power = quantity(cell);
    if (!power || *power < 0.0 || *power > absurd_w) throw bad(line, "power", cell, "0 to 10000 W");
    row.sample.power_w = *power;
    return true;
  }

  // Rows "GPU 0  341.6 1410": the entity takes two words, a time may come before it.
  void read_dcgm(const Line& first, std::span<const Line> rows) {
    log_.kind = PowerLogKind::dcgm;
    log_.base = TimeBase::relative;
    std::vector<std::string> fields;
    for (const std::string_view word : words(first.text)) fields.push_back(lower_case(word));
    const auto entity =
        std::ranges::find_if(fields, [](const std::string& f) { return f.ends_with("entity"); });
    if (entity == fields.end()) throw unknown();
    fields.erase(fields.begin(), std::next(entity));
    const auto power = first_of(fields, {"power", "powr", "pwr", "155"});
    if (!power) {
      throw DataError(fmt::format("{}:{}: no column POWER among: {}", log_.file, first.number,
                                  fmt::join(fields, ", ")),
                      {.hint = "dcgmi dmon -e 155,100,101 -d 100"});
    }
    const auto core = first_of(fields, {"smclk", "sm_clock", "100"});
    const auto mem = first_of(fields, {"memclk", "mmclk", "mem_clock", "101"});
    std::map<std::string, double> next_s;
    for (const Line& line : rows) {
      const auto cells = words(line.text);
      const auto gpu = std::ranges::find(cells, "GPU");
      if (gpu == cells.end()) continue;  // units, repeated headers
      const auto at = static_cast<std::size_t>(gpu - cells.begin()) + 2;
      if (cells.size() != at + fields.size()) {
        if (cut_off(line)) continue;
        throw DataError(fmt::format("{}:{}: {} values; expected {} as in the header", log_.file,
                                    line.number, cells.size() - std::min(at, cells.size()),
                                    fields.size()));
      }
      Row row;
      row.gpu = std::string(cells[at - 1]);
      row.sample.time_s =
          at > 2 ? time_of(line, prefix(line.text)) : (next_s[row.gpu] += period(first));
      if (!set_power(row, line, cells[at + *power])) continue;
      if (core) row.sample.core_mhz = clock(cells[at + *core]);
      if (mem) row.sample.mem_mhz = clock(cells[at + *mem]);
      rows_.push_back(std::move(row));
    }
  }

  static std::string_view prefix(std::string_view line) {
    return trimmed(line.substr(0, line.find("GPU ")));
  }

  [[nodiscard]] double period(const Line& line) const {
    if (options_.period_s) return *options_.period_s;
    throw UsageError(
        fmt::format("{}:{}: the rows of dcgmi dmon have no times; say how far they are apart",
                    log_.file, line.number),
        {.hint = "--power-period 0.1 for dcgmi dmon -d 100; or put a date before each line"});
  }

  void finish() {
    std::set<std::string> gpus;
    for (const Row& row : rows_) gpus.insert(row.gpu);
    const std::string wanted = options_.gpu && !gpus.contains("") ? std::to_string(*options_.gpu)
                               : gpus.size() == 1                 ? *gpus.begin()
                                                                  : "";
    if (!rows_.empty() && !gpus.contains(wanted)) {
      throw UsageError(
          fmt::format("{}: {} of GPU {}; say which one is meant", log_.file,
                      gpus.size() == 1 ? "samples" : "interleaved samples", fmt::join(gpus, ", ")),
          {.hint = "--power-gpu N"});
    }
    for (const Row& row : rows_) {
      if (row.gpu == wanted) log_.samples.push_back(row.sample);
    }
    sort_by(log_.samples, &PowerSample::time_s);
    const auto repeated = std::unique(
        log_.samples.begin(), log_.samples.end(),
        [](const PowerSample& a, const PowerSample& b) { return a.time_s == b.time_s; });
    if (repeated != log_.samples.end()) {
      log_.left_out.push_back(
          fmt::format("{} samples at the time of the one before", log_.samples.end() - repeated));
      log_.samples.erase(repeated, log_.samples.end());
    }
    if (missing_ > 0) log_.left_out.push_back(fmt::format("{} samples without power", missing_));
    if (log_.samples.size() < 2) {
      throw DataError(fmt::format("{}: {} samples with power; expected at least 2", log_.file,
                                  log_.samples.size()));
    }
  }

  PowerLogOptions options_;
  PowerLog log_;
  std::vector<Row> rows_;
  std::size_t missing_ = 0;
};

}  // namespace

double PowerLog::period_s() const {
  std::vector<double> steps;
  for (std::size_t i = 1; i < samples.size(); ++i)
    steps.push_back(samples[i].time_s - samples[i - 1].time_s);
  if (steps.empty()) return 0.0;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

PowerLog parse_power_log(std::string_view text, std::string name, const PowerLogOptions& options) {
  return Reader(std::move(name), options).read(text);
}

PowerLog read_power_log(const std::filesystem::path& path, const PowerLogOptions& options) {
  return parse_power_log(read_file(path), path.string(), options);
}

std::string_view name_of(PowerLogKind value) noexcept {
  switch (value) {
    case PowerLogKind::nvidia_smi: return "nvidia-smi";
    case PowerLogKind::dcgm: return "DCGM";
    case PowerLogKind::zeus: return "Zeus";
    case PowerLogKind::samples: break;
  }
  return "samples";
}

}  // namespace rubato
