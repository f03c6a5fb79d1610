#include "traces/power_rows.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

constexpr double no_power = std::numeric_limits<double>::quiet_NaN();
constexpr double absurd_w = 1e4;
constexpr const char* log_command =
    "nvidia-smi --query-gpu=timestamp,index,power.draw.instant,clocks.sm,clocks.mem "
    "--format=csv -lms 100";

struct Line {
  std::size_t number = 0;
  std::string_view text;
  bool complete = true;  // ends with a line break
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = without_blanks(text.substr(0, end));
    if (!line.empty()) lines.push_back({number, line, end != std::string_view::npos});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// UTF-16, as PowerShell redirects output, to bytes: nothing beyond ASCII matters here.
std::string from_utf16(std::string_view text, std::size_t low) {
  std::string bytes;
  for (std::size_t i = 2; i + 1 < text.size(); i += 2)
    bytes += text[i + 1 - low] == '\0' ? text[i + low] : '?';
  return bytes;
}

class RowReader {
 public:
  explicit RowReader(const std::string& file) : file_(file) {}

  [[nodiscard]] PowerRows read(std::string_view text) {
    std::string decoded;
    if (text.starts_with("\xFF\xFE")) text = decoded = from_utf16(text, 0);
    if (text.starts_with("\xFE\xFF")) text = decoded = from_utf16(text, 1);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // as Windows writes it
    const std::vector<Line> lines = lines_of(text);
    if (std::ranges::none_of(lines,
                             [](const Line& line) { return power_header(line.text).has_value(); }))
      begin_without_header(lines);
    for (const Line& line : lines) read_line(line);
    if (out_.sections.empty()) throw unknown();
    return std::move(out_);
  }

 private:
  [[nodiscard]] DataError unknown() const {
    return DataError(
        fmt::format("{}: not a power log; expected a CSV with a time and a power column, or the "
                    "table of nvidia-smi dmon or dcgmi dmon",
                    file_),
        {.hint = log_command});
  }

  // Columns by what their cells say, where only one reading makes sense.
  void begin_without_header(const std::vector<Line>& lines) {
    if (lines.empty()) throw unknown();
    const auto cells = log_cells(lines.front().text, ',');
    std::vector<LogField> header;
    for (const std::string_view cell : cells) header.push_back(log_field(cell));
    refuse_other_tables(header);
    header.assign(cells.size(), {});
    std::size_t times = 0, powers = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string_view cell = cells[i];
      const bool colon = cell.find(':') != std::string_view::npos;
      const std::string word = lower_case(cell);
      if (colon && log_time(cell, "")) {
        header[i].name = "timestamp";
        ++times;
      } else if (word.ends_with(" w") && log_quantity(cell, "")) {
        header[i].name = "power";
        ++powers;
      } else if (colon && cell.find('.') != std::string_view::npos) {
        header[i].name = "pci.bus.id";
      } else if (word.starts_with("gpu-")) {
        header[i].name = "uuid";
      } else if (parse_count(cell)) {
        out_.whole_numbers.push_back(i);
      } else if (!cell.empty() && !log_quantity(cell, "") && word.find('%') == std::string::npos &&
                 !word.ends_with("mib") && !is_missing_cell(cell)) {
        header[i].name = "name";
      }
    }
    if (times == 0) throw unknown();
    if (times != 1 || powers != 1) throw without_header(file_);
    out_.sections.push_back(power_columns(std::move(header), ','));
    out_.headless = true;
    // Whole numbers may be the index of the GPU: one that changes would mix several up.
    for (const std::size_t column : out_.whole_numbers)
      out_.sections.back().identity.emplace_back(column, "number");
  }

  void read_line(const Line& line) {
    if (!line.text.starts_with('#') && !out_.sections.empty()) {
      const std::optional<std::string> problem = add_row(line);
      if (!problem) return;
      if (line_is_header(line)) return;
      odd(line, *problem);
    } else if (!line_is_header(line) && !line.text.starts_with('#')) {
      odd(line, "stands before the header");
    }
  }

