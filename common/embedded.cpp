#include "common/embedded.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/suggest.hpp"

namespace rubato {

std::vector<std::string> names_of(std::span<const EmbeddedFile> files) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : files) names.emplace_back(file.name);
  return names;
}

NamedText read_named(std::span<const EmbeddedFile> files, std::string_view name_or_path,
                     std::string_view what, std::string hint) {
  const auto shipped = std::ranges::find(files, name_or_path, &EmbeddedFile::name);
  if (shipped != files.end()) return {std::string(shipped->text), std::string(shipped->name)};
  std::filesystem::path path(name_or_path);
  if (!path.has_extension() && !path.has_parent_path()) {
    throw UsageError(fmt::format("there is no {} '{}'{}", what, name_or_path,
                                 did_you_mean(name_or_path, names_of(files))),
                     {.in = {}, .hint = std::move(hint)});
  }
  std::string text = read_file(path);
  return {std::move(text), std::move(path)};
}

}  // namespace rubato
