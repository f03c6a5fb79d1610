#include "common/byte_source.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <zlib.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 18;
constexpr int gzip_window = 15 + 16;  // largest window, gzip header

}  // namespace

struct ByteSource::State {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{nullptr, &std::fclose};
  std::array<unsigned char, chunk_bytes> raw{};
  std::size_t first = 0, last = 0;  ///< raw[first, last) is not used yet
  bool gzip = false;
  bool between_members = false;
  z_stream inflater{};

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (gzip) inflateEnd(&inflater);
  }

  bool fill(const std::filesystem::path& path) {
    if (first < last) return true;
    first = 0;
    last = std::fread(raw.data(), 1, raw.size(), file.get());
    if (last == 0 && std::ferror(file.get()) != 0) {
      throw IoError(
          fmt::format("{}: cannot be read: {}", printable(path.string()), std::strerror(errno)));
    }
    return last > 0;
  }
};

ByteSource::ByteSource(const std::filesystem::path& path, std::uint64_t limit)
    : path_(path), limit_(limit), state_(std::make_unique<State>()) {
  state_->file.reset(std::fopen(path.c_str(), "rb"));
  if (!state_->file || std::filesystem::is_directory(path)) {
    throw IoError(fmt::format("{}: cannot be opened: {}", printable(path.string()),
                              state_->file ? "it is a folder" : std::strerror(errno)));
  }
  if (!state_->fill(path_) || state_->last < 2) return;
  constexpr unsigned char magic_1 = 0x1f, magic_2 = 0x8b;
  if (state_->raw[0] != magic_1 || state_->raw[1] != magic_2) return;
  if (inflateInit2(&state_->inflater, gzip_window) != Z_OK)
    throw IoError(fmt::format("{}: zlib cannot start", printable(path.string())));
  state_->gzip = true;
}

ByteSource::~ByteSource() = default;

std::size_t ByteSource::read(char* to, std::size_t count) {
  State& s = *state_;
  std::size_t done = 0;
  while (done == 0 && count > 0) {
    const bool more = s.fill(path_);
    // Tapes and block devices pad with zeros; gzip(1) takes them too.
    if (more && s.between_members && s.raw[s.first] == 0) {
      ++s.first;
      continue;
    }
    if (!more) {
      if (!s.gzip || s.between_members) break;
      throw DataError(
          fmt::format("{}: the gzip data end early, after {} bytes of content",
                      printable(path_.string()), given_),
          {.in = {}, .hint = "copy or download the file again; --partial takes what is there"});
    }
    if (!s.gzip) {
      done = std::min(count, s.last - s.first);
      std::memcpy(to, s.raw.data() + s.first, done);
      s.first += done;
      break;
    }
    s.inflater.next_in = s.raw.data() + s.first;
    s.inflater.avail_in = static_cast<unsigned>(s.last - s.first);
    s.inflater.next_out = reinterpret_cast<unsigned char*>(to);
    s.inflater.avail_out = static_cast<unsigned>(std::min(count, chunk_bytes * 16));
    const unsigned room = s.inflater.avail_out;
    const int code = inflate(&s.inflater, Z_NO_FLUSH);
    s.first = s.last - s.inflater.avail_in;
    done = room - s.inflater.avail_out;
    s.between_members = code == Z_STREAM_END;
    if (code == Z_STREAM_END) {
      inflateReset(&s.inflater);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      if (done > 0) break;  // what is good first; inflate() fails again
      throw DataError(
          fmt::format("{}: the gzip data are damaged after {} bytes of content",
                      printable(path_.string()), given_),
          {.in = {}, .hint = "copy or download the file again; --partial takes what is there"});
    }
  }
  if (given_ == 0 && std::string_view(to, done).starts_with(byte_order_mark)) {
    given_ = byte_order_mark.size();
    if (done == given_) return read(to, count);  // nothing yet, but not the end
    std::memmove(to, to + given_, done -= given_);
  }
  given_ += done;
  if (given_ > limit_) {
    throw DataError(
        fmt::format("{}: expands to more than {} bytes", printable(path_.string()), limit_),
        {.in = {}, .hint = "--max-expanded-gb allows more, if the file is what you think it is"});
  }
  return done;
}

std::string first_bytes(const std::filesystem::path& path, std::size_t count) {
  ByteSource source(path);
  std::string text(count, '\0');
  std::size_t size = 0;
  try {
    while (size < count) {
      const std::size_t got = source.read(text.data() + size, count - size);
      if (got == 0) break;
      size += got;
    }
  } catch (const DataError&) {
    // Whoever reads the file whole reports the damage.
  }
  text.resize(size);
  return text;
}

std::string read_expanded(const std::filesystem::path& path, std::uint64_t limit,
                          std::string* damage) {
  ByteSource source(path, limit);
  std::string text;
  std::size_t size = 0;
  try {
    for (;;) {
      text.resize(size + chunk_bytes);
      const std::size_t got = source.read(text.data() + size, chunk_bytes);
      size += got;
      if (got == 0) break;
    }
  } catch (const DataError& error) {
    if (damage == nullptr) throw;
    *damage = error.what();
  }
  text.resize(size);
  return text;
}

std::string read_text(const std::filesystem::path& path) {
  constexpr std::string_view gzip_magic = "\x1f\x8b";
  std::string text = read_file(path);
  if (text.starts_with(gzip_magic)) return read_expanded(path, max_text_file_bytes);
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  return text;
}

}  // namespace rubato
