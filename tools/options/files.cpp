#include "tools/options/files.hpp"

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "common/error.hpp"
#include "common/file.hpp"

namespace rubato {

namespace {

// What the text in standard input is, as the name of a file says it.
std::string_view extension_of(std::string_view text) {
  if (text.starts_with("\x1f\x8b")) return ".json.gz";
  if (text.starts_with("SQLite format 3")) return ".sqlite";
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  return json ? ".json" : ".csv";
}

// Standard input as a file, which is removed when the program ends; none if nothing was kept.
std::optional<TemporaryFile>& standard_input() {
  static std::optional<TemporaryFile> file;
  return file;
}

}  // namespace

std::string input_file(const std::string& word) {
  if (word != "-") return word;
  const std::string text = read_file("/dev/stdin");
  if (text.empty()) throw IoError("standard input: is empty");
  constexpr unsigned for_us = 0600;
  TemporaryFile& file = standard_input().emplace(
      std::filesystem::temp_directory_path() / "standard-input", extension_of(text), for_us);
  file.write(text);
  return file.path().string();
}

std::string with_input_named(std::string text) {
  if (!standard_input()) return text;
  const std::string path = standard_input()->path().string();
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
