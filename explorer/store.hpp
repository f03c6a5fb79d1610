#pragma once
// Results in SQLite: written in one transaction per exploration, read by SQL.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "explorer/exploration.hpp"

namespace rubato {

/// What the caller knows of a run beyond the exploration itself.
struct RunRecord {
  std::string command;       ///< the command line
  std::string options_json;  ///< every option, defaults included
  std::string trace_text;    ///< JSON of the trace as explored
  std::string spec_text;     ///< JSON of the spec as used
};

/// A value read from a query.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

/// Rows of a query, with the names of the columns.
struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlValue>> rows;
};

/// A result database. Schema number in `PRAGMA user_version`, WAL, foreign keys on.
class ResultStore {
 public:
  static constexpr int schema = 1;

  /// Opens for writing; creates the file and its tables if needed, migrates older schemas.
  /// @throws IoError if the file is not a database, locked, damaged, unwritable,
  ///         or of a newer schema
  [[nodiscard]] static ResultStore open(const std::filesystem::path& path);

  /// Opens an existing database read-only: queries can neither write, attach nor load extensions.
  [[nodiscard]] static ResultStore open_read_only(const std::filesystem::path& path);

  ResultStore(ResultStore&&) noexcept;
  ResultStore& operator=(ResultStore&&) noexcept;
  ~ResultStore();

  /// Stores one exploration in one transaction. @return run_id. @throws IoError, nothing is stored
  /// then
  std::int64_t add(const ExplorationInput& input, const Exploration& found,
                   const RunRecord& record);

  /// Runs one SQL statement. @throws UsageError with SQLite's message and the position
  [[nodiscard]] QueryResult query(std::string_view sql) const;

 private:
  struct Connection;
  explicit ResultStore(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace rubato
