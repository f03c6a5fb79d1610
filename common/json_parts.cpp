#include "common/json_parts.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// Chunks grow: most files are small, and large ones are read in large steps.
constexpr std::size_t first_chunk_bytes = std::size_t{4} << 10;
constexpr std::size_t largest_chunk_bytes = std::size_t{4} << 20;

// Follows brackets and strings. What is between them is left to whoever parses the parts.
class Splitter {
 public:
  using Block = std::function<std::optional<std::size_t>(std::string_view text)>;

  Splitter(ByteSource& source, std::span<const std::string_view> lists,
           const JsonListHandlers& handlers, const Block& block)
      : source_(source), lists_(lists), handlers_(handlers), block_(block) {}

  void run() {
    skip_space();
    if (at_end()) fail("the file is empty");
    if (buffer_[pos_] == '[') {
      ++pos_;
      bare_ = true;
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
        fmt::format("{}: byte {}: {}", printable(source_.path().string()), place(pos_), what),
        {.in = {}, .hint = "--partial takes what comes before"});
  }

  // A part that does not end is reported where it begins, not where the file ends: where a quote is
  // missing, all that follows changes sides, from inside a string to outside and back.
  [[noreturn]] void fail_in_part(std::string_view what) const {
    const std::string_view part(buffer_.data() + keep_, size_ - keep_);
    std::string message =
        fmt::format("{}: line {}, byte {}: what begins here does not end: {}",
                    printable(source_.path().string()), line_of(place(keep_)), place(keep_), what);
    if (const auto at = string_over_lines(part))
      message += fmt::format("; a quote is missing near byte {}, line {}", place(keep_ + *at),
                             line_of(place(keep_ + *at)));
    constexpr std::size_t shown = 200;
    throw DataError(message, {.in = printable(utf8_prefix(part, shown)),
                              .hint = "--partial takes what comes before"});
  }

  [[nodiscard]] std::uint64_t place(std::size_t pos) const { return offset_ + pos - lead; }

