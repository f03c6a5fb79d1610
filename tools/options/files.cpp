#include "tools/options/files.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"

namespace rubato {

namespace {

// Gone when the program ends.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  std::string keep(const std::string& text) {
    std::string pattern = (std::filesystem::temp_directory_path() / "rubato-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw IoError(fmt::format("{}: cannot create: {}", pattern, std::strerror(errno)));
    folder_ = pattern;
    std::string path = (folder_ / ("standard-input" + extension_of(text))).string();
    write_file(path, text);
    return path;
  }

 private:
  static std::string extension_of(std::string_view text) {
    if (text.starts_with("\x1f\x8b")) return ".json.gz";
    if (text.starts_with("SQLite format 3")) return ".sqlite";
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
    return json ? ".json" : ".csv";
  }

  std::filesystem::path folder_;
};

}  // namespace

std::string input_file(const std::string& word) {
  if (word != "-") return word;
  static TemporaryFile standard_input;
  const std::string text = read_file("/dev/stdin");
  if (text.empty()) throw IoError("standard input: is empty");
  return standard_input.keep(text);
}

}  // namespace rubato
