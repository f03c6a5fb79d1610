#pragma once
// Results on standard output: a table for people, JSON or CSV for programs.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/error.hpp"
#include "explorer/results/store.hpp"
#include "tools/terminal/terminal.hpp"

namespace rubato {

class CommandLine;

enum class OutputFormat { table, json, json_lines, csv };

/// Adds --json, --json-lines and --csv, and --output unless there is one: a file for what is
/// printed, whose name says the format. The referenced format must outlive parsing.
void add_format_options(CommandLine& app, OutputFormat& format);

/// One value; monostate is missing: "-" in a table, null in JSON, empty in CSV.
using Cell = std::variant<std::monostate, std::string, double, std::int64_t, bool>;

/// Which columns a narrow terminal loses first: what other columns say too (joules beside a change
/// in percent), details, and last what a reader must know, such as warnings and what to set.
enum class Room { spare, detail, usual, needed };

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

  /// Aligned text that keeps to a width: names are shortened first, then columns left out, details
  /// before others and the right before the left. A last line says both.
  [[nodiscard]] std::string text(const TableStyle& style = {}) const;

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

/// Writes to standard output what a program or a person asked for: as JSON one document with every
/// table, as JSON lines and CSV the last one, as text all, with an empty line after each.
void print_tables(const std::vector<NamedTable>& tables, OutputFormat format);

/// A query's rows under its own column names.
[[nodiscard]] OutputTable as_table(const QueryResult& result);

/// Says on standard error that a file or folder was written; nothing of "-".
void tell_written(const std::string& path);

/// Writes a file that was asked for and says so on standard error; "-" is standard output.
/// @throws IoError as write_file
void write_output(const std::string& path, std::string_view text);

/// @throws UsageError if the file's name ends in none of these, such as ".html"; "-" may be
/// anything
void check_extension(std::string_view option, const std::string& path,
                     std::initializer_list<std::string_view> known);

/// Done, or cut short by Ctrl-C: then a line on standard error says how much was done.
[[nodiscard]] ExitStatus finished(std::size_t done, std::size_t total, std::string_view what);

/// Writes what was printed to the file that --output names, if it does. @throws IoError as
/// write_file
void write_kept_output();

/// Writes to standard output, or keeps it for --output; on a terminal every control character is
/// made visible. @throws IoError if it is closed or the disk is full
void print(std::string_view text);

/// Lines below a table, wrapped to the width that tables have; what begins with a space, such as
/// lines to type, is left whole.
void print_notes(std::string_view text);

/// A table as the terminal shows it, JSON, JSON lines or CSV.
void print(const OutputTable& table, OutputFormat format);

}  // namespace rubato
