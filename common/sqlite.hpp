#pragma once
// SQLite connections, statements and transactions that clean up after themselves.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/file.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace rubato {

/// A value read from or bound to a statement.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

[[noreturn]] void refuse_value(const SqlValue& value, std::string_view expected);

/// A value that must be a whole number, a number or a text. @throws DataError if it is not, as in a
/// damaged file
template <class T>
[[nodiscard]] const T& value_as(const SqlValue& value) {
  if (const T* held = std::get_if<T>(&value)) return *held;
  refuse_value(value, std::is_same_v<T, std::string> ? "a text"
                      : std::is_same_v<T, double>    ? "a number"
                                                     : "a whole number");
}

/// An open database, for one thread at a time. Every failure is an IoError that names the file, but
/// InterruptedError where the user asked to stop a command that gives no parts.
class SqlConnection {
 public:
  /// read_only: other programs may write, and nothing of ours stays beside the file. Where the file
  /// or its folder may not be written to, it is read as it is now, see note().
  /// foreign: somebody else's file, never written to, not even beside it.
  enum class Mode { create, read_only, foreign };

  /// Waits up to five seconds for other writers, here and in later calls.
  SqlConnection(const std::filesystem::path& path, Mode mode);

  /// Runs statements without results.
  void execute(const std::string& sql);

  /// Write-ahead log: readers and one writer side by side. The file keeps it for those who open it
  /// later.
  void use_write_ahead_log();

  /// For a file with a write-ahead log: a commit does not wait until it is on the disk. Only a
  /// checkpoint does, once in some 64 MB. What was committed survives a crash of the program. A
  /// power cut may take the last commits, but the file stays sound.
  void wait_for_disk_at_checkpoints();

  /// From here on SQLite does not check foreign keys. For a caller who writes rows together with
  /// those they refer to, and deletes nothing. To switch for each transaction instead would compile
  /// kept statements anew.
  void trust_references();

  /// Copies all of it, as it is at this moment, into an empty database.
  void copy_to(const SqlConnection& empty) const;

  [[nodiscard]] std::int64_t last_insert_id() const;

  /// From here on only reading statements are accepted: no writes, no ATTACH, no
  /// PRAGMA, no loading of extensions.
  void forbid_writes();

  [[nodiscard]] sqlite3* handle() const noexcept { return handle_.get(); }

  /// What to know of a file that may not be written to; mostly nothing.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }

  /// Throws the error of the last call as an IoError with a hint.
  /// @param action  what could not be done: "open", "read", "write to"
  [[noreturn]] void fail(std::string_view action) const;

 private:
  friend class SqlStatement;
  void open(const std::string& name, int flags);
  void open_to_read();
  void open_copy();
  struct Close {
    void operator()(sqlite3* handle) const noexcept;
  };
  // Statements that nobody uses, by their text.
  struct Idle {
    Idle() = default;
    ~Idle();
    Idle(const Idle&) = delete;
    Idle& operator=(const Idle&) = delete;
    std::map<std::string, sqlite3_stmt*, std::less<>> statements;
  };
  std::filesystem::path path_;
  std::string note_;
  std::unique_ptr<TemporaryFile> copy_;  // removed after the handle is closed
  std::unique_ptr<sqlite3, Close> handle_;
  std::unique_ptr<Idle> idle_ = std::make_unique<Idle>();  // ends before the handle
};

/// A prepared statement. Values are bound by position from 1, columns are read from 0.
class SqlStatement {
 public:
  /// @throws UsageError with SQLite's message if `sql` is not one valid statement
  SqlStatement(const SqlConnection& connection, std::string_view sql);

  /// As the constructor, but the connection keeps the compiled statement, until it is closed, for
  /// the next use of the same text. For few texts that come again and again.
  [[nodiscard]] static SqlStatement kept(const SqlConnection& connection, std::string_view sql);

  /// Binds all values in order, runs the statement to its end and resets it.
  template <class... Values>
  void run(const Values&... values) {
    int position = 0;
    (bind(++position, values), ...);
    finish();
  }

  /// Binds values from a position on; for statements of many rows.
  template <class... Values>
  void bind_from(int position, const Values&... values) {
    (bind(position++, values), ...);
  }
  /// As run, with the values that are bound.
  void run_bound() { finish(); }

  /// Binds all values in order and steps to the first row. @return false if there is none
  template <class... Values>
  [[nodiscard]] bool first(const Values&... values) {
    int position = 0;
    (bind(++position, values), ...);
    return next();
  }

  /// Binds the values of a list in order.
  template <class List>
  void bind_all(const List& values) {
    int position = 0;
    for (const SqlValue& value : values) bind(++position, value);
  }

  /// From here on next() checks what the columns of tables hold against what they are declared to.
  void expect_declared_types();

  /// Steps to the next row. @return false after the last one
  /// @throws DataError naming table and column, if types are checked and one is wrong
  [[nodiscard]] bool next();
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string column_name(int column) const;
  [[nodiscard]] SqlValue value(int column) const;

 private:
  struct Finalize {
    Finalize() noexcept : idle(nullptr) {}
    explicit Finalize(SqlConnection::Idle* kept_in) noexcept : idle(kept_in) {}
    SqlConnection::Idle* idle;  // where the statement is kept
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  SqlStatement(const SqlConnection& connection, std::unique_ptr<sqlite3_stmt, Finalize> statement)
      : connection_(connection), statement_(std::move(statement)) {}

  void bind(int position, std::monostate);
  void bind(int position, std::int64_t value);
  void bind(int position, double value);
  void bind(int position, std::string_view value);
  void bind(int position, const std::string& value) { bind(position, std::string_view(value)); }
  void bind(int position, const char* value) { bind(position, std::string_view(value)); }
  void bind(int position, bool value) { bind(position, std::int64_t{value ? 1 : 0}); }
  void bind(int position, std::size_t value) { bind(position, static_cast<std::int64_t>(value)); }
  void bind(int position, std::uint32_t value) { bind(position, std::int64_t{value}); }
  void bind(int position, const SqlValue& value) {
    std::visit([&](const auto& held) { bind(position, held); }, value);
  }
  void bind(int position, const std::optional<double>& value) {
    if (value) return bind(position, *value);
    bind(position, std::monostate{});
  }
  void finish();
  void check_types();

  const SqlConnection& connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::vector<int> declared_;  // types of SQLite, by column; 0: any
  std::size_t row_ = 0;
};

/// Whether SQLite checks the foreign keys of rows that are written.
enum class References { looked_up, known_to_hold };

/// Rolls back when it goes out of scope without commit().
class SqlTransaction {
 public:
  /// Begins it and takes the write lock.
  /// @param references  known_to_hold: for rows that are written together with those they refer to;
  ///                    nothing may be deleted
  explicit SqlTransaction(SqlConnection& connection, References references = References::looked_up);
  ~SqlTransaction();
  SqlTransaction(const SqlTransaction&) = delete;
  SqlTransaction& operator=(const SqlTransaction&) = delete;

  void commit();

 private:
  SqlConnection& connection_;
  References references_;
  bool open_ = true;
};

}  // namespace rubato
