#pragma once
// Whole files in and out.

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rubato {

inline constexpr std::size_t max_text_file_bytes = std::size_t{1} << 30;  ///< 1 GiB

/// The bytes of a file as they are.
/// @throws IoError if the file cannot be opened or read, is a folder, or holds
///         more than `limit_bytes`
[[nodiscard]] std::string read_file(const std::filesystem::path& path,
                                    std::size_t limit_bytes = max_text_file_bytes);

/// A new, empty file that nobody else can have made or foreseen, removed again unless it is
/// renamed.
class TemporaryFile {
 public:
  /// @param beside  what it may become: a file in the same folder, which is made if there is none
  /// @param mode    who may do what with it, if `beside` is not there to say so
  /// @throws IoError naming `beside`
  explicit TemporaryFile(const std::filesystem::path& beside, std::string_view suffix = ".part",
                         unsigned mode = 0666);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// The open file, once; whoever takes it closes it.
  [[nodiscard]] int take_descriptor() noexcept { return std::exchange(descriptor_, -1); }
  /// All that is in it. @throws IoError
  void write(std::string_view text);
  /// In the place of `target`, and no longer temporary. @throws IoError naming `target`
  void become(const std::filesystem::path& target);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1, place_ = -1;
};

/// "x.partial.csv" of "x.csv": where a part of what was asked goes.
[[nodiscard]] std::filesystem::path partial_path(const std::filesystem::path& path);

/// A file written piece by piece, beside the target until commit() renames it. So a reader never
/// sees half a file, and a failure leaves the old one. "-" is standard output, whose reader may go
/// when it has seen enough: that is no error. What is no ordinary file, such as /dev/null or a
/// named pipe, is written directly; of a link, the file that it leads to is replaced.
class FileWriter {
 public:
  /// Makes the target's folder if there is none.
  /// @throws IoError if the folder cannot be made or written to
  explicit FileWriter(const std::filesystem::path& path);
  ~FileWriter();  ///< without commit() nothing is left behind
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// @throws IoError, as when the disk is full
  void write(std::string_view text);
  /// Puts the file in the place of the target; of a part of what was asked, at partial_path().
  /// @return where it is
  /// @throws IoError; InterruptedError if the user asked to stop a command that gives no parts
  std::filesystem::path commit();

 private:
  void finish();

  std::filesystem::path path_, shown_;  // where links lead, and as it was asked for
  std::optional<TemporaryFile> part_;
  std::FILE* file_ = nullptr;
};

/// Writes a whole file as FileWriter does. @return where it is
/// @throws as FileWriter::commit
std::filesystem::path write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace rubato
