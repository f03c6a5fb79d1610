#pragma once
// Data files compiled into the program, see rubato_embed in CMakeLists.txt.

#include <span>
#include <string_view>

namespace rubato {

/// A file as it was at build time.
struct EmbeddedFile {
  std::string_view name;  ///< without folder and extension
  std::string_view text;
};

}  // namespace rubato
