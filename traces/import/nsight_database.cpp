#include "traces/import/nsight_database.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "common/byte_source.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "traces/import/builder.hpp"

namespace rubato::nsight {

bool is_time(std::int64_t time_ns) noexcept {
  return time_ns >= -max_time_ns && time_ns <= max_time_ns;
}

std::optional<std::int64_t> optional_integer(const SqlStatement& row, int column) {
  const SqlValue value = row.value(column);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  const auto* written = std::get_if<std::string>(&value);  // of a table made from a CSV
  std::int64_t number = 0;
  if (written == nullptr) return std::nullopt;
  const char* const end = written->data() + written->size();
  const auto [behind, error] = std::from_chars(written->data(), end, number);
  return error == std::errc() && behind == end ? std::optional(number) : std::nullopt;
}

std::string text(const SqlStatement& row, int column) {
  const SqlValue value = row.value(column);
  const auto* found = std::get_if<std::string>(&value);
  return found != nullptr ? *found : std::string();
}

namespace {

// A temporary file that is removed in the end.
class ExpandedCopy {
 public:
  ExpandedCopy(const std::filesystem::path& path, std::uint64_t limit)
      : copy_(std::filesystem::temp_directory_path() / "copy", ".sqlite", for_us) {
    const int file = copy_.take_descriptor();
    try {
      fill(file, path, limit);
    } catch (...) {
      ::close(file);
      throw;
    }
    ::close(file);
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return copy_.path(); }

 private:
  static constexpr unsigned for_us = 0600;

  void fill(int file, const std::filesystem::path& from, std::uint64_t limit) const {
    ByteSource source(from, limit);
    std::vector<char> chunk(std::size_t{1} << 20);
    while (std::size_t left = source.read(chunk.data(), chunk.size())) {
      for (const char* at = chunk.data(); left > 0;) {
        const ssize_t written = ::write(file, at, left);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
          throw IoError(fmt::format("{}: cannot be expanded into {}: {}", printable(from.string()),
                                    printable(path().string()), std::strerror(errno)));
        at += written;
        left -= static_cast<std::size_t>(written);
      }
    }
  }

  TemporaryFile copy_;
};

bool is_gzip(const std::filesystem::path& path) {
  std::array<char, 2> begin{};
  std::ifstream(path, std::ios::binary).read(begin.data(), begin.size());
  return begin == std::array{'\x1f', '\x8b'};
}

}  // namespace

// The file may be removed while it is open: SQLite, told that nothing changes it, keeps it so.
SqlConnection Database::open(const std::filesystem::path& path, const ImportOptions& options) {
  if (!is_gzip(path)) return {path, SqlConnection::Mode::foreign};
  try {
    const ExpandedCopy copy(path, options.max_expanded_bytes);
    SqlConnection connection(copy.path(), SqlConnection::Mode::foreign);
    (void)SqlStatement(connection, "SELECT count(*) FROM sqlite_schema").next();  // opens it
    return connection;
  } catch (const DataError& error) {  // half a database is none
    throw DataError(error.what(), {.in = {}, .hint = "copy or download the file again"});
  }
}

Database::Database(const std::filesystem::path& path, const ImportOptions& options)
    : shown_(printable(path.string())), connection_(open(path, options)) {
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

std::string Database::columns(std::string_view table, std::initializer_list<std::string_view> names,
                              std::string_view alias) const {
  std::vector<std::string> list;
  for (const std::string_view name : names)
    list.push_back(has_column(table, name) ? fmt::format("{}{}", alias, name) : "NULL");
  return fmt::format("{}", fmt::join(list, ", "));
}

std::int64_t Database::integer(const SqlStatement& row, int column) const {
  if (const auto number = optional_integer(row, column)) return *number;
  const SqlValue value = row.value(column);
  throw DataError(fmt::format(
      "{}: column '{}' holds {}; expected a whole number", shown_, row.column_name(column),
      std::holds_alternative<std::monostate>(value) ? "nothing" : "another type"));
}

std::int64_t Database::size(const SqlStatement& row, int column, std::int64_t most) const {
  const std::int64_t value = integer(row, column);
  if (value < 0 || value > most)
    throw DataError(fmt::format("{}: column '{}' holds {}; expected 0 to {}", shown_,
                                row.column_name(column), value, most));
  return value;
}

}  // namespace rubato::nsight
