#include "explorer/published_data.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

#include "common/embedded.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_published();

std::string_view published_data(std::string_view name) {
  const std::span<const EmbeddedFile> files = embedded_published();
  const auto found = std::ranges::find(files, name, &EmbeddedFile::name);
  if (found == files.end()) throw std::out_of_range(std::string(name));
  return found->text;
}

}  // namespace rubato
