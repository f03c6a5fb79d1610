#include "tools/output.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

struct ShownCell {
  const Column& column;

  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(const std::string& text) const { return printable(text); }
  std::string operator()(double value) const {
    return fmt::format("{:.{}f}", value, column.decimals);
  }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
};

struct JsonCell {
  nlohmann::ordered_json operator()(std::monostate) const { return nullptr; }
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

}  // namespace

void add_format_options(CLI::App& app, OutputFormat& format) {
  auto* json = app.add_flag_callback(
      "--json", [&format] { format = OutputFormat::json; }, "JSON on standard output");
  auto* csv = app.add_flag_callback(
      "--csv", [&format] { format = OutputFormat::csv; }, "CSV on standard output");
  json->excludes(csv);
}

void OutputTable::add_row(std::vector<Cell> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string OutputTable::render(OutputFormat format) const {
  switch (format) {
    case OutputFormat::json: return render_json();
    case OutputFormat::csv: return render_csv();
    case OutputFormat::table: break;
  }
  return render_table();
}

std::string OutputTable::render_table() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) {
    lines[0].push_back(column.title.empty() ? column.key : column.title);
  }
  for (const auto& row : rows_) {
    auto& line = lines.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) {
      line.push_back(std::visit(ShownCell{columns_[c]}, row[c]));
    }
  }
  std::string text;
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      widths[c] = std::max(widths[c], display_width(line[c]));
    }
  }
  for (const auto& line : lines) {
    std::string shown;
    for (std::size_t c = 0; c < line.size(); ++c) {
      const bool left =
          std::ranges::any_of(rows_, [&](const auto& row) { return is_text(row[c]); });
      const std::string padding(widths[c] - display_width(line[c]), ' ');
      if (c > 0) shown += "  ";
      shown += left ? line[c] + padding : padding + line[c];
    }
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += shown + '\n';
  }
  return text;
}

std::string OutputTable::render_json() const {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const auto& row : rows_) {
    nlohmann::ordered_json object;
    for (std::size_t c = 0; c < row.size(); ++c) {
      object[columns_[c].key] = std::visit(JsonCell{}, row[c]);
    }
    array.push_back(std::move(object));
  }
  return array.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string OutputTable::render_csv() const {
  std::vector<std::string> cells;
  for (const Column& column : columns_) cells.push_back(column.key);
  std::string text = csv_line(cells);
  for (const auto& row : rows_) {
    cells.clear();
    for (const Cell& cell : row) cells.push_back(std::visit(CsvCell{}, cell));
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

OutputTable as_table(const QueryResult& result) {
  std::vector<Column> columns;
  for (const std::string& name : result.columns)
    columns.push_back({.key = name, .title = {}, .decimals = 4});
  OutputTable table(std::move(columns));
  struct ToCell {
    Cell operator()(std::monostate) const { return std::monostate{}; }
    Cell operator()(std::int64_t value) const { return value; }
    Cell operator()(double value) const { return value; }
    Cell operator()(const std::string& value) const { return value; }
  };
  for (const auto& row : result.rows) {
    std::vector<Cell> cells;
    for (const SqlValue& value : row) cells.push_back(std::visit(ToCell{}, value));
    table.add_row(std::move(cells));
  }
  return table;
}

std::int64_t latest_run(const ResultStore& store) {
  const SqlValue latest = store.query("SELECT max(run_id) FROM runs").rows.front().front();
  if (const auto* run = std::get_if<std::int64_t>(&latest)) return *run;
  throw UsageError(
      "the database has no runs",
      {.in = {},
       .hint = "store one with 'rubato explore --db' or 'rubato reproduce spaan2026 --db'"});
}

void require_run(const ResultStore& store, std::int64_t run) {
  if (!store.query(fmt::format("SELECT 1 FROM runs WHERE run_id = {}", run)).rows.empty()) return;
  throw UsageError(fmt::format("there is no run {}; the latest is {}", run, latest_run(store)));
}

void print(std::string_view text) { write_file("-", text); }

}  // namespace rubato
