#pragma once
// Numbers as text, factors between units, and sums that do not lose digits.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rubato {

// Factors between our units and those that people read and write.
inline constexpr double percent = 100.0;  ///< of a fraction
inline constexpr double ms_per_s = 1e3;
inline constexpr double us_per_s = 1e6;

/// Shortest text that reads back as the same double ("0.1", "1e-05"); zero has no sign.
[[nodiscard]] std::string format_number(double value);

/// With `decimals` digits after the point; what rounds to zero is "0.00", never "-0.00". A number
/// that would need more than 15 digits gets six: "1.23457e+20".
[[nodiscard]] std::string format_fixed(double value, int decimals);

/// As format_fixed, with "+" before a text without "-": "+1.50", "+0.00".
[[nodiscard]] std::string format_signed(double value, int decimals);

struct TimeUnit {
  std::string_view name;  ///< "ms"
  double per_s;           ///< units in a second
};

/// The largest of us, ms and s in which a time, rounded to four digits, is at least 1: 999.9 us,
/// but 1 ms. Shorter times are in us, and 0 is in s.
[[nodiscard]] TimeUnit time_unit(double time_s);

/// For people, four digits in that unit: "22 ms", "5.096 s"; from 10000 s on, whole seconds.
/// Programs get seconds, or a column whose name says its unit.
[[nodiscard]] std::string time_text(double time_s);

/// The number that is the whole of `text`, or nothing. Accepts what
/// std::from_chars accepts except nan and infinity.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// As parse_number for whole numbers below 2^64 without sign, fraction or exponent.
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view text);

/// Compensated sum: what each addition loses to rounding is summed beside it (Neumaier), so the
/// error does not grow with the number of terms. The loss of one addition is found without a
/// comparison (Knuth's TwoSum). Sources: A. Neumaier, ZAMM 54(1), 1974; D. Knuth, The Art of
/// Computer Programming 2, 4.2.2.
class CompensatedSum {
 public:
  void add(double term) noexcept {
    const double total = sum_ + term, added = total - sum_;
    lost_ += (sum_ - (total - added)) + (term - added);
    sum_ = total;
  }
  [[nodiscard]] double value() const noexcept { return sum_ + lost_; }

 private:
  double sum_ = 0.0;
  double lost_ = 0.0;
};

/// Compensated sum in index order.
[[nodiscard]] double sum(std::span<const double> terms) noexcept;

}  // namespace rubato
