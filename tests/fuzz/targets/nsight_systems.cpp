// A database as bytes, or as SQL that makes one: mutated SQL gets past the page format to the
// tables, columns and types that the reader looks at.

#include <memory>
#include <string>

#include <sqlite3.h>

#include "tests/fuzz/captures.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

struct Close {
  void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
};

// Nothing outside the database in memory, no settings, and no functions, which may run for hours.
int allow_tables(void*, int action, const char*, const char*, const char*, const char*) {
  const bool other = action == SQLITE_ATTACH || action == SQLITE_DETACH ||
                     action == SQLITE_PRAGMA || action == SQLITE_FUNCTION;
  return other ? SQLITE_DENY : SQLITE_OK;
}

int stop(void*) { return 1; }

// The database that as much of `sql` as runs makes.
std::string database_of(std::string_view sql) {
  constexpr int most_operations = 100'000, most_bytes = 1 << 20;
  sqlite3* handle = nullptr;
  rubato::fuzz::require(sqlite3_open(":memory:", &handle) == SQLITE_OK, "SQLite opens memory");
  const std::unique_ptr<sqlite3, Close> database(handle);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, most_bytes);
  sqlite3_set_authorizer(handle, &allow_tables, nullptr);
  sqlite3_progress_handler(handle, most_operations, &stop, nullptr);
  sqlite3_exec(handle, std::string(sql).c_str(), nullptr, nullptr, nullptr);
  sqlite3_progress_handler(handle, 0, nullptr, nullptr);
  sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);  // of a transaction left open
  sqlite3_set_authorizer(handle, nullptr, nullptr);             // what follows asks a PRAGMA
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> bytes(
      sqlite3_serialize(handle, "main", &size, 0), &sqlite3_free);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes.get()),
                             static_cast<std::size_t>(size))
               : std::string();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    const bool made = bytes.starts_with("SQLite format 3");
    rubato::fuzz::check_capture(made ? std::string(bytes) : database_of(bytes),
                                rubato::import_nsight_systems);
  });
}