  bool line_is_header(const Line& line) {
    std::optional<PowerColumns> found = power_header(line.text);
    if (!found) return false;
    refuse_other_tables(found->header);
    if (found->entity && found->powers.empty()) {
      std::vector<std::string> names;
      for (const LogField& field : found->header) names.push_back(field.name);
      throw DataError(fmt::format("{}:{}: no column POWER among: {}", file_, line.number,
                                  fmt::join(std::span(names).subspan(1), ", ")),
                      {.hint = "dcgmi dmon -e 155,100,101 -d 100"});
    }
    if (!found->time) out_.untimed_line = line.number;
    out_.sections.push_back(std::move(*found));
    return true;
  }

  void refuse_other_tables(const std::vector<LogField>& header) const {
    if (has_column(header, "window.name")) {
      throw DataError(
          fmt::format("{}: a window log of Zeus has energies of windows in monotonic seconds, "
                      "which cannot be put beside a trace",
                      file_),
          {.hint = "log a power timeline: zeus.monitor.PowerMonitor, or nvidia-smi -lms 100"});
    }
    if (has_column(header, "kernel")) {
      throw DataError(
          fmt::format("{}: a table of kernels, not a power log", file_),
          {.in = {}, .hint = "'rubato calibrate', 'rubato validate' and --table take such tables"});
    }
  }

  void odd(const Line& line, const std::string& problem) {
    if (out_.odd++ == 0) out_.first_odd = fmt::format("{}:{}: {}", file_, line.number, problem);
    if (out_.odd == 1) out_.odd_line = line.number;
  }

  // Adds the line's samples, or says what is wrong with it.
  std::optional<std::string> add_row(const Line& line) {
    const PowerColumns& s = out_.sections.back();
    auto cells = log_cells(line.text, s.separator);
    std::string_view date;  // before the entity
    if (s.entity) {
      const auto gpu = std::ranges::find(cells, "GPU");
      if (gpu == cells.end())
        return power_header(line.text) ? std::optional<std::string>("") : std::nullopt;  // units
      date = without_blanks(line.text.substr(0, line.text.find("GPU ")));
      cells.erase(cells.begin(), std::next(gpu));
    }
    if (cells.size() == s.header.size() + 1 && cells.back().empty()) cells.pop_back();
    if (cells.size() != s.header.size()) {
      if (!line.complete && cells.size() < s.header.size()) return cut_off(line);
      return fmt::format("{} {}; expected {} as in the header", cells.size() - (s.entity ? 1 : 0),
                         s.entity ? "values" : "cells", s.header.size() - (s.entity ? 1 : 0));
    }
    PowerRow row;
    row.section = out_.sections.size() - 1;
    row.first_power = out_.powers.size();
    if (s.core) row.sample.core_mhz = clock(s, cells, *s.core);
    if (s.mem) row.sample.mem_mhz = clock(s, cells, *s.mem);
    LoggedGpu gpu;
    for (const auto& [column, label] : s.identity) {
      if (!is_missing_cell(cells[column])) gpu.emplace_back(label, cells[column]);
    }
    std::vector<std::size_t> columns = s.powers;
    for (const auto& [column, index] : s.side_by_side) columns.push_back(column);
    std::vector<double> powers;
    for (const std::size_t column : columns) {
      const auto power = power_of(s, cells, column);
      if (!power) return unlikely_power(s, cells[column], column);
      powers.push_back(*power);
    }
    if (s.time || !date.empty()) {
      std::string cell(s.time ? cells[*s.time] : date);
      if (s.date) cell = fmt::format("{} {}", cells[*s.date], cell);
      if (cell.empty() && !line.complete) return cut_off(line);
      if (!set_time(s, cell, row)) {
        return fmt::format(
            "the time is '{}'; expected 2026-05-22 17:15:22.123, or seconds since 1970",
            printable(cell.substr(0, 60)));
      }
    } else {
      row.base = TimeBase::relative;
      out_.untimed = true;
    }
    if (is_cut(line, cells)) return cut_off(line);
    last_cell_size_ = cells.back().size();
    out_.powers.insert(out_.powers.end(), powers.begin(), powers.end());
    add_samples(s, row, std::move(gpu));
    return std::nullopt;
  }

