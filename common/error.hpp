#pragma once
// Errors that reach the user. They are thrown where input enters the program, caught once in main,
// and printed as "error: where: what", "in:" and "hint:" lines.

#include <stdexcept>
#include <string>
#include <vector>

namespace rubato {

/// Exit status of the program, see docs/style.md.
enum class ExitStatus : int {
  done = 0,
  no_plan = 1,
  usage = 2,
  input = 3,
  io = 4,
  bug = 70,
  interrupted = 130
};

/// Extra lines of an error message.
struct ErrorDetail {
  std::string in = {};    ///< what was being read, e.g. "kernel 'gemm_qkv', core 1410 MHz"
  std::string hint = {};  ///< what to try
};

/// Base of all errors with a message for the user. `what()` is the message without "error: ";
/// `report()` is the whole text. A message may hold text out of a damaged file: every line is made
/// printable and cut after 2000 bytes.
class Error : public std::runtime_error {
 public:
  [[nodiscard]] ExitStatus status() const noexcept { return status_; }

  /// "error: what", then the "in:" and "hint:" lines if there are any, newline at the end.
  [[nodiscard]] std::string report() const;
  [[nodiscard]] const ErrorDetail& detail() const noexcept { return detail_; }

 protected:
  Error(ExitStatus status, const std::string& what, ErrorDetail detail);

 private:
  ExitStatus status_;
  ErrorDetail detail_;
};

/// The command line asks for something that does not exist or contradicts itself.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& what, ErrorDetail detail = {});
};

/// The content of a file is wrong.
class DataError : public Error {
 public:
  explicit DataError(const std::string& what, ErrorDetail detail = {});
};

/// A file cannot be read or written, a database is locked or damaged.
class IoError : public Error {
 public:
  explicit IoError(const std::string& what, ErrorDetail detail = {});
};

/// Collects problems of one file and throws them together, so a user sees
/// more than one of them, and how many there are.
class ErrorList {
 public:
  static constexpr std::size_t max_kept = 5;  ///< later problems are only counted

  /// Adds one complete message, e.g. "a.csv:3: time_s is -1; expected a number > 0".
  void add(std::string message);
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  /// @throws DataError listing the kept messages, if there are any
  void throw_if_any(ErrorDetail detail = {}) const;

 private:
  std::vector<std::string> kept_;
  std::size_t count_ = 0;
};

}  // namespace rubato
