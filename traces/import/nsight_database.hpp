#pragma once
// An export of Nsight Systems as a database that is only asked: which tables and columns it has,
// and values of the type and size that are expected. Tables and columns exist only if there was
// something to say.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/sqlite.hpp"

namespace rubato::nsight {

/// Whether a time may be added to another one.
[[nodiscard]] bool is_time(std::int64_t time_ns) noexcept;

/// Nothing if it is no whole number.
[[nodiscard]] std::optional<std::int64_t> optional_integer(const SqlStatement& row, int column);

/// Empty if it is no text.
[[nodiscard]] std::string text(const SqlStatement& row, int column);

/// The first columns of a row, nothing if one of them is no whole number.
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
  /// @throws DataError if it is no database, or has what no export has
  explicit Database(const std::filesystem::path& path);

  [[nodiscard]] const SqlConnection& connection() const noexcept { return connection_; }
  [[nodiscard]] bool has_table(std::string_view name) const;
  [[nodiscard]] bool has_column(std::string_view table, std::string_view column) const;

  /// Values of a row. @throws DataError naming the column
  [[nodiscard]] std::int64_t integer(const SqlStatement& row, int column) const;
  /// A time that may be added to another one, ns.
  [[nodiscard]] std::int64_t time(const SqlStatement& row, int column) const;
  /// From 0 to `most`: of grids, of copies.
  [[nodiscard]] std::int64_t size(const SqlStatement& row, int column, std::int64_t most) const;

 private:
  void refuse_computed_columns() const;

  std::string shown_;  // the path
  SqlConnection connection_;
};

}  // namespace rubato::nsight
