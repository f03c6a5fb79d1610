#include "tools/terminal/output_table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/csv.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// Text cut to `most` characters, at least four; "..." stands for the rest.
std::string cut_to(std::string text, std::size_t most) {
  if (display_width(text) <= most) return text;
  std::size_t end = 0, characters = 0;
  while (characters < most - 3) characters += (text[++end] & 0xC0) != 0x80;
  return text.substr(0, end) + "...";
}

constexpr std::string_view between_columns = "  ";

struct TableColumn {
  const Column* column;
  std::size_t place;        // among those that are shown
  Room room = Room::usual;  // the column's, or same
  std::size_t natural = 0;  // width, if nothing is cut
  std::size_t width = 0;
  bool left = false;  // text: may be shortened

  // The least width. A text that is `needed` keeps all of its own while others can be shortened.
  [[nodiscard]] std::size_t least(bool keep_needed, std::size_t least_text = 12) const {
    const bool whole = !left || column->whole || (keep_needed && room == Room::needed);
    return whole ? width : std::min(width, least_text);
  }
};

// Width that a text keeps at least while there are columns of details to leave out.
constexpr std::size_t beside_details = 20;

template <class Width>
std::size_t total_width(const std::vector<TableColumn>& columns, Width width) {
  std::size_t total = 0;
  for (const TableColumn& column : columns)
    total += (&column == &columns.front() ? 0 : between_columns.size()) + width(column);
  return total;
}

// Leaves columns out until the rest can be made to fit. The first one says what a row is of, and
// stays.
// @return titles of those left out, from the left
std::vector<std::string> leave_out(std::vector<TableColumn>& columns, std::size_t most,
                                   const std::vector<std::string>& titles) {
  std::vector<std::size_t> places;
  while (columns.size() > 1) {
    const auto first =
        std::ranges::min_element(columns.rbegin(), columns.rend() - 1, {},
                                 [](const TableColumn& column) { return column.room; });
    const Room room = first->room;
    const auto least = [&](const TableColumn& c) {
      return room < Room::usual ? c.least(true, beside_details) : c.least(room != Room::needed);
    };
    if (total_width(columns, least) <= most) break;
    places.push_back(first->place);
    columns.erase(first.base() - 1);
  }
  std::ranges::sort(places);
  std::vector<std::string> names;
  for (const std::size_t place : places) names.push_back(titles[place]);
  return names;
}

// Shortens texts until the table fits: the widest first, those that are needed last.
void shorten(std::vector<TableColumn>& columns, std::size_t most) {
  std::size_t total = total_width(columns, [](const TableColumn& c) { return c.width; });
  for (const bool keep_needed : {true, false}) {
    const auto spare = [&](const TableColumn& c) {
      return c.width > c.least(keep_needed) ? c.width : 0;
    };
    for (; total > most; --total) {
      const auto widest = std::ranges::max_element(columns, {}, spare);
      if (spare(*widest) == 0) break;
      --widest->width;
    }
  }
}

// The line that says what a reader does not see, or nothing.
std::string cut_line(const std::vector<std::string>& left_out,
                     const std::vector<TableColumn>& columns,
                     const std::vector<std::string>& titles, std::size_t most) {
  std::vector<std::string> shorter, parts;
  for (const TableColumn& column : columns) {
    if (column.width < column.natural) shorter.push_back(titles[column.place]);
  }
  if (!left_out.empty()) parts.push_back(fmt::format("left out: {}", fmt::join(left_out, ", ")));
  if (!shorter.empty()) parts.push_back(fmt::format("shortened: {}", fmt::join(shorter, ", ")));
  if (parts.empty()) return "";
  constexpr std::size_t least_line = 72;
  constexpr std::string_view end = "--wide shows all)\n";
  most = std::max(most, least_line);
  std::string text = wrapped(fmt::format("({};\n", fmt::join(parts, "; ")), most);
  text.pop_back();
  const std::size_t line = text.size() - (text.rfind('\n') + 1);  // npos + 1 is 0
  text += line + end.size() > most ? "\n  " : " ";
  return text.append(end);
}

// Changes for less and for more; anything else as it is.
Ink ink_of(const Column& column, std::string_view cell, bool title) {
  if (title) return Ink::bold;
  if (column.key.find("_change_") == std::string::npos || !column.key.ends_with("_pct"))
    return Ink::plain;
  if (cell.find_first_of("123456789") == std::string_view::npos) return Ink::plain;
  return cell.starts_with('-') ? Ink::less : Ink::more;
}

struct ShownCell {
  const Column& column;
  std::size_t longest_text;

  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(const std::string& text) const {
    return column.whole ? printable(text) : cut_to(printable(text), longest_text);
  }
  std::string operator()(double value) const { return format_fixed(value, column.decimals); }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
};

