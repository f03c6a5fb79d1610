#pragma once
// Results in SQLite: written in one transaction per exploration (run_writer.hpp), read by SQL.
// Tables: schema.sql; views: views.sql. docs/schema.md.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/sqlite.hpp"

namespace rubato {

/// Rows of a query, with the names of the columns.
struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlValue>> rows;
};

/// Opens a result database for writing; creates the file and its tables if there are none.
/// @throws IoError if the file is not a database of ours, locked, damaged, not writable, or of
///         another schema; the file is then as before
[[nodiscard]] SqlConnection open_result_database(const std::filesystem::path& path);

/// @throws IoError if `path` is not a readable result database of this schema
void check_result_database(const std::filesystem::path& path);

/// A result database. The schema number is in `PRAGMA user_version`.
class ResultStore {
 public:
  static constexpr int schema = 1;

  /// Opens for writing, see open_result_database.
  [[nodiscard]] static ResultStore open(const std::filesystem::path& path);

  /// Opens an existing database for queries that can neither write, attach nor load extensions.
  [[nodiscard]] static ResultStore open_read_only(const std::filesystem::path& path);

  /// Runs one SQL statement that reads, with `values` for its ? in order.
  /// @throws DataError if a column of a table holds another type than it is declared to; UsageError
  ///         with SQLite's message, IoError
  [[nodiscard]] QueryResult query(std::string_view sql,
                                  std::initializer_list<SqlValue> values = {}) const;

  /// A statement of a user's own: whatever the columns hold is given.
  [[nodiscard]] QueryResult query_any(std::string_view sql) const;

  /// What to know of a file that may not be written to; mostly nothing.
  [[nodiscard]] const std::string& note() const noexcept { return connection_.note(); }

 private:
  explicit ResultStore(SqlConnection connection) : connection_(std::move(connection)) {}

  SqlConnection connection_;
};

}  // namespace rubato
