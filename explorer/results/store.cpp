#include "explorer/results/store.hpp"

#include <cassert>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "common/embedded.hpp"
#include "common/error.hpp"
#include "explorer/results/run_writer.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_schema();

namespace {

// "RUBO": tells our databases from other people's with tables of the same name.
constexpr std::int64_t application_id = 0x5255424F;

std::int64_t pragma(const SqlConnection& connection, std::string_view name) {
  SqlStatement statement(connection, fmt::format("PRAGMA {}", name));
  return statement.next() ? value_as<std::int64_t>(statement.value(0)) : 0;
}

bool is_empty(const SqlConnection& connection) {
  SqlStatement statement(connection, "SELECT count(*) FROM sqlite_schema");
  return statement.next() && value_as<std::int64_t>(statement.value(0)) == 0;
}

void check_schema(const SqlConnection& connection, const std::filesystem::path& path) {
  const std::int64_t found = pragma(connection, "user_version");
  if (pragma(connection, "application_id") != application_id) {
    throw IoError(
        fmt::format("{}: the database was not made by rubato", path.string()),
        {.in = {}, .hint = "give another file name; rubato does not write into other databases"});
  }
  if (found > ResultStore::schema) {
    throw IoError(
        fmt::format("{}: the database has schema {}; this program knows schema {}", path.string(),
                    found, ResultStore::schema),
        {.in = {},
         .hint = "it was written by a newer version of rubato; use that version or another file"});
  }
}

std::string embedded(std::string_view name) {
  for (const EmbeddedFile& file : embedded_schema()) {
    if (file.name == name) return std::string(file.text);
  }
  assert(false && "every part of the schema is embedded");
  return {};
}

// From an empty database (0) or an older schema to this one, inside a transaction.
void migrate(SqlConnection& connection, std::int64_t from) {
  if (from < 1) connection.execute(embedded("schema"));
  if (from < 2) {
    for (const char* part : {"schema_2", "validation", "pipeline"})
      connection.execute(embedded(part));
  }
  if (from < 3) connection.execute(embedded("replay"));
  if (from < 4) connection.execute(embedded("schema_4"));
  if (from < 5) {
    connection.execute_on_schema(embedded("schema_5"));
    connection.execute(embedded("graph"));
  }
  if (from < 6) connection.execute(embedded("verification"));
  if (from < 7) {
    connection.execute(embedded("schema_7"));
    connection.execute_on_schema(embedded("graph_changes"));
  }
  if (from < 8) connection.execute(embedded("schema_8"));
  if (from < 9) connection.execute_on_schema(embedded("schema_9"));
  if (from < 10) connection.execute(embedded("schema_10"));
  if (from < 11) connection.execute(embedded("schema_11"));
  if (from < 12) connection.execute_on_schema(embedded("schema_12"));
  if (from < 13) connection.execute_on_schema(embedded("schema_13"));
  if (from < 14) connection.execute(embedded("schema_14"));
  if (from < 15) connection.execute_on_schema(embedded("schema_15"));
  connection.execute(embedded("views"));
  connection.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                 application_id, ResultStore::schema));
}

// Whether the file's views are those of views.sql; views of its users' own do not count.
bool views_are_ours(SqlConnection& connection) {
  const std::string ours = embedded("views");
  SqlStatement view(connection, "SELECT name, sql FROM sqlite_schema WHERE type = 'view'");
  while (view.next()) {
    if (ours.find(fmt::format("CREATE VIEW {} AS", value_as<std::string>(view.value(0)))) !=
            std::string::npos &&
        ours.find(value_as<std::string>(view.value(1)) + ";") == std::string::npos)
      return false;
  }
  return true;
}

// A program that only reads leaves an older file as it is. It puts a temporary view before a table
// or view of the file. `changed` gives the new form of a column; nullopt: the column stays.
template <typename Changed>
void look_again(SqlConnection& connection, std::string_view name, const Changed& changed) {
  std::string columns;
  bool any = false;
  SqlStatement found(connection,
                     fmt::format("SELECT name FROM pragma_table_info('{}', 'main')", name));
  while (found.next()) {
    const std::string column = value_as<std::string>(found.value(0));
    const std::optional<std::string> other = changed(column);
    any = any || other;
    columns += (columns.empty() ? "" : ", ") + other.value_or(column);
  }
  if (!any) return;  // not in that schema, or nothing changed
  connection.execute(
      fmt::format("CREATE TEMP VIEW {0} AS SELECT {1} FROM main.{0}", name, columns));
}

// Up to schema 14 segments were called 'auto' (schema_15.sql).
constexpr const char* segment_again = "replace(granularity, 'auto', 'segment') AS granularity";

// Schemas 6 to 12 had no 'undecided' and called it kept: the rule of schema_13.sql.
void look_at_kept_again(SqlConnection& connection) {
  for (const auto& [name, unit] :
       {std::pair{"verifications", "frac"}, std::pair{"v_verifications", "pct"}}) {
    look_again(connection, name,
               [unit = unit](const std::string& column) -> std::optional<std::string> {
                 if (column == "granularity") return segment_again;
                 if (column != "energy_verdict") return std::nullopt;
                 return fmt::format(
                     "CASE WHEN energy_verdict = 'kept' AND promised_energy_change_{0} < 0 "
                     "AND measured_energy_change_high_{0} >= 0 THEN 'undecided' ELSE "
                     "energy_verdict END AS energy_verdict",
                     unit);
               });
  }
}

