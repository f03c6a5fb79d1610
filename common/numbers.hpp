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

/// With `decimals` digits after the point; what rounds to zero is "0.00", never "-0.00".
[[nodiscard]] std::string format_fixed(double value, int decimals);

/// As format_fixed, with "+" before what is not negative: "+1.50", "+0.00".
[[nodiscard]] std::string format_signed(double value, int decimals);

struct TimeUnit {
  std::string_view name;  ///< "ms"
  double per_s;
};

/// Of us, ms and s the largest in which a time of four digits is at least 1; of 0 it is s.
[[nodiscard]] TimeUnit time_unit(double time_s);

/// For people, four digits in that unit: "22 ms", "5.096 s"; of 10000 s and more whole seconds.
/// Programs get seconds, or a column whose name says its unit.
[[nodiscard]] std::string time_text(double time_s);

/// The number that is the whole of `text`, or nothing. Accepts what
/// std::from_chars accepts except nan and infinity.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// As parse_number for whole numbers without sign, fraction or exponent.
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view text);

/// Sum with Neumaier's correction: the error does not grow with the number of
/// terms. Sources: A. Neumaier, ZAMM 54(1), 1974; for the exact error of one addition without
/// a comparison, D. Knuth, The Art of Computer Programming 2, 4.2.2.
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
