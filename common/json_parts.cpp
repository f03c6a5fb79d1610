#include "common/json_parts.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// Chunks grow: most files are small, and large ones are read in large steps.
constexpr std::size_t first_chunk_bytes = std::size_t{4} << 10;
constexpr std::size_t largest_chunk_bytes = std::size_t{4} << 20;

// Follows braces and strings; what is between them is left to the parser of the parts.
class Splitter {
 public:
  Splitter(ByteSource& source, std::span<const std::string_view> lists,
           const JsonListHandlers& handlers)
      : source_(source), lists_(lists), handlers_(handlers) {}

  void run() {
    skip_space();
    if (at_end()) fail("the file is empty");
    if (buffer_[pos_] == '[') {
      ++pos_;
      elements(lists_.front());
    } else if (buffer_[pos_] == '{') {
      ++pos_;
      members();
    } else {
      fail("expected '{' or '['");
    }
    skip_space();
    if (!at_end()) fail("something follows the end of the JSON text");
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw DataError(
        fmt::format("{}: byte {}: {}", printable(source_.path().string()), offset_ + pos_, what),
        {.in = {}, .hint = "--partial takes what comes before"});
  }

  // More text behind what is kept. @return false at the end of the file
  bool more() {
    if (keep_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + keep_, size_ - keep_);
      offset_ += keep_;
      size_ -= keep_;
      pos_ -= keep_;
      keep_ = 0;
    }
    if (size_ > max_json_part_bytes) fail("one part is larger than 256 MB");
    buffer_.resize(size_ + chunk_bytes_ + json_padding);
    const std::size_t got = source_.read(buffer_.data() + size_, chunk_bytes_);
    size_ += got;
    chunk_bytes_ = std::min(2 * chunk_bytes_, largest_chunk_bytes);
    return got > 0;
  }

  [[nodiscard]] bool at_end() { return pos_ >= size_ && !more(); }

  void skip_space() {
    for (;;) {
      while (pos_ < size_ && (buffer_[pos_] == ' ' || buffer_[pos_] == '\n' ||
                              buffer_[pos_] == '\r' || buffer_[pos_] == '\t'))
        ++pos_;
      if (pos_ < size_) return;
      keep_ = pos_;
      if (!more()) return;
    }
  }

  char next(std::string_view expected) {
    skip_space();
    if (at_end()) fail(fmt::format("the file ends early; expected {}", expected));
    return buffer_[pos_];
  }

  // From an opening quote to behind the closing one.
  void pass_string() {
    ++pos_;
    for (;;) {
      const char* const from = buffer_.data() + pos_;
      const auto* const quote = static_cast<const char*>(std::memchr(from, '"', size_ - pos_));
      if (quote == nullptr) {
        pos_ = size_;
        // An escape cut by the chunk: look again from its backslashes.
        while (pos_ > keep_ + 1 && buffer_[pos_ - 1] == '\\') --pos_;
        if (!more()) fail("the file ends inside a string");
        continue;
      }
      std::size_t backslashes = 0;
      while (quote - backslashes > from && *(quote - backslashes - 1) == '\\') ++backslashes;
      pos_ += static_cast<std::size_t>(quote - from) + 1;
      if (backslashes % 2 == 0) return;
    }
  }

  // From the first character of a value to behind its last one.
  void pass_value() {
    enum Kind : unsigned char { plain, quote, open, close, separator };
    static const auto kinds = [] {
      std::array<unsigned char, 256> table{};
      table['"'] = quote;
      table['{'] = table['['] = open;
      table['}'] = table[']'] = close;
      table[','] = separator;
      return table;
    }();
    int depth = 0;
    for (;;) {
      while (pos_ < size_ && kinds[static_cast<unsigned char>(buffer_[pos_])] == plain) ++pos_;
      if (pos_ >= size_) {
        if (!more()) fail("the file ends early");
        continue;
      }
      switch (kinds[static_cast<unsigned char>(buffer_[pos_])]) {
        case quote:
          pass_string();
          if (depth == 0) return;
          break;
        case open:
          ++depth;
          ++pos_;
          break;
        case close:
          if (depth == 0) return;  // a number or word ends here
          ++pos_;
          if (--depth == 0) return;
          break;
        default:
          if (depth == 0) return;
          ++pos_;
      }
    }
  }

  // Behind the opening bracket of the array.
  void elements(std::string_view list) {
    if (next("an element or ']'") == ']') {
      ++pos_;
      return;
    }
    for (;;) {
      if (next("an element") != '{') fail("expected '{'");
      keep_ = pos_;
      pass_value();
      handlers_.element(list, {buffer_.data() + keep_, pos_ - keep_}, offset_ + keep_);
      keep_ = pos_;
      const char c = next("',' or ']'");
      ++pos_;
      if (c == ']') return;
      if (c != ',') fail("expected ',' or ']'");
    }
  }

  // Behind the opening brace of the root.
  void members() {
    if (next("a key or '}'") == '}') {
      ++pos_;
      return;
    }
    for (;;) {
      if (next("a key") != '"') fail("expected a key in quotes");
      keep_ = pos_;
      pass_string();
      const std::string key(buffer_.data() + keep_ + 1, pos_ - keep_ - 2);
      keep_ = pos_;
      if (next("':'") != ':') fail("expected ':'");
      ++pos_;
      const char first = next("a value");
      const auto list = std::ranges::find(lists_, std::string_view(key));
      if (list != lists_.end() && first == '[') {
        ++pos_;
        elements(*list);
      } else {
        keep_ = pos_;
        pass_value();
        if (handlers_.member) handlers_.member(key, {buffer_.data() + keep_, pos_ - keep_});
      }
      keep_ = pos_;
      const char c = next("',' or '}'");
      ++pos_;
      if (c == '}') return;
      if (c != ',') fail("expected ',' or '}'");
    }
  }

  ByteSource& source_;
  std::span<const std::string_view> lists_;
  const JsonListHandlers& handlers_;
  std::vector<char> buffer_;
  std::size_t chunk_bytes_ = first_chunk_bytes;
  std::size_t size_ = 0;      ///< bytes in the buffer
  std::size_t pos_ = 0;       ///< next one
  std::size_t keep_ = 0;      ///< first one still needed
  std::uint64_t offset_ = 0;  ///< of the buffer in the file
};

}  // namespace

void read_json_parts(ByteSource& source, std::string_view array, const JsonPartHandlers& handlers) {
  const JsonListHandlers each{[&](std::string_view, std::string_view text, std::uint64_t at) {
                                handlers.element(text, at);
                              },
                              handlers.member};
  read_json_lists(source, {&array, 1}, each);
}

void read_json_lists(ByteSource& source, std::span<const std::string_view> lists,
                     const JsonListHandlers& handlers) {
  Splitter(source, lists, handlers).run();
}

}  // namespace rubato
