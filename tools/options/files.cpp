#include "tools/options/files.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"

namespace rubato {

namespace {

// Standard input as a file, which is removed when the program ends.
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
    path_ = (folder_ / ("standard-input" + extension_of(text))).string();
    write_file(path_, text);
    return path_;
  }

  // Empty: nothing was kept.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  static std::string extension_of(std::string_view text) {
    if (text.starts_with("\x1f\x8b")) return ".json.gz";
    if (text.starts_with("SQLite format 3")) return ".sqlite";
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
    return json ? ".json" : ".csv";
  }

  std::filesystem::path folder_;
  std::string path_;
};

TemporaryFile& standard_input() {
  static TemporaryFile file;
  return file;
}

}  // namespace

std::string input_file(const std::string& word) {
  if (word != "-") return word;
  const std::string text = read_file("/dev/stdin");
  if (text.empty()) throw IoError("standard input: is empty");
  return standard_input().keep(text);
}

std::string with_input_named(std::string text) {
  const std::string& path = standard_input().path();
  if (path.empty()) return text;
  for (const std::string& name : {path, std::filesystem::path(path).filename().string()}) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, name.size(), "standard input");
  }
  return text;
}

std::vector<std::string> with_inputs_named(std::vector<std::string> names) {
  for (std::string& name : names) name = with_input_named(std::move(name));
  return names;
}

}  // namespace rubato
