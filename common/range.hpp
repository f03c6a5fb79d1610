#pragma once
// The values a number read from a file may take.

namespace rubato {

/// `fraction` is 0 to 1.
enum class Range { any, non_negative, positive, fraction };

/// "a number > 0" and so on, for messages.
[[nodiscard]] constexpr const char* expected_text(Range range) {
  switch (range) {
    case Range::non_negative: return "a number >= 0";
    case Range::positive: return "a number > 0";
    case Range::fraction: return "a number from 0 to 1";
    case Range::any: break;
  }
  return "a number";
}

/// Whether a number is in the range. NaN never is; infinity is for readers to refuse.
[[nodiscard]] constexpr bool in_range(double value, Range range) {
  switch (range) {
    case Range::non_negative: return value >= 0.0;
    case Range::positive: return value > 0.0;
    case Range::fraction: return value >= 0.0 && value <= 1.0;
    case Range::any: break;
  }
  return value == value;
}

}  // namespace rubato