  // One sample, or one of each GPU whose powers stand side by side.
  void add_samples(const PowerColumns& s, PowerRow row, LoggedGpu gpu) {
    if (s.side_by_side.empty()) return add(row, std::move(gpu));
    for (const auto& [column, index] : s.side_by_side) {
      LoggedGpu one = gpu;
      one.emplace_back("index", index);
      add(row, std::move(one));
      ++row.first_power;
    }
  }

  // False if the cell holds no time.
  static bool set_time(const PowerColumns& s, const std::string& cell, PowerRow& row) {
    const bool unnamed = s.time && s.header[*s.time].name.empty();
    const auto time = log_time(cell, s.time ? s.header[*s.time].unit : "");
    if (!time || (unnamed && cell.find(':') == std::string::npos)) return false;
    row.sample.time_s = time->time_s;
    row.base = time->base;
    return true;
  }

  void add(PowerRow row, LoggedGpu gpu) {
    const auto [place, fresh] = gpu_ids_.try_emplace(std::move(gpu), out_.gpus.size());
    if (fresh) out_.gpus.push_back(place->first);
    row.gpu = place->second;
    out_.rows.push_back(row);
  }

  std::optional<std::string> cut_off(const Line& line) {
    out_.cut_off.push_back(fmt::format("line {}: cut off", line.number));
    return std::nullopt;
  }

  // A last line without an end whose last number is a power and shorter than the others.
  bool is_cut(const Line& line, const std::vector<std::string_view>& cells) const {
    const PowerColumns& s = out_.sections.back();
    return !line.complete && std::ranges::find(s.powers, cells.size() - 1) != s.powers.end() &&
           cells.back().size() < last_cell_size_;
  }

  static std::optional<double> clock(const PowerColumns& s,
                                     const std::vector<std::string_view>& cells,
                                     std::size_t column) {
    if (is_missing_cell(cells[column])) return std::nullopt;
    return log_quantity(cells[column], s.header[column].unit);
  }

  // NaN where there is none; nothing where the cell cannot be one.
  static std::optional<double> power_of(const PowerColumns& s,
                                        const std::vector<std::string_view>& cells,
                                        std::size_t column) {
    if (is_missing_cell(cells[column])) return no_power;
    const auto power = log_quantity(cells[column], s.header[column].unit);
    if (!power || *power < 0.0 || *power > absurd_w) return std::nullopt;
    return power;
  }

  std::string unlikely_power(const PowerColumns& s, std::string_view cell, std::size_t column) {
    const auto power = log_quantity(cell, s.header[column].unit);
    if (power && *power > absurd_w && *power < 1e3 * absurd_w) out_.milliwatts = true;
    return fmt::format("power is '{}'; expected 0 to 10000 W", printable(cell.substr(0, 60)));
  }

  const std::string& file_;
  PowerRows out_;
  std::map<LoggedGpu, std::size_t> gpu_ids_;
  std::size_t last_cell_size_ = 0;
};

}  // namespace

PowerRows read_power_rows(std::string_view text, const std::string& file) {
  return RowReader(file).read(text);
}

DataError without_header(const std::string& file) {
  return DataError(
      fmt::format("{}: no header, and its columns cannot be told apart without one", file),
      {.hint = "put the names of the columns on top, as in 'timestamp, index, power.draw [W], "
               "clocks.sm [MHz], clocks.mem [MHz]'"});
}

}  // namespace rubato
