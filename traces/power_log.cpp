#include "traces/power_log.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "traces/power_columns.hpp"

namespace rubato {

namespace {

constexpr double no_power = std::numeric_limits<double>::quiet_NaN();
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

struct Row {
  std::size_t gpu = 0;      // position among the GPUs seen
  std::size_t section = 0;  // position among the headers
  std::size_t first_power = 0;
  TimeBase base = TimeBase::utc;
  PowerSample sample;
};

// Rows of a log on their way to samples.
class Reader {
 public:
  Reader(std::string name, const PowerLogOptions& options) : options_(options) {
    log_.file = std::move(name);
  }

  [[nodiscard]] PowerLog read(std::string_view text) {
    std::string decoded;
    if (text.starts_with("\xFF\xFE")) text = decoded = from_utf16(text, 0);
    if (text.starts_with("\xFE\xFF")) text = decoded = from_utf16(text, 1);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // as Windows writes it
    const std::vector<Line> lines = lines_of(text);
    if (std::ranges::none_of(lines,
                             [](const Line& line) { return power_header(line.text).has_value(); }))
      begin_without_header(lines);
    for (const Line& line : lines) read_line(line);
    finish();
    return std::move(log_);
  }

 private:
  [[nodiscard]] DataError unknown() const {
    return DataError(
        fmt::format("{}: not a power log; expected a CSV with a time and a power column, or the "
                    "table of nvidia-smi dmon or dcgmi dmon",
                    log_.file),
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
        whole_numbers_.push_back(i);
      } else if (!cell.empty() && !log_quantity(cell, "") && word.find('%') == std::string::npos &&
                 !word.ends_with("mib") && !is_missing_cell(cell)) {
        header[i].name = "name";
      }
    }
    if (times == 0) throw unknown();
    if (times != 1 || powers != 1) throw headless();
    sections_.push_back(power_columns(std::move(header), ','));
    headless_ = true;
    // Whole numbers may be the index of the GPU: one that changes would mix several up.
    for (const std::size_t column : whole_numbers_)
      sections_.back().identity.emplace_back(column, "number");
  }

  [[nodiscard]] DataError headless() const {
    return DataError(
        fmt::format("{}: no header, and its columns cannot be told apart without one", log_.file),
        {.hint = "put the names of the columns on top, as in 'timestamp, index, power.draw [W], "
                 "clocks.sm [MHz], clocks.mem [MHz]'"});
  }

  void read_line(const Line& line) {
    if (!line.text.starts_with('#') && !sections_.empty()) {
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
      throw DataError(fmt::format("{}:{}: no column POWER among: {}", log_.file, line.number,
                                  fmt::join(std::span(names).subspan(1), ", ")),
                      {.hint = "dcgmi dmon -e 155,100,101 -d 100"});
    }
    if (!found->time) untimed_line_ = line.number;
    if (!sections_.empty()) ++headers_again_;
    sections_.push_back(std::move(*found));
    return true;
  }

  void refuse_other_tables(const std::vector<LogField>& header) const {
    if (has_column(header, "window.name")) {
      throw DataError(
          fmt::format("{}: a window log of Zeus has energies of windows in monotonic seconds, "
                      "which cannot be put beside a trace",
                      log_.file),
          {.hint = "log a power timeline: zeus.monitor.PowerMonitor, or nvidia-smi -lms 100"});
    }
    if (has_column(header, "kernel")) {
      throw DataError(
          fmt::format("{}: a table of kernels, not a power log", log_.file),
          {.in = {}, .hint = "'rubato calibrate', 'rubato validate' and --table take such tables"});
    }
  }

  void odd(const Line& line, const std::string& problem) {
    if (odd_++ == 0) first_odd_ = fmt::format("{}:{}: {}", log_.file, line.number, problem);
    if (odd_ == 1) first_odd_line_ = line.number;
  }

