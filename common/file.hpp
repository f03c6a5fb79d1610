#pragma once
// Whole files in and out.

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace rubato {

inline constexpr std::size_t max_text_file_bytes = std::size_t{1} << 30;  ///< 1 GiB

/// The bytes of a file as they are.
/// @throws IoError if the file cannot be opened or read, is a folder, or holds
///         more than `limit_bytes`
[[nodiscard]] std::string read_file(const std::filesystem::path& path,
                                    std::size_t limit_bytes = max_text_file_bytes);

/// A file written piece by piece, beside the target until commit() renames it. So a reader never
/// sees half a file, and a failure leaves the old one. "-" is standard output, whose reader may go
/// when it has seen enough: that is no error.
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
  /// Puts the file in the place of the target. @throws IoError
  void commit();

 private:
  std::filesystem::path path_, part_;
  std::FILE* file_ = nullptr;
};

/// Writes a whole file as FileWriter does.
/// @throws IoError if the folder cannot be made or written to, or the disk is full
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace rubato
