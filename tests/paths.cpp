#include "tests/paths.hpp"

namespace rubato {

const std::filesystem::path& source_dir() {
  static const std::filesystem::path path = RUBATO_SOURCE_DIR;
  return path;
}

std::filesystem::path measured_data(const std::string& name) {
  return source_dir() / "models/data/measured" / name;
}

}  // namespace rubato
