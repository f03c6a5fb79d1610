#include "explorer/results/store.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "common/embedded.hpp"
#include "common/error.hpp"

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
  if (found != ResultStore::schema) {
    throw IoError(fmt::format("{}: the database has schema {}; expected {}", path.string(), found,
                              ResultStore::schema),
                  {.in = {},
                   .hint = "it was written by another version of rubato; use that version, or run "
                           "the command again into another file"});
  }
}

// All tables and views into an empty database, inside a transaction.
void make_tables(SqlConnection& connection) {
  for (const EmbeddedFile& part : embedded_schema()) connection.execute(std::string(part.text));
  connection.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                 application_id, ResultStore::schema));
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
    if (is_empty(connection)) make_tables(connection);
    transaction.commit();
  }
  check_schema(connection, path);
  return connection;
}

void check_result_database(const std::filesystem::path& path) {
  const SqlConnection connection(path, SqlConnection::Mode::read_only);
  wait_for_tables(connection, path);
  check_schema(connection, path);
}

ResultStore ResultStore::open(const std::filesystem::path& path) {
  return ResultStore(open_result_database(path));
}

ResultStore ResultStore::open_read_only(const std::filesystem::path& path) {
  SqlConnection connection(path, SqlConnection::Mode::read_only);
  wait_for_tables(connection, path);
  check_schema(connection, path);
  connection.forbid_writes();
  return ResultStore(std::move(connection));
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
