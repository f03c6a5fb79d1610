#pragma once
// An export of Nsight Systems, as a database that is only read: which tables and columns it has,
// and values of the type and size that are expected. An export has a table or column only if there
// was something to put in.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/sqlite.hpp"
#include "traces/import_options.hpp"

namespace rubato::nsight {

/// Whether a time is within max_time_ns, so that it may be added to another one.
[[nodiscard]] bool is_time(std::int64_t time_ns) noexcept;

/// The whole number in a column; nothing if it holds none.
[[nodiscard]] std::optional<std::int64_t> optional_integer(const SqlStatement& row, int column);

/// The text in a column; empty if it holds none.
[[nodiscard]] std::string text(const SqlStatement& row, int column);

/// The first `Count` columns of a row; nothing if one of them holds no whole number.
template <std::size_t Count>
[[nodiscard]] std::optional<std::array<std::int64_t, Count>> all_integers(const SqlStatement& row) {
  std::array<std::int64_t, Count> numbers{};
  for (std::size_t i = 0; i < Count; ++i) {
    const auto number = optional_integer(row, static_cast<int>(i));
    if (!number) return std::nullopt;
    numbers[i] = *number;
  }
  return numbers;
}

class Database {
 public:
  /// gzip is expanded into a temporary file that is removed as soon as it is open.
  /// @throws IoError if it is no database; DataError if it has computed columns, as no export has,
  ///         and for damaged gzip
  Database(const std::filesystem::path& path, const ImportOptions& options);

  [[nodiscard]] const SqlConnection& connection() const noexcept { return connection_; }
  [[nodiscard]] bool has_table(std::string_view name) const;
  [[nodiscard]] bool has_column(std::string_view table, std::string_view column) const;
  /// Columns of a table as a list for SELECT: NULL in place of those that it lacks, since exports
  /// of other years do. @param alias  of the table, with its dot
  [[nodiscard]] std::string columns(std::string_view table,
                                    std::initializer_list<std::string_view> names,
                                    std::string_view alias = "") const;

  /// Values of a row, texts that hold one too. @throws DataError naming the column
  [[nodiscard]] std::int64_t integer(const SqlStatement& row, int column) const;
  /// A size from 0 to `most`, of a grid or a copy.
  [[nodiscard]] std::int64_t size(const SqlStatement& row, int column, std::int64_t most) const;

 private:
  static SqlConnection open(const std::filesystem::path& path, const ImportOptions& options);
  void refuse_computed_columns() const;

  std::string shown_;  // the path
  SqlConnection connection_;
};

}  // namespace rubato::nsight
