#include "common/json_fields.hpp"

#include <cstring>
#include <vector>

namespace rubato {

namespace {

// Follows the grammar of JSON, but does not look into strings, numbers and words (true, null).
class Structure {
 public:
  explicit Structure(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  [[nodiscard]] bool holds() {
    for (; at_ != end_; ++at_) {
      switch (*at_) {
        case ' ':
        case '\t':
        case '\n':
        case '\r': continue;
        case '{':
          if (!begin('{', Next::key_or_end)) return false;
          break;
        case '[':
          if (!begin('[', Next::value_or_end)) return false;
          break;
        case '}':
          if (!end('{', Next::key_or_end)) return false;
          break;
        case ']':
          if (!end('[', Next::value_or_end)) return false;
          break;
        case ',':
          if (next_ != Next::separator || open_.empty()) return false;
          next_ = open_.back() == '{' ? Next::key : Next::value;
          break;
        case ':':
          if (next_ != Next::colon) return false;
          next_ = Next::value;
          break;
        case '"':
          if (!pass_text()) return false;
          break;
        default:
          if (!takes_value()) return false;
          pass_word();
          next_ = Next::separator;
      }
    }
    return open_.empty() && next_ == Next::separator;
  }

 private:
  enum class Next { value, value_or_end, key, key_or_end, colon, separator };

  [[nodiscard]] bool takes_value() const {
    return next_ == Next::value || next_ == Next::value_or_end;
  }
  [[nodiscard]] bool begin(char kind, Next first) {
    if (!takes_value()) return false;
    open_.push_back(kind);
    next_ = first;
    return true;
  }
  [[nodiscard]] bool end(char kind, Next if_empty) {
    if (open_.empty() || open_.back() != kind) return false;
    if (next_ != Next::separator && next_ != if_empty) return false;
    open_.pop_back();
    next_ = Next::separator;
    return true;
  }

  // To the closing quote.
  [[nodiscard]] bool pass_text() {
    const bool key = next_ == Next::key || next_ == Next::key_or_end;
    if (!key && !takes_value()) return false;
    next_ = key ? Next::colon : Next::separator;
    const char* const from = ++at_;
    for (;; ++at_) {
      at_ = static_cast<const char*>(std::memchr(at_, '"', static_cast<std::size_t>(end_ - at_)));
      if (at_ == nullptr) return false;
      const char* before = at_;
      while (before != from && *(before - 1) == '\\') --before;
      if ((at_ - before) % 2 == 0) return true;
    }
  }

  // To the last character of a number or word.
  void pass_word() {
    constexpr std::string_view ends = " \t\n\r{}[],:\"";
    while (at_ + 1 != end_ && ends.find(*(at_ + 1)) == std::string_view::npos) ++at_;
  }

  const char* at_;
  const char* end_;
  Next next_ = Next::value;
  std::vector<char> open_;
};

}  // namespace

void check_structure(std::string_view text) {
  if (!Structure(text).holds()) throw DataError("not valid JSON");
}

}  // namespace rubato
