#include "common/formats/json_outline.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rubato {

namespace {

constexpr int deepest = 2;
constexpr std::size_t longest_key = 256, longest_value = 32;

// One character after the other.
class KeyScanner {
 public:
  explicit KeyScanner(const std::function<bool(const JsonKey& key)>& see) : see_(see) {}

  /// @return false when no more is needed
  bool take(char c) {
    if (in_string_) return take_in_string(c);
    switch (c) {
      case '"': return begin_string();
      case '{':
      case '[':
        if (!end_value(c)) return false;
        ++depth_;
        if (depth_ <= deepest) is_object_[static_cast<std::size_t>(depth_)] = c == '{';
        at_key_ = true;
        return true;
      case '}':
      case ']':
        if (!end_value('\0')) return false;
        if (depth_ > 0) --depth_;
        at_key_ = false;
        return true;
      case ',':
        if (!end_value('\0')) return false;
        at_key_ = true;
        return true;
      case ':':
        if (has_key_) in_value_ = true;
        return true;
      case ' ':
      case '\t':
      case '\r':
      case '\n': return true;
      default:
        if (in_value_ && value_.size() < longest_value) value_ += c;
        return true;
    }
  }

  /// At the end of the text, which may be cut off in a value.
  void finish() { (void)end_value('\0'); }

  [[nodiscard]] bool is_closed() const { return depth_ == 0 && !in_string_; }

 private:
  [[nodiscard]] bool in_near_object() const {
    return depth_ >= 1 && depth_ <= deepest && is_object_[static_cast<std::size_t>(depth_)];
  }

  bool begin_string() {
    in_string_ = true;
    escaped_ = false;
    reads_key_ = at_key_ && in_near_object();
    at_key_ = false;
    if (reads_key_) key_.clear();
    if (in_value_ && value_.size() < longest_value) value_ += '"';
    return true;
  }

  bool take_in_string(char c) {
    if (!escaped_ && c == '"') {
      in_string_ = false;
      if (in_value_ && value_.size() < longest_value) value_ += c;
      if (reads_key_) {
        has_key_ = true;
        value_.clear();
      }
      reads_key_ = false;
      return true;
    }
    escaped_ = !escaped_ && c == '\\';
    if (reads_key_ && key_.size() < longest_key) key_ += c;
    if (in_value_ && value_.size() < longest_value) value_ += c;
    return true;
  }

  // Before a bracket or comma: the key before it has its value.
  bool end_value(char bracket) {
    if (!has_key_ || !in_value_) return true;
    has_key_ = in_value_ = false;
    if (bracket != '\0') value_ = bracket;
    return see_({.depth = static_cast<int>(depth_), .text = key_, .value = value_});
  }

  const std::function<bool(const JsonKey& key)>& see_;
  std::int64_t depth_ = 0;
  std::array<bool, deepest + 1> is_object_{};
  bool in_string_ = false, escaped_ = false;
  bool at_key_ = false, reads_key_ = false, has_key_ = false, in_value_ = false;
  std::string key_, value_;
};

}  // namespace

bool scan_json_keys(ByteSource& source, const std::function<bool(const JsonKey& key)>& see) {
  constexpr std::size_t chunk_bytes = std::size_t{1} << 16;
  KeyScanner scanner(see);
  std::vector<char> chunk(chunk_bytes);
  while (const std::size_t got = source.read(chunk.data(), chunk.size())) {
    for (std::size_t i = 0; i < got; ++i) {
      if (!scanner.take(chunk[i])) return true;
    }
  }
  scanner.finish();
  return scanner.is_closed();
}

}  // namespace rubato
