#pragma once
// Data files compiled into the program, see rubato_embed in CMakeLists.txt.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// A file as it was at build time.
struct EmbeddedFile {
  std::string_view name;  ///< without folder and extension
  std::string_view text;
};

/// Names of the files, in their order.
[[nodiscard]] std::vector<std::string> names_of(std::span<const EmbeddedFile> files);

/// Text that was asked for by the name of an embedded file or by a path.
struct NamedText {
  std::string text;
  std::filesystem::path path;  ///< as given; of an embedded file its name
};

/// The embedded file of that name, else the file at that path. What has neither a folder nor an
/// extension is taken for a name.
/// @param what  for messages: what is asked for, e.g. "GPU spec"
/// @param hint  for messages: what else could be given
/// @throws UsageError (unknown name, with the nearest), IoError
[[nodiscard]] NamedText read_named(std::span<const EmbeddedFile> files,
                                   std::string_view name_or_path, std::string_view what,
                                   std::string hint);

}  // namespace rubato