  // Line of a byte, from 1, by reading the file once more.
  [[nodiscard]] std::uint64_t line_of(std::uint64_t offset) const {
    std::uint64_t line = 1;
    try {
      ByteSource again(source_.path());
      std::vector<char> chunk(largest_chunk_bytes);
      while (offset > 0) {
        const std::size_t got =
            again.read(chunk.data(), std::min<std::uint64_t>(chunk.size(), offset));
        if (got == 0) break;
        line += static_cast<std::uint64_t>(
            std::count(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got), '\n'));
        offset -= got;
      }
    } catch (const std::exception&) {
      // Damaged further on: as far as it can be read.
    }
    return line;
  }

  // Where the first string begins that goes over the end of a line. No string of JSON may.
  [[nodiscard]] static std::optional<std::size_t> string_over_lines(std::string_view text) {
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (open && text[i] == '\n') return open;
      if (open && text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        open = open ? std::nullopt : std::optional(i);
      }
    }
    return std::nullopt;
  }

  // More text behind what is kept. @return false at the end of the file
  bool more() {
    if (keep_ > lead) {
      std::memmove(buffer_.data() + lead, buffer_.data() + keep_, size_ - keep_);
      const std::size_t gone = keep_ - lead;
      offset_ += gone;
      size_ -= gone;
      pos_ -= gone;
      keep_ = lead;
    }
    if (size_ > max_json_part_bytes) fail_in_part("it is larger than 256 MB");
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
        if (!more()) fail_in_part("the file ends inside a string");
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
        if (!more()) fail_in_part("the file ends early");
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

  // At an element: hands out blocks as long as each is handled as a whole. @return how many of the
  // elements from here on are handled although their block was not
  std::size_t take_blocks() {
    for (;;) {
      keep_ = pos_;
      fill_block();
      const std::size_t comma = block_end();
      if (comma == 0) return 0;
      // An array of the elements, in place.
      const char before = buffer_[pos_ - 1];
      buffer_[pos_ - 1] = '[';
      buffer_[comma] = ']';
      const auto done = block_({buffer_.data() + pos_ - 1, comma + 2 - pos_});
      buffer_[pos_ - 1] = before;
      buffer_[comma] = ',';
      if (done) {
        single_until_ = place(comma);
        return *done;
      }
      pos_ = comma + 1;
      (void)next("an element");
    }
  }

  void fill_block() {
    try {
      while (!ended_ && size_ - pos_ < json_block_bytes) ended_ = !more();
    } catch (const DataError&) {
      ended_ = true;  // damaged further on, which is said when it is needed
    }
  }

  // A guess at the last comma between two elements of the block that begins here; 0: there is none.
  // The comma may lie in a string or deeper: what is before it is no JSON then.
  [[nodiscard]] std::size_t block_end() const {
    const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
    for (std::size_t at = std::min(size_, pos_ + json_block_bytes) - 1; at > pos_; --at) {
      if (buffer_[at] != '{') continue;
      std::size_t comma = at - 1;
      while (comma > pos_ && is_space(buffer_[comma])) --comma;
      if (buffer_[comma] != ',') continue;
      std::size_t brace = comma - 1;
      while (brace > pos_ && is_space(buffer_[brace])) --brace;
      if (brace > pos_ && buffer_[brace] == '}') return comma;
    }
    return 0;
  }

  // Behind the opening bracket of the array.
  void elements(std::string_view list) {
    if (next("an element or ']'") == ']') {
      ++pos_;
      return;
    }
    const bool in_blocks = block_ && list == lists_.front();
    std::size_t taken = 0;  // so many of the next elements are handled already
    for (;;) {
      if (next("an element") != '{') fail("expected '{'");
      if (in_blocks && taken == 0 && place(pos_) >= single_until_) taken = take_blocks();
      keep_ = pos_;
      pass_value();
      if (taken > 0) {
        --taken;
      } else {
        handlers_.element(list, {buffer_.data() + keep_, pos_ - keep_}, place(keep_));
      }
      keep_ = pos_;
      if (bare_ends()) return;
      const char c = next("',' or ']'");
      ++pos_;
      if (c == ']') return;
      if (c != ',') fail("expected ',' or ']'");
      if (bare_ends()) return;
      if (bare_ && buffer_[pos_] == ']') {
        ++pos_;
        return;
      }
    }
  }

  // Chrome's format: the last bracket of a bare array may be missing, since a recorder appends, and
  // a comma may stand before it.
  [[nodiscard]] bool bare_ends() {
    if (!bare_) return false;
    skip_space();
    return at_end();
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
  const Block& block_;
  std::vector<char> buffer_;
  std::size_t chunk_bytes_ = first_chunk_bytes;
  static constexpr std::size_t lead = 1;  ///< room for the bracket before a block
  std::size_t size_ = lead;               ///< bytes in the buffer
  std::size_t pos_ = lead;                ///< next byte
  std::size_t keep_ = lead;               ///< first byte still needed
  std::uint64_t offset_ = 0;              ///< in the file, of the byte at `lead`
  std::uint64_t single_until_ = 0;        ///< elements before it are taken one by one
  bool ended_ = false;                    ///< nothing more can be read ahead
  bool bare_ = false;                     ///< the array is the root
};

}  // namespace

void read_json_parts(ByteSource& source, std::string_view array, const JsonPartHandlers& handlers) {
  const JsonListHandlers each{[&](std::string_view, std::string_view text, std::uint64_t at) {
                                handlers.element(text, at);
                              },
                              handlers.member};
  Splitter(source, {&array, 1}, each, handlers.block).run();
}

void read_json_lists(ByteSource& source, std::span<const std::string_view> lists,
                     const JsonListHandlers& handlers) {
  const Splitter::Block none;
  Splitter(source, lists, handlers, none).run();
}

}  // namespace rubato
