#include "traces/import/nsight_database.hpp"

#include <variant>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/import/builder.hpp"

namespace rubato::nsight {

bool is_time(std::int64_t time_ns) noexcept {
  return time_ns >= -max_time_ns && time_ns <= max_time_ns;
}

std::optional<std::int64_t> optional_integer(const SqlStatement& row, int column) {
  const SqlValue value = row.value(column);
  const auto* number = std::get_if<std::int64_t>(&value);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::string text(const SqlStatement& row, int column) {
  const SqlValue value = row.value(column);
  const auto* found = std::get_if<std::string>(&value);
  return found != nullptr ? *found : std::string();
}

Database::Database(const std::filesystem::path& path)
    : shown_(printable(path.string())), connection_(path, SqlConnection::Mode::foreign) {
  refuse_computed_columns();
  connection_.forbid_writes();
}

// No export has them, and a short schema may ask for hours of work.
void Database::refuse_computed_columns() const {
  SqlStatement found(connection_,
                     "SELECT m.name FROM sqlite_schema m, pragma_table_xinfo(m.name) c "
                     "WHERE m.type = 'table' AND c.hidden <> 0");
  if (found.next())
    throw DataError(fmt::format("{}: table {} has computed columns", shown_, text(found, 0)),
                    {.in = {}, .hint = "expected an export of 'nsys export --type sqlite'"});
}

bool Database::has_table(std::string_view name) const {
  SqlStatement found(connection_, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
  return found.first(name);
}

// Pragmas are forbidden, so a query without rows is asked.
bool Database::has_column(std::string_view table, std::string_view column) const {
  SqlStatement all(connection_, fmt::format("SELECT * FROM {} LIMIT 0", table));
  for (int c = 0; c < all.columns(); ++c) {
    if (all.column_name(c) == column) return true;
  }
  return false;
}

std::int64_t Database::integer(const SqlStatement& row, int column) const {
  const SqlValue value = row.value(column);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  throw DataError(fmt::format(
      "{}: column '{}' holds {}; expected a whole number", shown_, row.column_name(column),
      std::holds_alternative<std::monostate>(value) ? "nothing" : "another type"));
}

std::int64_t Database::time(const SqlStatement& row, int column) const {
  const std::int64_t time_ns = integer(row, column);
  if (is_time(time_ns)) return time_ns;
  throw DataError(fmt::format("{}: column '{}' holds {}; expected ns, less than 63 years", shown_,
                              row.column_name(column), time_ns));
}

std::int64_t Database::size(const SqlStatement& row, int column, std::int64_t most) const {
  const std::int64_t value = integer(row, column);
  if (value < 0 || value > most)
    throw DataError(fmt::format("{}: column '{}' holds {}; expected 0 to {}", shown_,
                                row.column_name(column), value, most));
  return value;
}

}  // namespace rubato::nsight
