#include "common/sqlite.hpp"

#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/process/interruption.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

constexpr int busy_timeout_ms = 5000;
constexpr int max_foreign_value_bytes = 64 << 20;

std::string hint_for(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "another program is writing to it; try again when it has finished";
    case SQLITE_NOTADB: return "the file is not an SQLite database; give another name";
    case SQLITE_CORRUPT:
      return "the database is damaged; restore a copy, or save what is left with 'sqlite3 FILE "
             ".recover'";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM: return "check that the file and its folder exist and may be written to";
    case SQLITE_FULL: return "the disk is full; nothing of this run was stored";
    default: return "";
  }
}

// Opened so, SQLite takes no locks and makes no files beside the database.
std::string immutable_uri(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool special = c == '%' || c == '?' || c == '#';
    uri += special ? fmt::format("%{:02X}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return uri + "?immutable=1";
}

// A value in a message.
std::string shown(const SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return fmt::format("'{}'", printable(*text));
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  return "NULL";
}

int allow_reading_only(void*, int action, const char*, const char* function, const char*,
                       const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION:
      return std::string_view(function) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_DENY;
  }
}

}  // namespace

void refuse_value(const SqlValue& value, std::string_view expected) {
  throw DataError(fmt::format("a value in the database is {}; expected {}", shown(value), expected),
                  {.in = {}, .hint = "the database is damaged; restore a copy"});
}

void SqlConnection::Close::operator()(sqlite3* handle) const noexcept { sqlite3_close(handle); }
SqlConnection::Idle::~Idle() {
  for (const auto& [sql, statement] : statements) sqlite3_finalize(statement);
}

void SqlStatement::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
  if (idle != nullptr) {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);  // which may be large
    try {
      if (idle->statements.emplace(sqlite3_sql(statement), statement).second) return;
    } catch (const std::bad_alloc&) {
      // It is compiled again when it is needed.
    }
  }
  sqlite3_finalize(statement);
}