  // Adds the line's samples, or says what is wrong with it.
  std::optional<std::string> add_row(const Line& line) {
    const PowerColumns& s = sections_.back();
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
    Row row;
    row.section = sections_.size() - 1;
    row.first_power = powers_.size();
    if (s.core) row.sample.core_mhz = clock(s, cells, *s.core);
    if (s.mem) row.sample.mem_mhz = clock(s, cells, *s.mem);
    LoggedGpu gpu;
    for (const auto& [column, label] : s.identity) {
      if (!is_missing_cell(cells[column])) gpu.emplace_back(label, cells[column]);
    }
    std::vector<double> powers;
    for (const std::size_t column : s.powers) {
      const auto power = power_of(s, cells, column);
      if (!power) return unlikely_power(s, cells[column], column);
      powers.push_back(*power);
    }
    for (const auto& [column, index] : s.side_by_side) {
      const auto power = power_of(s, cells, column);
      if (!power) return unlikely_power(s, cells[column], column);
      powers.push_back(*power);
    }
    if (s.time || !date.empty()) {
      std::string cell(s.time ? cells[*s.time] : date);
      if (s.date) cell = fmt::format("{} {}", cells[*s.date], cell);
      if (cell.empty() && !line.complete) return cut_off(line);
      const bool unnamed = s.time && s.header[*s.time].name.empty();
      const auto time = log_time(cell, s.time ? s.header[*s.time].unit : "");
      if (!time || (unnamed && cell.find(':') == std::string::npos)) {
        return fmt::format("the time is '{}'; expected a date or seconds since 1970",
                           printable(cell.substr(0, 60)));
      }
      row.sample.time_s = time->time_s;
      row.base = time->base;
    } else {
      row.base = TimeBase::relative;
      untimed_ = true;
    }
    if (is_cut(line, cells)) return cut_off(line);
    last_cell_size_ = cells.back().size();
    powers_.insert(powers_.end(), powers.begin(), powers.end());
    if (s.side_by_side.empty()) {
      add(row, std::move(gpu));
    } else {
      for (const auto& [column, index] : s.side_by_side) {
        LoggedGpu one = gpu;
        one.emplace_back("index", index);
        add(row, std::move(one));
        ++row.first_power;
      }
    }
    return std::nullopt;
  }

  void add(Row row, LoggedGpu gpu) {
    const auto [place, fresh] = gpu_ids_.try_emplace(std::move(gpu), gpus_.size());
    if (fresh) gpus_.push_back(place->first);
    row.gpu = place->second;
    rows_.push_back(std::move(row));
  }

  std::optional<std::string> cut_off(const Line& line) {
    log_.left_out.push_back(fmt::format("line {}: cut off", line.number));
    return std::nullopt;
  }

  // A last line without an end whose last number is a power and shorter than the others.
  bool is_cut(const Line& line, const std::vector<std::string_view>& cells) const {
    const PowerColumns& s = sections_.back();
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
    if (power && *power > absurd_w && *power < 1e3 * absurd_w) milliwatts_ = true;
    return fmt::format("power is '{}'; expected 0 to 10000 W", printable(cell.substr(0, 60)));
  }

  void finish() {
    if (sections_.empty()) throw unknown();
    if (!whole_numbers_.empty() && gpus_.size() > 1 && options_.gpu.empty()) throw headless();
    choose_gpu();
    give_times();
    for (std::size_t section = 0; section < sections_.size(); ++section) choose_power(section);
    if (log_.samples.size() < odd_ || (odd_ > 0 && log_.samples.size() < 2)) {
      throw DataError(first_odd_,
                      {.hint = milliwatts_ ? "are these mW? then call the column power_mw" : ""});
    }
    describe();
    sort_by(log_.samples, &PowerSample::time_s);
    refuse_bursts();
    const auto repeated = std::unique(
        log_.samples.begin(), log_.samples.end(),
        [](const PowerSample& a, const PowerSample& b) { return a.time_s == b.time_s; });
    if (repeated != log_.samples.end()) {
      log_.left_out.push_back(
          fmt::format("{} samples at the time of the one before", log_.samples.end() - repeated));
      log_.samples.erase(repeated, log_.samples.end());
    }
    if (missing_ > 0) log_.left_out.push_back(fmt::format("{} samples without power", missing_));
    if (headers_again_ > 0)
      log_.left_out.push_back(fmt::format("{} more headers within the log", headers_again_));
    if (odd_ > 0) {
      log_.left_out.push_back(
          fmt::format("{} lines that cannot be read; the first is line {}", odd_, first_odd_line_));
    }
    if (other_base_ > 0) {
      log_.left_out.push_back(
          fmt::format("{} samples whose times count from something else", other_base_));
    }
    if (log_.samples.size() < 2) {
      throw DataError(fmt::format("{}: {} samples with power; expected at least 2", log_.file,
                                  log_.samples.size()));
    }
  }

