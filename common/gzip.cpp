#include "common/gzip.hpp"

#include <algorithm>
#include <limits>

#include <zlib.h>

#include "common/error.hpp"
#include "common/file.hpp"

namespace rubato {

std::string gzip(std::string_view text) {
  constexpr int gzip_window = 15 + 16, memory_level = 8;  // zlib's defaults, gzip header
  constexpr std::size_t chunk_bytes = std::size_t{1} << 18;
  z_stream packer{};
  if (deflateInit2(&packer, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw IoError("zlib cannot start");
  std::string packed;
  std::size_t size = 0;
  int code = Z_OK;
  do {
    const std::size_t now =
        std::min<std::size_t>(text.size(), std::numeric_limits<unsigned>::max() / 2);
    packer.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
    packer.avail_in = static_cast<unsigned>(now);
    const int flush = now == text.size() ? Z_FINISH : Z_NO_FLUSH;
    do {
      packed.resize(size + chunk_bytes);
      packer.next_out = reinterpret_cast<unsigned char*>(packed.data() + size);
      packer.avail_out = chunk_bytes;
      code = deflate(&packer, flush);
      size += chunk_bytes - packer.avail_out;
    } while (packer.avail_out == 0);
    text.remove_prefix(now);
  } while (code != Z_STREAM_END);
  deflateEnd(&packer);
  packed.resize(size);
  return packed;
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  if (path.extension() == ".gz") {
    write_file(path, gzip(text));
  } else {
    write_file(path, text);
  }
}

}  // namespace rubato
