#include "common/sqlite.hpp"

#include <chrono>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <sqlite3.h>

#include "common/error.hpp"
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
  const int flags =
      (mode == Mode::create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) |
      SQLITE_OPEN_NOMUTEX;  // one thread at a time per connection, as the header says
  sqlite3* handle = nullptr;
  const bool foreign = mode == Mode::foreign;
  const std::string name = foreign ? immutable_uri(path) : path.string();
  const int code =
      sqlite3_open_v2(name.c_str(), &handle, flags | (foreign ? SQLITE_OPEN_URI : 0), nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail("open");
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, busy_timeout_ms);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  if (foreign) {
    // A foreign schema may compute columns: harmless functions only, no values without end.
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, max_foreign_value_bytes);
  }
  execute("PRAGMA foreign_keys = ON");
}

void SqlConnection::execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail("write to");
}

void SqlConnection::execute_on_schema(const std::string& sql) {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  execute(sql);
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
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
  const char* message = handle_ ? sqlite3_errmsg(handle_.get()) : "out of memory";
  throw IoError(
      fmt::format("{}: cannot {} the database: {}", path_.string(), action, printable(message)),
      {.in = {}, .hint = hint_for(code)});
}

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
    throw UsageError(fmt::format("SQL: {}", printable(sqlite3_errmsg(connection.handle()))),
                     {.in = {},
                      .hint = denied ? "queries can only read: one SELECT statement"
                                     : "SELECT name FROM sqlite_schema lists tables and views"});
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

bool SqlStatement::next() {
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW: return true;
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
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace rubato