  // Keeps the rows of the GPU that is meant. Appended logs may say more or less of the same one.
  void choose_gpu() {
    const std::string& wanted = options_.gpu;
    if (rows_.empty()) return;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      if (wanted.empty() || is_gpu(gpus_[i], wanted)) chosen.push_back(i);
    }
    const bool one = std::ranges::all_of(chosen, [&](std::size_t i) {
      return std::ranges::all_of(chosen,
                                 [&](std::size_t k) { return may_be_one(gpus_[i], gpus_[k]); });
    });
    if (chosen.empty() || !one) throw no_choice(chosen.size());
    std::erase_if(
        rows_, [&](const Row& row) { return std::ranges::find(chosen, row.gpu) == chosen.end(); });
  }

  // Why none, or several, of the GPUs are meant.
  [[nodiscard]] UsageError no_choice(std::size_t chosen) const {
    constexpr std::size_t most = 20;
    std::vector<std::string> all;
    bool indexed = false;
    for (const LoggedGpu& gpu : gpus_) {
      if (all.size() < most) all.push_back(text_of(gpu));
      indexed |= std::ranges::find(gpu, "index", &LoggedGpu::value_type::first) != gpu.end();
    }
    const std::string listed =
        fmt::format("{}{}", fmt::join(all, "; "), gpus_.size() > most ? "; ..." : "");
    if (options_.gpu.empty()) {
      return UsageError(
          fmt::format("{}: interleaved samples of {} GPUs: {}", log_.file, gpus_.size(), listed),
          {.hint = "--power-gpu says which one is meant, by any of these"});
    }
    const std::string wanted = printable(options_.gpu);
    if (gpus_.size() == 1 && gpus_.front().empty()) {
      return UsageError(
          fmt::format("{}: --power-gpu is {}, but the log does not say of which GPU its rows are",
                      log_.file, wanted),
          {.hint = "leave it out if the log is of one GPU; of several, log a column index, "
                   "pci.bus_id or uuid"});
    }
    return UsageError(
        fmt::format("{}: {} '{}'{}; the log has {}", log_.file,
                    chosen == 0 ? "no GPU is" : "several GPUs are", wanted,
                    parse_count(wanted) && !indexed ? " (there is no column index)" : "", listed),
        {.hint = chosen == 0 ? "--power-gpu takes any of these"
                             : "--power-gpu takes several of these with '/' between"});
  }

  void give_times() {
    if (!untimed_) {
      if (options_.period_s) {
        throw UsageError(fmt::format("{}: its rows have times of their own", log_.file),
                         {.hint = "leave --power-period out"});
      }
    } else if (!options_.period_s) {
      throw UsageError(
          fmt::format("{}:{}: the rows of {} have no times; say how far they are apart", log_.file,
                      untimed_line_, sections_.front().entity ? "dcgmi dmon" : "the log"),
          {.hint =
               "--power-period 0.1 for dcgmi dmon -d 100; or put a date before each line, which "
               "nvidia-smi dmon does with -o DT"});
    } else {
      double next_s = 0.0;
      for (Row& row : rows_) row.sample.time_s = next_s += *options_.period_s;
    }
    if (rows_.empty()) return;
    log_.base = rows_.front().base;
    const auto before = rows_.size();
    std::erase_if(rows_, [&](const Row& row) { return row.base != log_.base; });
    other_base_ = before - rows_.size();
    // Times of day begin anew at midnight.
    constexpr double day_s = 86400.0;
    if (log_.base != TimeBase::relative || rows_.front().sample.time_s > day_s) return;
    double days_s = 0.0, last_s = 0.0;
    for (Row& row : rows_) {
      if (row.sample.time_s + days_s < last_s - day_s / 2.0) days_s += day_s;
      last_s = row.sample.time_s += days_s;
    }
  }

