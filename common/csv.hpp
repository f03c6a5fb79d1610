#pragma once
// CSV (RFC 4180: commas, double quotes, a header line), and tables with semicolons or tabs in place
// of commas.

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.hpp"
#include "common/range.hpp"

namespace rubato {

/// A CSV text with a header. Every row has as many cells as the header; empty lines, and the header
/// again, are no rows. Blanks around cells without quotes are no part of them.
class CsvTable {
 public:
  /// @param name  shown in messages, usually the path
  /// @throws DataError if there is no header, or listing up to 20 lines with a wrong number of
  ///         cells, an unclosed quote or a repeated column name
  [[nodiscard]] static CsvTable parse(std::string_view text, std::string name);

  /// A file, inflated if it is gzip. @throws IoError, DataError
  [[nodiscard]] static CsvTable read(const std::filesystem::path& path);

  [[nodiscard]] std::size_t rows() const noexcept { return lines_.size(); }
  [[nodiscard]] std::span<const std::string> header() const noexcept { return header_; }

  /// Position of a column. @throws DataError if there is none of that name
  [[nodiscard]] std::size_t column(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> find_column(std::string_view name) const;

  /// Checks that every required column exists and no column is outside both lists.
  /// @throws DataError: of an unknown column with the nearest known one
  void expect_columns(std::initializer_list<std::string_view> required,
                      std::initializer_list<std::string_view> optional = {}) const;

  [[nodiscard]] const std::string& cell(std::size_t row, std::size_t column) const;

  /// Reads a number, with a decimal comma where semicolons separate. A bad cell is added to
  /// `errors` and gives nothing.
  [[nodiscard]] std::optional<double> number(std::size_t row, std::size_t column, Range range,
                                             ErrorList& errors) const;

  /// As above, but an empty cell is a missing value and no error.
  [[nodiscard]] std::optional<double> optional_number(std::size_t row, std::size_t column,
                                                      Range range, ErrorList& errors) const;

  /// For each row, whether an earlier one has the same text in all cells.
  [[nodiscard]] std::vector<bool> copies() const;

  /// "name:line" of a row, lines counted from 1 with the header.
  [[nodiscard]] std::string where(std::size_t row) const;

 private:
  std::string name_;
  char separator_ = ',';
  std::vector<std::string> header_;
  std::vector<std::string> cells_;  // row-major, header().size() a row
  std::vector<std::size_t> lines_;  // line number of each row
};

/// Quotes a cell where it needs it (comma, quote, line break, blank at an end, byte order mark).
[[nodiscard]] std::string csv_cell(std::string_view text);

/// Joins cells to one line with a newline at the end.
[[nodiscard]] std::string csv_line(std::span<const std::string> cells);

}  // namespace rubato