struct JsonCell {
  nlohmann::ordered_json operator()(std::monostate) const { return nullptr; }
  nlohmann::ordered_json operator()(double value) const { return value + 0.0; }  // -0 becomes 0
  template <class T>
  nlohmann::ordered_json operator()(const T& value) const {
    return value;
  }
};

struct CsvCell {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(double value) const { return format_number(value); }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(bool value) const { return value ? "1" : "0"; }
};

bool is_text(const Cell& cell) {
  return std::holds_alternative<std::string>(cell) || std::holds_alternative<bool>(cell);
}

// The room of a column of the database.
Room room_of(std::string_view name) {
  constexpr std::array spare{"time_s", "time_ms", "time_us", "energy_j", "created_utc", "host"};
  if (std::ranges::find(spare, name) != spare.end()) return Room::spare;
  if (name == "energy_change_pct" || name == "time_change_pct") return Room::needed;
  constexpr std::array details{"status",          "aggregation",  "tolerance_pct", "clock_grid",
                               "average_power_w", "solve_time_s", "clock_switches"};
  const bool detail = name.ends_with("_low_pct") || name.ends_with("_high_pct") ||
                      name.ends_with("_expected_pct") || name.starts_with("switch_") ||
                      std::ranges::find(details, name) != details.end();
  return detail ? Room::detail : Room::usual;
}

std::string words_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> units{{{"_pct", " %"},
                                                                                {"_ms", " ms"},
                                                                                {"_us", " us"},
                                                                                {"_s", " s"},
                                                                                {"_w", " W"},
                                                                                {"_j", " J"},
                                                                                {"_utc", " UTC"}}};
  constexpr std::string_view change = "_change";
  std::string end;
  for (const auto& [suffix, unit] : units) {
    if (!name.ends_with(suffix)) continue;
    name.remove_suffix(suffix.size());
    end = unit;
    break;
  }
  std::string text(name);
  const std::size_t at = text.find(change), behind = at + change.size();
  if (at != std::string::npos && (behind == text.size() || text[behind] == '_'))
    text.erase(at, change.size());
  std::ranges::replace(text, '_', ' ');
  return text + end;
}

bool is_typed(std::string_view name) {
  constexpr std::array typed{"gpu", "trace", "trace_name", "experiment_id", "granularity"};
  return std::ranges::find(typed, name) != typed.end();
}

}  // namespace

Cell range_cell(double low, double high, int decimals) {
  return fmt::format("{} to {}", format_signed(low, decimals), format_signed(high, decimals));
}

std::string change_words(double change_pct, const std::optional<Interval>& interval) {
  std::string text = format_signed(change_pct, 2) + " %";
  if (interval) {
    text += fmt::format(" (90 %: {} to {})", format_signed(interval->low_pct, 2),
                        format_signed(interval->high_pct, 2));
  }
  return text;
}

void OutputTable::add_row(std::vector<Cell> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string OutputTable::render(OutputFormat format) const {
  switch (format) {
    case OutputFormat::json: return render_json();
    case OutputFormat::json_lines: return render_json_lines();
    case OutputFormat::csv: return render_csv();
    case OutputFormat::table: break;
  }
  return text();
}

std::vector<std::vector<std::string>> OutputTable::shown(std::size_t longest_text) const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) {
    if (column.for_programs) continue;
    lines[0].push_back(
        cut_to(printable(column.title.empty() ? column.key : column.title), longest_text));
  }
  for (const auto& row : rows_) {
    auto& line = lines.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (!columns_[c].for_programs)
        line.push_back(std::visit(ShownCell{columns_[c], longest_text}, row[c]));
    }
  }
  return lines;
}

namespace {

// The part of a table that a style has room for.
struct Layout {
  std::vector<TableColumn> columns;
  std::vector<std::string> left_out;  ///< titles, from the left
};

Layout laid_out(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                const std::vector<std::vector<std::string>>& lines, const TableStyle& style) {
  Layout layout;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].for_programs) continue;
    TableColumn& column = layout.columns.emplace_back(
        TableColumn{.column = &columns[c], .place = layout.columns.size()});
    column.left = std::ranges::any_of(rows, [&](const auto& row) { return is_text(row[c]); });
    const bool same = rows.size() > 1 && std::ranges::all_of(rows, [&](const auto& row) {
                        return row[c] == rows.front()[c];
                      });
    column.room = same && columns[c].room != Room::needed ? Room::same : columns[c].room;
    for (const auto& line : lines)
      column.natural = std::max(column.natural, display_width(line[column.place]));
    column.width = columns[c].whole ? column.natural : std::min(column.natural, style.longest_text);
  }
  layout.left_out = leave_out(layout.columns, style.columns, lines[0]);
  shorten(layout.columns, style.columns);
  return layout;
}

}  // namespace