  // Samples of a header's rows: of the first power column that has at least half as many values as
  // the fullest one. power.draw.instant is [N/A] on GPUs that do not have it.
  void choose_power(std::size_t section) {
    const PowerColumns& s = sections_[section];
    const std::size_t columns = std::max<std::size_t>(s.powers.size(), 1);
    std::vector<std::size_t> counts(columns, 0);
    const auto power_at = [&](const Row& row, std::size_t column) {
      return powers_[row.first_power + column];
    };
    for (const Row& row : rows_) {
      if (row.section != section) continue;
      for (std::size_t c = 0; c < columns; ++c) counts[c] += !std::isnan(power_at(row, c));
    }
    const std::size_t most = *std::ranges::max_element(counts);
    std::size_t chosen = 0;
    while (2 * counts[chosen] < most) ++chosen;
    const std::size_t at = s.powers.empty() ? s.side_by_side.front().first : s.powers[chosen];
    bool any = false;
    for (const Row& row : rows_) {
      if (row.section != section) continue;
      any = true;
      if (std::isnan(power_at(row, chosen))) {
        ++missing_;
        continue;
      }
      log_.samples.push_back(row.sample);
      log_.samples.back().power_w = power_at(row, chosen);
    }
    if (!any) return;
    chosen_.insert({s.header[at].name, &s});
    if (chosen > 0) {
      replaced_.insert(fmt::format("{} has hardly any values; {} is taken",
                                   s.header[s.powers.front()].name, s.header[at].name));
    }
  }

  void describe() {
    if (chosen_.empty()) return;
    const auto& [name, columns] = *chosen_.begin();
    const auto field = std::ranges::find(columns->header, name, &LogField::name);
    if (columns->entity) {
      log_.kind = PowerLogKind::dcgm;
    } else if (name.starts_with("power.draw") || name == "pwr" || headless_) {
      log_.kind = PowerLogKind::nvidia_smi;
    } else if (columns->powers.empty() || (name == "power" && field->unit.empty())) {
      log_.kind = PowerLogKind::zeus;
    }
    log_.instantaneous = std::ranges::all_of(
        chosen_, [](const auto& one) { return one.first.find("instant") != std::string::npos; });
    for (const std::string& text : replaced_) log_.left_out.push_back(text);
  }

  // Rows of several GPUs without a column that tells them apart come in groups of one size.
  void refuse_bursts() const {
    const auto& samples = log_.samples;
    const auto whole = [](const PowerSample& one) { return one.time_s == std::floor(one.time_s); };
    if (samples.size() < 16 || std::ranges::all_of(samples, whole)) return;
    std::vector<double> gaps;
    for (std::size_t i = 1; i < samples.size(); ++i)
      gaps.push_back(samples[i].time_s - samples[i - 1].time_s);
    std::vector<double> sorted = gaps;
    std::ranges::sort(sorted);
    const double longest_s = sorted[sorted.size() - 1 - sorted.size() / 20];
    std::map<std::size_t, std::size_t> sizes;  // of groups between long gaps
    std::size_t size = 1, groups = 0;
    for (const double gap : gaps) {
      if (gap < 0.2 * longest_s) {
        ++size;
        continue;
      }
      ++sizes[size], ++groups;
      size = 1;
    }
    const auto usual =
        std::ranges::max_element(sizes, {}, [](const auto& one) { return one.second; });
    if (groups < 8 || usual->first < 2 || 10 * usual->second < 9 * groups) return;
    throw DataError(
        fmt::format("{}: its rows come in groups of {}, as of {} GPUs that no column tells apart",
                    log_.file, usual->first, usual->first),
        {.hint = "log with a column index, pci.bus_id or uuid, or of one GPU (nvidia-smi -i 0)"});
  }

  static constexpr double absurd_w = 1e4;

  PowerLogOptions options_;
  PowerLog log_;
  std::vector<PowerColumns> sections_;
  std::vector<Row> rows_;
  std::vector<double> powers_;  // of each row: its section's powers, NaN where missing
  std::vector<LoggedGpu> gpus_;
  std::map<LoggedGpu, std::size_t> gpu_ids_;
  std::vector<std::size_t> whole_numbers_;  // columns of a log without a header
  std::map<std::string, const PowerColumns*> chosen_;
  std::set<std::string> replaced_;
  std::string first_odd_;
  std::size_t odd_ = 0, first_odd_line_ = 0, missing_ = 0, headers_again_ = 0, other_base_ = 0,
              untimed_line_ = 1, last_cell_size_ = 0;
  bool untimed_ = false, milliwatts_ = false, headless_ = false;
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