// In older files views of plans have slack and tolerance as fractions.
void look_at_plans_again(SqlConnection& connection, std::int64_t found_schema) {
  for (const char* name :
       {"v_plans", "v_best_plan", "v_compare", "v_graph_plans", "v_best_graph_plan",
        "v_compare_graphs", "v_all_plans", "v_verifications", "v_units", "v_experiment_units"}) {
    if (found_schema < 13 && name == std::string_view("v_verifications")) continue;  // looked at
    look_again(connection, name, [&](const std::string& column) -> std::optional<std::string> {
      if (column == "granularity" && found_schema < 15) return segment_again;
      if (column != "slack_frac" && column != "tolerance_frac") return std::nullopt;
      const std::string what = column.substr(0, column.find('_'));
      return fmt::format("100.0 * {0} AS {1}_pct", column, what);
    });
  }
}

// Another build of this schema made the views of the file: ours stand before them.
void look_through_our_views(SqlConnection& connection) {
  const std::string ours = embedded("views");
  constexpr std::string_view create = "CREATE VIEW ";
  for (std::size_t at = ours.find(create); at != std::string::npos; at = ours.find(create, at)) {
    at += create.size();
    connection.execute("CREATE TEMP VIEW " + ours.substr(at, ours.find(';', at) - at));
  }
}

QueryResult all_rows(SqlStatement& statement) {
  QueryResult result;
  for (int c = 0; c < statement.columns(); ++c) result.columns.push_back(statement.column_name(c));
  while (statement.next()) {
    auto& row = result.rows.emplace_back();
    for (int c = 0; c < statement.columns(); ++c) row.push_back(statement.value(c));
  }
  return result;
}

// A program that makes a database begins with an empty file. Whoever reads waits for its tables as
// long as for any other writer.
void wait_for_tables(const SqlConnection& connection, const std::filesystem::path& path) {
  using Clock = std::filesystem::file_time_type::clock;
  constexpr std::chrono::milliseconds longest(5000), pause(20);
  for (auto waited = pause; waited < longest && is_empty(connection); waited += pause) {
    std::error_code failed;
    const auto made = std::filesystem::last_write_time(path, failed);
    if (failed || Clock::now() - made > longest) return;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

SqlConnection open_result_database(const std::filesystem::path& path) {
  // Where the folder cannot be made, opening the database says what is wrong.
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  SqlConnection connection(path, SqlConnection::Mode::create);
  if (is_empty(connection)) {
    connection.use_write_ahead_log();
    SqlTransaction transaction(connection);
    // Somebody else may have been faster between the look and the lock.
    if (is_empty(connection)) migrate(connection, 0);
    transaction.commit();
  }
  check_schema(connection, path);
  if (pragma(connection, "user_version") < ResultStore::schema) {
    SqlTransaction transaction(connection);
    const std::int64_t found = pragma(connection, "user_version");
    if (found < ResultStore::schema) migrate(connection, found);
    transaction.commit();
  }
  if (!views_are_ours(connection)) {  // another build of this schema made them
    SqlTransaction transaction(connection);
    connection.execute(embedded("views"));
    transaction.commit();
  }
  return connection;
}

void check_result_database(const std::filesystem::path& path) {
  const SqlConnection connection(path, SqlConnection::Mode::read_only);
  wait_for_tables(connection, path);
  check_schema(connection, path);
  const std::int64_t found = pragma(connection, "user_version");
  if (found < ResultStore::schema) {
    throw IoError(fmt::format("{}: the database has schema {}; expected {}", path.string(), found,
                              ResultStore::schema),
                  {.in = {},
                   .hint = fmt::format("any command that writes to it brings it up to date, e.g. "
                                       "'rubato merge -o {}'",
                                       path.string())});
  }
}

ResultStore ResultStore::open(const std::filesystem::path& path) {
  return ResultStore(open_result_database(path));
}

ResultStore ResultStore::open_read_only(const std::filesystem::path& path) {
  SqlConnection connection(path, SqlConnection::Mode::read_only);
  wait_for_tables(connection, path);
  check_schema(connection, path);
  const std::int64_t schema = pragma(connection, "user_version");
  if (schema < 13) look_at_kept_again(connection);
  if (schema < ResultStore::schema) look_at_plans_again(connection, schema);
  if (schema == ResultStore::schema && !views_are_ours(connection))
    look_through_our_views(connection);
  connection.forbid_writes();
  return ResultStore(std::move(connection));
}

std::int64_t ResultStore::add(const ExplorationInput& input, const Exploration& found,
                              const RunRecord& record) {
  SqlTransaction transaction(connection_, References::known_to_hold);
  const std::int64_t run_id = RunWriter(connection_, input, found).write(record);
  transaction.commit();
  return run_id;
}

QueryResult ResultStore::query(std::string_view sql, std::initializer_list<SqlValue> values) const {
  SqlStatement statement(connection_, sql);
  statement.expect_declared_types();
  statement.bind_all(values);
  return all_rows(statement);
}

QueryResult ResultStore::query_any(std::string_view sql) const {
  SqlStatement statement(connection_, sql);
  return all_rows(statement);
}

}  // namespace rubato