bool OutputTable::has_room_for(std::string_view key, const TableStyle& style) const {
  const Layout layout = laid_out(columns_, rows_, shown(TableStyle::no_limit), style);
  return std::ranges::any_of(layout.columns,
                             [&](const TableColumn& c) { return c.column->key == key; });
}

std::string OutputTable::text(const TableStyle& style) const {
  const std::vector<std::vector<std::string>> lines = shown(TableStyle::no_limit);
  const auto [columns, left_out] = laid_out(columns_, rows_, lines, style);
  std::string text;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    std::string aligned;
    for (const TableColumn& column : columns) {
      const std::string cell = cut_to(lines[l][column.place], column.width);
      const std::string padding(column.width - display_width(cell), ' ');
      const std::string shown =
          style.colours ? inked(cell, ink_of(*column.column, cell, l == 0)) : cell;
      if (&column != &columns.front()) aligned += between_columns;
      aligned += column.left ? shown + padding : padding + shown;
    }
    aligned.erase(aligned.find_last_not_of(' ') + 1);
    text += aligned + '\n';
  }
  return text + cut_line(left_out, columns, lines[0], style.columns);
}

std::string OutputTable::whole_text(const TableStyle& style) const {
  const std::vector<std::vector<std::string>> lines = shown(TableStyle::no_limit);
  if (rows_.empty() || laid_out(columns_, rows_, lines, style).left_out.empty()) return text(style);
  std::size_t widest = 0;
  for (const std::string& title : lines[0]) widest = std::max(widest, display_width(title));
  std::string text;
  for (std::size_t l = 1; l < lines.size(); ++l) {
    if (l > 1) text += '\n';
    for (std::size_t c = 0; c < lines[l].size(); ++c) {
      const std::string& title = lines[0][c];
      text += (style.colours ? inked(title, Ink::bold) : title) +
              std::string(widest - display_width(title), ' ') + std::string(between_columns) +
              lines[l][c] + '\n';
    }
  }
  return text;
}

nlohmann::ordered_json OutputTable::row_json(std::size_t row) const {
  nlohmann::ordered_json object;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (!columns_[c].for_people) object[columns_[c].key] = std::visit(JsonCell{}, rows_[row][c]);
  }
  return object;
}

// ASCII only: some terminals obey control characters beyond it.
std::string OutputTable::render_json() const {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < rows_.size(); ++r) array.push_back(row_json(r));
  return json_text(array, 2, true) + '\n';
}

std::string OutputTable::render_json_lines() const {
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) text += json_text(row_json(r), -1, true) + '\n';
  return text;
}

std::string OutputTable::render_csv() const {
  std::vector<std::string> cells;
  for (const Column& column : columns_) {
    if (!column.for_people) cells.push_back(column.key);
  }
  std::string text = csv_line(cells);
  for (const auto& row : rows_) {
    cells.clear();
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (!columns_[c].for_people) cells.push_back(std::visit(CsvCell{}, row[c]));
    }
    text += csv_line(cells);
  }
  return text;
}

std::string render_json_object(const std::vector<NamedTable>& tables) {
  std::string text;
  for (const NamedTable& named : tables) {
    std::string rows = named.table->render(OutputFormat::json);
    rows.pop_back();  // its newline
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ",\n", named.name, rows);
  }
  return fmt::format("{{\n{}\n}}\n", text);
}

OutputTable as_table(const QueryResult& result, Titles titles) {
  std::vector<Column> columns;
  for (std::size_t c = 0; c < result.columns.size(); ++c) {
    const std::string& name = result.columns[c];
    const bool warns = name == "notes" || name.ends_with("verdict");
    const bool whole = std::ranges::all_of(result.rows, [c](const std::vector<SqlValue>& row) {
      const auto* value = std::get_if<double>(&row[c]);
      return value == nullptr || *value == std::round(*value);
    });
    columns.push_back({.key = name,
                       .title = titles == Titles::words ? words_of(name) : std::string(),
                       .decimals = whole                    ? 0
                                   : name.ends_with("_pct") ? 2
                                                            : 4,
                       .room = warns ? Room::needed : room_of(name),
                       .whole = is_typed(name)});
  }
  OutputTable table(std::move(columns));
  for (const auto& row : result.rows) {
    std::vector<Cell> cells;
    for (const SqlValue& value : row)
      cells.push_back(std::visit([](const auto& one) { return Cell(one); }, value));
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace rubato
