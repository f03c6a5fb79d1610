#include "tests/fuzz/seed.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>
#include <zlib.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato::fuzz {

namespace {

std::string seed_bytes(const std::filesystem::path& path);

class Recipe {
 public:
  explicit Recipe(const std::filesystem::path& path) : path_(path) {}

  std::string run(std::string_view text) {
    for (const std::string_view line : split(text, '\n')) {
      ++line_;
      if (!line.empty() && line.front() != '#') step(line);
    }
    if (open_.size() != 1) fail("a begin without its end");
    return std::move(open_.front());
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw DataError(fmt::format("{}:{}: {}", path_.string(), line_, what));
  }

  std::size_t count(std::string_view text) const {
    const auto value = parse_count(text);
    if (!value) fail(fmt::format("'{}' is no number", text));
    return static_cast<std::size_t>(*value);
  }

  // "12 rest" -> 12, rest
  std::size_t leading_count(std::string_view& rest) const {
    const std::size_t blank = std::min(rest.find(' '), rest.size());
    const std::size_t value = count(rest.substr(0, blank));
    rest.remove_prefix(std::min(blank + 1, rest.size()));
    return value;
  }

  std::string bytes(std::string_view hex) const {
    std::string out;
    for (const std::string_view pair : split(hex, ' ')) {
      unsigned value = 0;
      const auto [end, error] = std::from_chars(pair.data(), pair.data() + pair.size(), value, 16);
      if (pair.size() != 2 || error != std::errc() || end != pair.data() + 2)
        fail(fmt::format("'{}' is no byte", pair));
      out += static_cast<char>(value);
    }
    return out;
  }

  static std::string varint(std::uint64_t value) {
    std::string out;
    constexpr std::uint64_t more = 0x80;
    for (; value >= more; value >>= 7) out += static_cast<char>(value % more + more);
    return out + static_cast<char>(value);
  }

  static std::string numbered(std::string_view pattern, std::size_t number) {
    std::string out;
    for (const char c : pattern) c == '@' ? out += fmt::format("{}", number) : out += c;
    return out;
  }

  void step(std::string_view line) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, blank);
    std::string_view rest = line.substr(std::min(blank + 1, line.size()));
    std::string& out = open_.back();
    if (word == "text") {
      out += rest;
    } else if (word == "line") {
      out.append(rest).append("\n");
    } else if (word == "hex") {
      out += bytes(rest);
    } else if (word == "repeat") {
      const std::size_t times = leading_count(rest);
      for (std::size_t i = 0; i < times; ++i) out += rest;
    } else if (word == "each" || word == "lines") {
      const std::size_t times = leading_count(rest);
      for (std::size_t i = 0; i < times; ++i) {
        out += numbered(rest, i);
        if (word == "lines") out += '\n';
      }
    } else if (word == "file") {
      out += seed_bytes(path_.parent_path() / rest);
    } else if (word == "varint") {
      out += varint(count(rest));
    } else if (word == "begin") {
      open_.emplace_back();
    } else if (word == "end") {
      if (open_.size() < 2) fail("an end without its begin");
      const std::string message = std::move(out);
      open_.pop_back();
      open_.back() += varint(message.size()) + message;
    } else if (word == "gzip") {
      out = gzip(out);
    } else {
      change(word, rest);
    }
  }

  void change(std::string_view word, std::string_view rest) {
    std::string& out = open_.back();
    if (word == "cut") {
      out.resize(out.size() - std::min(count(rest), out.size()));
    } else if (word == "set") {
      const std::size_t at = leading_count(rest);
      const std::string put = bytes(rest);
      if (at + put.size() > out.size()) fail("there is nothing to replace");
      out.replace(at, put.size(), put);
    } else {
      fail(fmt::format("'{}' is unknown", word));
    }
  }

  const std::filesystem::path& path_;
  std::size_t line_ = 0;
  std::vector<std::string> open_{1};
};

std::string seed_bytes(const std::filesystem::path& path) {
  std::string text = read_file(path);
  return path.extension() == ".seed" ? Recipe(path).run(text) : text;
}

}  // namespace

std::vector<Seed> read_seeds(const std::filesystem::path& folder) {
  std::vector<Seed> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("good_") && !name.starts_with("bad_")) {
      throw DataError(
          fmt::format("{}: the name begins with neither good_ nor bad_", entry.path().string()));
    }
    seeds.push_back({name, seed_bytes(entry.path()), name.starts_with("good_")});
  }
  std::ranges::sort(seeds, {}, &Seed::name);
  return seeds;
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int gzip_window = 15 + 16, memory = 8;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_window, memory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw IoError("zlib cannot start");
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<unsigned>(bytes.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace rubato::fuzz
