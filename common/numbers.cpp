#include "common/numbers.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace rubato {

namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string format_number(double value) {
  std::array<char, 32> text{};  // the longest shortest form of a double has 24 characters
  // Adding zero takes the sign from -0.
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value + 0.0);
  return {text.data(), end};
}

std::string format_fixed(double value, int decimals) {
  // Of the last digit written: beyond, a double does not hold as many digits.
  constexpr double largest_fixed = 1e15;
  if (std::abs(value) * std::pow(10.0, decimals) >= largest_fixed)
    return fmt::format("{:.6g}", value);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos && text.starts_with('-')) text.erase(0, 1);
  return text;
}

std::string format_signed(double value, int decimals) {
  const std::string text = format_fixed(value, decimals);
  return text.starts_with('-') ? text : '+' + text;
}

TimeUnit time_unit(double time_s) {
  constexpr double next_unit = 999.95;  // rounds to 1000 with four digits
  const double size_s = std::abs(time_s);
  if (size_s > 0.0 && us_per_s * size_s < next_unit) return {"us", us_per_s};
  if (size_s > 0.0 && ms_per_s * size_s < next_unit) return {"ms", ms_per_s};
  return {"s", 1.0};
}

std::string time_text(double time_s) {
  constexpr double five_digits = 9999.5;  // in s; {:.4g} would write an exponent
  if (std::abs(time_s) >= five_digits) return fmt::format("{:.0f} s", time_s);
  const TimeUnit unit = time_unit(time_s);
  return fmt::format("{:.4g} {}", unit.per_s * time_s, unit.name);
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

double sum(std::span<const double> terms) noexcept {
  CompensatedSum total;
  for (const double term : terms) total.add(term);
  return total.value();
}

}  // namespace rubato
