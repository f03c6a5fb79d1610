#pragma once
// Tables of results: aligned text for people, JSON or CSV for programs.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "explorer/confidence/confidence.hpp"
#include "explorer/results/store.hpp"
#include "tools/terminal/terminal.hpp"

namespace rubato {

enum class OutputFormat { table, json, json_lines, csv };

/// One value; monostate is missing: "-" in a table, null in JSON, empty in CSV.
using Cell = std::variant<std::monostate, std::string, double, std::int64_t, bool>;

/// Which columns a narrow terminal loses first: what is the same in all rows (worked out, unless
/// needed), what other columns say too (joules beside a change in percent), details, and last what
/// a reader must know, such as warnings and what to set.
enum class Room { same, spare, detail, usual, needed };

/// A column. `key` names it in JSON and CSV and carries the unit ("time_ms").
struct Column {
  std::string key;
  std::string title = {};     ///< in tables; empty: the key
  int decimals = 3;           ///< of numbers in tables; JSON and CSV carry every digit
  bool for_programs = false;  ///< left out of tables, which have room for about 100 characters
  Room room = Room::usual;
  bool for_people = false;  ///< in tables only: it says what other columns say to programs
  bool whole = false;       ///< never shortened: a name that readers type, an interval
};

/// An interval as one column for people: "-7.79 to -4.34".
[[nodiscard]] Cell range_cell(double low, double high, int decimals = 2);

/// A change in a sentence, with its interval if there is one: "-5.97 % (90 %: -7.79 to -4.34)".
[[nodiscard]] std::string change_words(double change_pct,
                                       const std::optional<Interval>& interval = {});

/// Rows under fixed columns.
class OutputTable {
 public:
  explicit OutputTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// @param cells  one per column
  void add_row(std::vector<Cell> cells);
  [[nodiscard]] std::size_t rows() const noexcept { return rows_.size(); }

  /// What a table shows: the titles, then a line per row; texts of that many characters at most.
  [[nodiscard]] std::vector<std::vector<std::string>> shown(
      std::size_t longest_text = TableStyle{}.longest_text) const;

  /// Aligned text (numbers right, names made printable), a JSON array of objects,
  /// a JSON object per line, or CSV with a header. Ends with a newline.
  [[nodiscard]] std::string render(OutputFormat format) const;

  /// Aligned text that keeps to a width. Names are shortened. Where that is not enough, columns are
  /// left out in the order of Room, the right before the left; what is the same in all rows goes
  /// first. A last line says both.
  [[nodiscard]] std::string text(const TableStyle& style = {}) const;

  /// As text() where it has room for all columns; else a block of lines per row, a line per column.
  [[nodiscard]] std::string whole_text(const TableStyle& style = {}) const;

  /// Whether text() shows the column.
  [[nodiscard]] bool has_room_for(std::string_view key, const TableStyle& style = {}) const;

 private:
  [[nodiscard]] std::string render_json() const;
  [[nodiscard]] std::string render_json_lines() const;
  [[nodiscard]] std::string render_csv() const;
  [[nodiscard]] nlohmann::ordered_json row_json(std::size_t row) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// A named table of a JSON document.
struct NamedTable {
  std::string_view name;
  const OutputTable* table;
};

/// One JSON object with an array of rows per table.
[[nodiscard]] std::string render_json_object(const std::vector<NamedTable>& tables);

/// A query's rows as a table. Programs get the query's column names. People get names or words:
/// "energy_change_low_pct" is "energy low %".
enum class Titles { names, words };
[[nodiscard]] OutputTable as_table(const QueryResult& result, Titles titles = Titles::names);

}  // namespace rubato
