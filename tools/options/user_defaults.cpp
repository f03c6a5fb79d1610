#include "tools/options/user_defaults.hpp"

#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "models/gpu/spec.hpp"
#include "tools/options/prices.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

// Empty: there is no such file.
std::filesystem::path file_of_defaults() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  std::filesystem::path folder = variable("XDG_CONFIG_HOME");
  if (!folder.is_absolute()) folder = variable("HOME") / ".config";  // as the standard says
  std::error_code unknown;
  return std::filesystem::is_regular_file(folder / "rubato.toml", unknown) ? folder / "rubato.toml"
                                                                           : "";
}

// A value that its option would refuse is the file's fault.
void check_default(const JsonNode& node, std::string_view key) {
  const std::string value = node.text();
  try {
    if (key == "gpu") (void)load_gpu_spec(value);
    if (key == "prices") (void)prices_of(value);
    if (value.empty()) throw UsageError("is empty");
  } catch (const UsageError& error) {
    node.fail(error.what(), error.detail().hint);
  }
}

}  // namespace

std::optional<std::string> user_default(std::string_view key) {
  const std::filesystem::path file = file_of_defaults();
  if (file.empty()) return std::nullopt;
  const JsonDocument document = JsonDocument::parse_toml(read_file(file), file.string());
  for (const std::string& name : document.root().keys()) {
    if (name != "gpu" && name != "db" && name != "prices")
      document.root().at(name).fail("is not known; expected gpu, db or prices");
  }
  const auto node = document.root().find(key);
  if (!node) return std::nullopt;
  check_default(*node, key);
  static std::set<std::string, std::less<>> told;
  if (told.emplace(key).second)
    tell("note: --{} {}, by {}\n", key, printable(node->text()), printable(file.string()));
  return node->text();
}

std::string usual_gpu() { return user_default("gpu").value_or("rtx-3080-ti"); }

}  // namespace rubato
