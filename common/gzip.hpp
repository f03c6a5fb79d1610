#pragma once
// Text packed as gzip. ByteSource reads it.

#include <filesystem>
#include <string>
#include <string_view>

namespace rubato {

/// One gzip member, without name or time, so that equal texts give equal bytes.
/// @throws IoError if zlib cannot start
[[nodiscard]] std::string gzip(std::string_view text);

/// As write_file; the text is packed if the name ends in .gz.
/// @throws as write_file
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace rubato
