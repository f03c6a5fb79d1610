#include "common/csv.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "common/byte_source.hpp"
#include "common/formats/foreign_file.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"

namespace rubato {

namespace {

// Splits a CSV text into records, one character at a time.
class RecordReader {
 public:
  RecordReader(std::string_view text, char separator) : text_(text), separator_(separator) {
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
  }

  /// Line on which the last record began.
  [[nodiscard]] std::size_t line() const { return record_line_; }
  [[nodiscard]] bool unclosed_quote() const { return unclosed_quote_; }

  /// Appends the cells of the next record. @return how many; 0 at the end. Empty lines are skipped
  std::size_t next(std::vector<std::string>& cells) {
    const std::size_t before = cells.size();
    while (at_ < text_.size()) {
      record_line_ = line_;
      read_record(cells);
      if (cells.size() > before + 1 || !cells.back().empty()) return cells.size() - before;
      cells.pop_back();
    }
    return 0;
  }

 private:
  [[nodiscard]] bool is_special(char c) const {
    return c == separator_ || c == '"' || c == '\n' || c == '\r';
  }

  // Blanks around a cell without quotes are no part of it.
  static void trim(std::string& cell) {
    while (cell.ends_with(' ')) cell.pop_back();
    cell.erase(0, cell.find_first_not_of(' '));
  }

  void read_record(std::vector<std::string>& cells) {
    cells.emplace_back();
    bool quoted = false;
    const auto end_cell = [&] {
      if (!quoted) trim(cells.back());
      quoted = false;
    };
    while (at_ < text_.size()) {
      const std::size_t from = at_;
      while (at_ < text_.size() && !is_special(text_[at_])) ++at_;
      cells.back().append(text_.substr(from, at_ - from));
      if (at_ == text_.size()) break;
      const char c = text_[at_++];
      if (c == '"' && cells.back().find_first_not_of(' ') == std::string::npos) {
        cells.back().clear();
        read_quoted(cells.back());
        quoted = true;
      } else if (c == separator_) {
        end_cell();
        cells.emplace_back();
      } else if (c == '\n') {
        ++line_;
        break;
      } else if (c != '\r') {
        cells.back() += c;
      }
    }
    end_cell();
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
  char separator_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t record_line_ = 1;
  bool unclosed_quote_ = false;
};

// What stands between the cells of the header: spreadsheet programs of countries with a decimal
// comma write semicolons, some tools tabs.
char separator_of(std::string_view text) {
  std::string header;  // without what is quoted
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n') break;
    header += c;
  }
  for (const char separator : {',', ';', '\t'}) {
    if (header.find(separator) != std::string::npos) return separator;
  }
  return ',';
}

}  // namespace

CsvTable CsvTable::parse(std::string_view text, std::string name) {
  CsvTable table;
  table.name_ = std::move(name);
  table.separator_ = separator_of(text);
  RecordReader reader(text, table.separator_);
  if (reader.next(table.header_) == 0)
    throw DataError(fmt::format("{}: the file is empty; expected a header line", table.name_));
  ErrorList errors;
  std::unordered_set<std::string_view> seen;
  for (const std::string& column : table.header_) {
    if (!seen.insert(column).second)
      errors.add(fmt::format("{}:1: column '{}' occurs twice", table.name_, column));
  }
  while (const std::size_t found = reader.next(table.cells_)) {
    if (found != table.header_.size()) {
      errors.add(fmt::format("{}:{}: found {} cells; expected {} as in the header", table.name_,
                             reader.line(), found, table.header_.size()));
      table.cells_.resize(table.cells_.size() - found);
      continue;
    }
    if (std::ranges::equal(std::span(table.cells_).last(found), table.header_)) {
      table.cells_.resize(table.cells_.size() - found);  // of another table that was appended
      continue;
    }
    table.lines_.push_back(reader.line());
  }
  if (reader.unclosed_quote()) {
    errors.add(fmt::format("{}:{}: a quoted cell is not closed", table.name_, reader.line()));
  }
  errors.throw_if_any();
  return table;
}

CsvTable CsvTable::read(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  refuse_foreign_file(path, text);
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
  const std::string& text = cell(row, column);
  std::string with_point;
  const bool comma = std::ranges::count(text, ',') == 1;
  if (comma) std::ranges::replace(with_point = text, ',', '.');
  const auto value = parse_number(comma && separator_ == ';' ? with_point : text);
  if (value && in_range(*value, range)) return value;
  errors.add(fmt::format("{}: {} is '{}'; expected {}{}", where(row), header_[column], text,
                         expected_text(range),
                         comma && parse_number(with_point) ? ", with a decimal point" : ""));
  return std::nullopt;
}

std::optional<double> CsvTable::optional_number(std::size_t row, std::size_t column, Range range,
                                                ErrorList& errors) const {
  if (cell(row, column).empty()) return std::nullopt;
  return number(row, column, range, errors);
}

std::vector<bool> CsvTable::copies() const {
  std::unordered_set<std::string> seen;
  std::vector<bool> copied(rows());
  const std::span<const std::string> cells(cells_);
  for (std::size_t row = 0; row < rows(); ++row)
    copied[row] =
        !seen.insert(csv_line(cells.subspan(row * header_.size(), header_.size()))).second;
  return copied;
}

std::string CsvTable::where(std::size_t row) const {
  return fmt::format("{}:{}", name_, lines_[row]);
}

namespace {

std::string quoted_cell(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string csv_cell(std::string_view text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string_view::npos &&
                     !text.starts_with(' ') && !text.ends_with(' ') &&
                     !text.starts_with(byte_order_mark);
  return plain ? std::string(text) : quoted_cell(text);
}

std::string csv_line(std::span<const std::string> cells) {
  // Alone in the header, a semicolon or a tab would be what separates cells.
  if (cells.size() == 1 && cells.front().find_first_of(";\t") != std::string::npos)
    return quoted_cell(cells.front()) + '\n';
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    line += csv_cell(cells[i]);
  }
  return line + '\n';
}

}  // namespace rubato
