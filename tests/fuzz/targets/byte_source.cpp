// Plain and gzip files; what is compressed here must come back whole.

#include <optional>
#include <string>

#include <zlib.h>

#include "common/byte_source.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/seed.hpp"

namespace {

using rubato::fuzz::as_file;
using rubato::fuzz::must;
using rubato::fuzz::require;

constexpr std::uint64_t limit = std::uint64_t{4} << 20;

// Until the end or an error.
std::string read_in_pieces(const std::filesystem::path& path, std::size_t piece) {
  std::string text, buffer(piece, '\0');
  try {
    rubato::ByteSource source(path, limit);
    while (const std::size_t got = source.read(buffer.data(), piece)) text.append(buffer, 0, got);
  } catch (const rubato::Error&) {
    // What came before counts.
  }
  return text;
}

void check_compressed(std::string_view bytes) {
  const std::string packed = rubato::fuzz::gzip(bytes);
  const std::string whole = must("what was compressed can be read",
                                 [&] { return rubato::read_expanded(as_file(packed), limit); });
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  require(whole == bytes.substr(bytes.starts_with(mark) ? mark.size() : 0),
          "gzip gives back what went in, but for a byte order mark");
  const std::string cut = packed.substr(0, packed.size() - 1 - packed.size() / 3);
  try {
    const std::string read = rubato::read_expanded(as_file(cut), limit);
    require(cut.size() < 2 && read == cut, "a cut file is told");
  } catch (const rubato::DataError&) {
    require(cut.size() >= 2, "one byte is no gzip file");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    if (bytes.size() < limit) check_compressed(bytes);
    const std::filesystem::path& path = as_file(bytes);
    const std::string pieces = read_in_pieces(path, 997);
    require(pieces.starts_with(rubato::first_bytes(path, 64)) || pieces.size() < 64,
            "the first bytes are the first");
    const std::string whole = rubato::read_expanded(path, limit);
    require(whole == pieces, "the size of pieces does not matter");
  });
}
