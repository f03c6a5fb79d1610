#include "common/numbers.hpp"

#include <array>
#include <charconv>
#include <cmath>

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
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
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