SqlConnection::SqlConnection(const std::filesystem::path& path, Mode mode) : path_(path) {
  switch (mode) {
    case Mode::create: open(path.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE); break;
    case Mode::read_only: open_to_read(); break;
    case Mode::foreign: open(immutable_uri(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI); break;
  }
  if (mode == Mode::foreign) {
    // A foreign schema may compute columns: harmless functions only, no values without end.
    sqlite3_db_config(handle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(handle(), SQLITE_LIMIT_LENGTH, max_foreign_value_bytes);
  }
  execute("PRAGMA foreign_keys = ON");
}

void SqlConnection::open(const std::string& name, int flags) {
  sqlite3* handle = nullptr;
  // Without SQLite's mutexes: one thread at a time per connection, as the header says.
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail("open");
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, busy_timeout_ms);
  constexpr int steps_between_looks = 10'000;  // far less than a millisecond
  sqlite3_progress_handler(
      handle, steps_between_looks, [](void*) { return must_end() ? 1 : 0; }, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
}

// A reader of a write-ahead log needs the log and its index beside the file. Who may make them also
// removes them in the end, but only on a connection that may write.
void SqlConnection::open_to_read() {
  const auto beside = [&](const char* suffix) {
    std::error_code none;
    return std::filesystem::file_size(path_.string() + suffix, none) > 0 && !none;
  };
  const std::filesystem::path folder = std::filesystem::absolute(path_).parent_path();
  if (::access(path_.c_str(), W_OK) == 0 && ::access(folder.c_str(), W_OK) == 0)
    return open(path_.string(), SQLITE_OPEN_READWRITE);
  if (beside("-wal") || beside("-journal")) return open_copy();
  if (beside("-shm") || ::access(path_.c_str(), R_OK) != 0)
    return open(path_.string(), SQLITE_OPEN_READONLY);
  open(immutable_uri(path_), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  note_ = "may not be written to: it was read as it was when it was opened";
}

// What another program wrote last is still beside the file, and cannot be put into it.
void SqlConnection::open_copy() {
  constexpr unsigned for_us = 0600;
  copy_ = std::make_unique<TemporaryFile>(std::filesystem::temp_directory_path() / "copy", ".db",
                                          for_us);
  ::close(copy_->take_descriptor());  // or closing it later would take SQLite's locks
  for (const char* suffix : {"", "-wal", "-journal"}) {
    std::error_code failed;
    if (!std::filesystem::exists(path_.string() + suffix, failed)) continue;
    const std::filesystem::path to = copy_->path().string() + suffix;
    std::filesystem::copy_file(path_.string() + suffix, to,
                               std::filesystem::copy_options::overwrite_existing, failed);
    if (!failed) std::filesystem::permissions(to, std::filesystem::perms(for_us), failed);
    if (failed)
      throw IoError(fmt::format("{}{}: cannot copy: {}", path_.string(), suffix, failed.message()));
  }
  open(copy_->path().string(), SQLITE_OPEN_READWRITE);
  note_ = "may not be written to, and has a log beside it: a copy of both was read";
}

void SqlConnection::execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail("write to");
}

void SqlConnection::use_write_ahead_log() {
  // Of two programs that change the mode at once SQLite refuses one without waiting.
  constexpr std::chrono::milliseconds pause(20);
  for (int waited = 0; waited < busy_timeout_ms; waited += static_cast<int>(pause.count())) {
    const int code =
        sqlite3_exec(handle_.get(), "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return;
    if ((code & 0xff) != SQLITE_BUSY) break;
    std::this_thread::sleep_for(pause);
  }
  fail("write to");
}

void SqlConnection::wait_for_disk_at_checkpoints() {
  constexpr int pages = 16'000;  // 64 MB in pages of 4096 bytes
  SqlStatement mode(*this, "PRAGMA journal_mode");
  if (mode.next() && mode.value(0) == SqlValue("wal"))
    execute(fmt::format("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = {}", pages));
}

void SqlConnection::trust_references() { execute("PRAGMA foreign_keys = OFF"); }

void SqlConnection::copy_to(const SqlConnection& empty) const {
  sqlite3_backup* copy = sqlite3_backup_init(empty.handle(), "main", handle(), "main");
  if (copy == nullptr) empty.fail("write to");
  constexpr int all_pages = -1;
  sqlite3_backup_step(copy, all_pages);
  if (sqlite3_backup_finish(copy) != SQLITE_OK) empty.fail("write to");
}

std::int64_t SqlConnection::last_insert_id() const {
  return sqlite3_last_insert_rowid(handle_.get());
}

void SqlConnection::forbid_writes() {
  sqlite3_set_authorizer(handle_.get(), &allow_reading_only, nullptr);
}

void SqlConnection::fail(std::string_view action) const {
  const int code = handle_ ? sqlite3_errcode(handle_.get()) : SQLITE_NOMEM;
  if ((code & 0xff) == SQLITE_INTERRUPT) refuse_if_interrupted();
  const char* message = handle_ ? sqlite3_errmsg(handle_.get()) : "out of memory";
  throw IoError(
      fmt::format("{}: cannot {} the database: {}", path_.string(), action, printable(message)),
      {.in = {}, .hint = hint_for(code)});
}

namespace {

// What to do about SQL that names what is not there.
std::string hint_for_names(const SqlConnection& connection, std::string_view message) {
  constexpr std::string_view no_table = "no such table: ";
  if (!message.starts_with(no_table)) return "SELECT * FROM v_answer LIMIT 1 shows its columns";
  SqlStatement names(connection,
                     "SELECT name FROM sqlite_schema WHERE type = 'view' OR type = 'table' AND NOT "
                     "EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'view') ORDER BY name");
  std::vector<std::string> known;
  while (names.next()) known.push_back(value_as<std::string>(names.value(0)));
  const auto near = nearest(message.substr(no_table.size()), known);
  return near ? fmt::format("did you mean '{}'?", *near)
              : fmt::format("there are {}", fmt::join(known, ", "));
}

}  // namespace

SqlStatement::SqlStatement(const SqlConnection& connection, std::string_view sql)
    : connection_(connection) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(connection.handle(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, &rest);
  statement_.reset(statement);
  const int kind = code & 0xff;
  if (kind == SQLITE_ERROR || kind == SQLITE_AUTH) {
    const bool denied = kind == SQLITE_AUTH;
    const std::string message = printable(sqlite3_errmsg(connection.handle()));
    throw UsageError("SQL: " + message,
                     {.in = {},
                      .hint = denied ? "queries can only read: one SELECT statement"
                                     : hint_for_names(connection, message)});
  }
  if (code != SQLITE_OK) connection.fail("read");
  const std::string_view left(rest, static_cast<std::size_t>(sql.data() + sql.size() - rest));
  if (statement == nullptr || left.find_first_not_of(" \t\r\n;") != std::string_view::npos) {
    throw UsageError("SQL: expected exactly one statement");
  }
}

SqlStatement SqlStatement::kept(const SqlConnection& connection, std::string_view sql) {
  SqlConnection::Idle& idle = *connection.idle_;
  const auto known = idle.statements.find(sql);
  if (known == idle.statements.end()) {
    SqlStatement made(connection, sql);
    made.statement_.get_deleter().idle = &idle;
    return made;
  }
  std::unique_ptr<sqlite3_stmt, Finalize> statement(known->second, Finalize(&idle));
  idle.statements.erase(known);
  return {connection, std::move(statement)};
}

void SqlStatement::bind(int position, std::monostate) {
  sqlite3_bind_null(statement_.get(), position);
}
void SqlStatement::bind(int position, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), position, value);
}
void SqlStatement::bind(int position, double value) {
  sqlite3_bind_double(statement_.get(), position, value);
}
void SqlStatement::bind(int position, std::string_view value) {
  sqlite3_bind_text64(statement_.get(), position, value.data(), value.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
}

void SqlStatement::finish() {
  while (next()) {
  }
  sqlite3_reset(statement_.get());
}

void SqlStatement::expect_declared_types() {
  declared_.assign(static_cast<std::size_t>(columns()), 0);
  for (int c = 0; c < columns(); ++c) {
    const char* type = sqlite3_column_decltype(statement_.get(), c);
    const std::string_view name = type == nullptr ? "" : type;
    declared_[static_cast<std::size_t>(c)] = name == "INTEGER" ? SQLITE_INTEGER
                                             : name == "REAL"  ? SQLITE_FLOAT
                                             : name == "TEXT"  ? SQLITE_TEXT
                                                               : 0;
  }
}

void SqlStatement::check_types() {
  ++row_;
  for (int c = 0; c < static_cast<int>(declared_.size()); ++c) {
    const int type = declared_[static_cast<std::size_t>(c)];
    const int found = sqlite3_column_type(statement_.get(), c);
    if (type == 0 || found == type || found == SQLITE_NULL) continue;
    const char* declared = sqlite3_column_decltype(statement_.get(), c);
    const char* table = sqlite3_column_table_name(statement_.get(), c);
    const char* column = sqlite3_column_origin_name(statement_.get(), c);
    throw DataError(
        fmt::format("{}: column {}.{} holds {} in row {} of what was read; expected {} or NULL",
                    connection_.path_.string(), table == nullptr ? "?" : table,
                    column == nullptr ? "?" : column, shown(value(c)), row_, declared),
        {.in = {}, .hint = "the database is damaged; restore a copy"});
  }
}

bool SqlStatement::next() {
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW: check_types(); return true;
    case SQLITE_DONE: return false;
    default: connection_.fail(sqlite3_stmt_readonly(statement_.get()) != 0 ? "read" : "write to");
  }
}

int SqlStatement::columns() const { return sqlite3_column_count(statement_.get()); }

std::string SqlStatement::column_name(int column) const {
  return sqlite3_column_name(statement_.get(), column);
}

SqlValue SqlStatement::value(int column) const {
  sqlite3_stmt* statement = statement_.get();
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL: return std::monostate{};
    case SQLITE_INTEGER: return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    default: break;
  }
  const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, column));
  return std::string(text == nullptr ? "" : text,
                     static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

SqlTransaction::SqlTransaction(SqlConnection& connection, References references)
    : connection_(connection), references_(references) {
  if (references_ == References::known_to_hold) connection_.execute("PRAGMA foreign_keys = OFF");
  connection_.execute("BEGIN IMMEDIATE");
}

SqlTransaction::~SqlTransaction() {
  // A failure here leaves an open transaction that closing the connection rolls back.
  if (open_) sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  if (references_ == References::known_to_hold)
    sqlite3_exec(connection_.handle(), "PRAGMA foreign_keys = ON", nullptr, nullptr, nullptr);
}

void SqlTransaction::commit() {
  refuse_if_interrupted();
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace rubato
