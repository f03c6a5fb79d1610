#pragma once
// Files of any size from front to back, inflated on the way if they are gzip.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace rubato {

inline constexpr std::string_view byte_order_mark =
    "\xEF\xBB\xBF";  ///< Windows begins texts with it
inline constexpr std::uint64_t max_expanded_bytes = std::uint64_t{64} << 30;  ///< 64 GiB

/// A file read once. gzip is known by its first bytes, not by its name; a byte order mark of UTF-8
/// is left out.
class ByteSource {
 public:
  /// @param limit  bytes of content that are read at most, against zip bombs
  /// @throws IoError if the file cannot be opened
  explicit ByteSource(const std::filesystem::path& path, std::uint64_t limit = max_expanded_bytes);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Reads up to `count` bytes, > 0. @return how many; 0 only at the end
  /// @throws IoError; DataError for gzip that is damaged or ends early, and beyond the limit
  [[nodiscard]] std::size_t read(char* to, std::size_t count);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  struct State;
  std::filesystem::path path_;
  std::uint64_t limit_;
  std::uint64_t given_ = 0;
  std::unique_ptr<State> state_;
};

/// The first bytes of a file's content, inflated if it is gzip, for telling formats apart. Fewer
/// than `count` if the content ends or is damaged before. @throws IoError
[[nodiscard]] std::string first_bytes(const std::filesystem::path& path, std::size_t count);

/// A whole file, inflated if it is gzip.
/// @param damage  if given, damaged gzip and content beyond `limit` are no errors: what comes
///                before is returned, and the message is put here
/// @throws as ByteSource
[[nodiscard]] std::string read_expanded(const std::filesystem::path& path, std::uint64_t limit,
                                        std::string* damage = nullptr);

/// A whole text file of at most max_text_file_bytes, inflated if it is gzip, without a byte order
/// mark.
/// @throws as read_file and read_expanded
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

}  // namespace rubato
