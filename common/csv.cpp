#include "common/csv.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "common/byte_source.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"

namespace rubato {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // of spreadsheet programs

// Splits a CSV text into records, one character at a time.
class RecordReader {
 public:
  explicit RecordReader(std::string_view text) : text_(text) {
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
  }

  /// Line on which the last record began.
  [[nodiscard]] std::size_t line() const { return record_line_; }
  [[nodiscard]] bool unclosed_quote() const { return unclosed_quote_; }

  /// The next record, or nothing at the end. Empty lines are skipped.
  std::optional<std::vector<std::string>> next() {
    while (at_ < text_.size()) {
      record_line_ = line_;
      std::vector<std::string> cells = read_record();
      if (cells.size() > 1 || !cells.front().empty()) return cells;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::string> read_record() {
    std::vector<std::string> cells(1);
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"' && cells.back().empty()) {
        read_quoted(cells.back());
      } else if (c == ',') {
        cells.emplace_back();
      } else if (c == '\n') {
        ++line_;
        break;
      } else if (c != '\r') {
        cells.back() += c;
      }
    }
    return cells;
  }

  void read_quoted(std::string& cell) {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"' && (at_ == text_.size() || text_[at_] != '"')) return;
      if (c == '"') ++at_;  // a doubled quote stands for one
      if (c == '\n') ++line_;
      cell += c;
    }
    unclosed_quote_ = true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t record_line_ = 1;
  bool unclosed_quote_ = false;
};

}  // namespace

CsvTable CsvTable::parse(std::string_view text, std::string name) {
  CsvTable table;
  table.name_ = std::move(name);
  RecordReader reader(text);
  auto header = reader.next();
  if (!header)
    throw DataError(fmt::format("{}: the file is empty; expected a header line", table.name_));
  table.header_ = *std::move(header);
  ErrorList errors;
  std::unordered_set<std::string_view> seen;
  for (const std::string& column : table.header_) {
    if (!seen.insert(column).second)
      errors.add(fmt::format("{}:1: column '{}' occurs twice", table.name_, column));
  }
  while (auto record = reader.next()) {
    if (record->size() != table.header_.size()) {
      errors.add(fmt::format("{}:{}: found {} cells; expected {} as in the header", table.name_,
                             reader.line(), record->size(), table.header_.size()));
      continue;
    }
    table.lines_.push_back(reader.line());
    std::ranges::move(*record, std::back_inserter(table.cells_));
  }
  if (reader.unclosed_quote()) {
    errors.add(fmt::format("{}:{}: a quoted cell is not closed", table.name_, reader.line()));
  }
  errors.throw_if_any();
  return table;
}

CsvTable CsvTable::read(const std::filesystem::path& path) {
  constexpr std::string_view gzip_magic = "\x1f\x8b";
  std::string text = read_file(path);
  if (text.starts_with(gzip_magic)) text = read_expanded(path, max_text_file_bytes);
  return parse(text, path.string());
}

std::optional<std::size_t> CsvTable::find_column(std::string_view name) const {
  const auto found = std::ranges::find(header_, name);
  if (found == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header_.begin());
}

std::size_t CsvTable::column(std::string_view name) const {
  if (const auto found = find_column(name)) return *found;
  throw DataError(fmt::format("{}:1: column '{}' is missing", name_, name));
}

void CsvTable::expect_columns(std::initializer_list<std::string_view> required,
                              std::initializer_list<std::string_view> optional) const {
  std::vector<std::string> known(required.begin(), required.end());
  known.insert(known.end(), optional.begin(), optional.end());
  for (const std::string& name : header_) {
    if (std::ranges::find(known, name) == known.end()) {
      throw DataError(
          fmt::format("{}:1: unknown column '{}'{}", name_, name, did_you_mean(name, known)));
    }
  }
  for (const std::string_view name : required) (void)column(name);
}

const std::string& CsvTable::cell(std::size_t row, std::size_t column) const {
  return cells_[row * header_.size() + column];
}

std::optional<double> CsvTable::number(std::size_t row, std::size_t column, Range range,
                                       ErrorList& errors) const {
  const auto value = parse_number(cell(row, column));
  if (value && in_range(*value, range)) return value;
  errors.add(fmt::format("{}: {} is '{}'; expected {}", where(row), header_[column],
                         cell(row, column), expected_text(range)));
  return std::nullopt;
}

std::optional<double> CsvTable::optional_number(std::size_t row, std::size_t column, Range range,
                                                ErrorList& errors) const {
  if (cell(row, column).empty()) return std::nullopt;
  return number(row, column, range, errors);
}

std::string CsvTable::where(std::size_t row) const {
  return fmt::format("{}:{}", name_, lines_[row]);
}

std::string csv_cell(std::string_view text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string_view::npos &&
                     !text.starts_with(' ') && !text.ends_with(' ') &&
                     !text.starts_with(byte_order_mark);
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_line(std::span<const std::string> cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    line += csv_cell(cells[i]);
  }
  return line + '\n';
}

}  // namespace rubato
