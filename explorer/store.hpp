#pragma once
// Results in SQLite: written in one transaction per exploration, read by SQL.
// Tables and views: schema.sql and docs/schema.md.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/exploration.hpp"
#include "explorer/sqlite.hpp"

namespace rubato {

/// What the caller knows of a run beyond the exploration itself.
struct RunRecord {
  std::string command;       ///< the command line
  std::string options_json;  ///< every option, defaults included
};

/// Rows of a query, with the names of the columns.
struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlValue>> rows;
};

/// A result database. The schema number is in `PRAGMA user_version`.
class ResultStore {
 public:
  static constexpr int schema = 1;

  /// Opens for writing; creates the file and its tables if there are none.
  /// @throws IoError if the file is not a database of ours, locked, damaged,
  ///         not writable, or of a newer schema; the file is then as before
  [[nodiscard]] static ResultStore open(const std::filesystem::path& path);

  /// Opens an existing database for queries that can neither write, attach nor load extensions.
  [[nodiscard]] static ResultStore open_read_only(const std::filesystem::path& path);

  /// Stores one exploration in one transaction. @return its run_id
  /// @throws IoError; nothing is stored then
  std::int64_t add(const ExplorationInput& input, const Exploration& found,
                   const RunRecord& record);

  /// For writers of further tables.
  [[nodiscard]] SqlConnection& connection() noexcept { return connection_; }

  /// Runs one SQL statement that reads. @throws UsageError with SQLite's message, IoError
  [[nodiscard]] QueryResult query(std::string_view sql) const;

 private:
  explicit ResultStore(SqlConnection connection) : connection_(std::move(connection)) {}

  SqlConnection connection_;
};

}  // namespace rubato
