#include "tests/fuzz/change.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string_view>

namespace rubato::fuzz {

namespace {

using namespace std::string_view_literals;

constexpr std::array words{"\0"sv,   "\xff"sv,    "\xef\xbb\xbf"sv,
                           "\r\n"sv, "\x1b[2J"sv, "\xc3"sv,
                           "\""sv,   "\\"sv,      "\\u0000"sv,
                           "{"sv,    "}"sv,       "["sv,
                           "]"sv,    ","sv,       ":"sv,
                           "-"sv,    "."sv,       "null"sv,
                           "true"sv, "NaN"sv,     "inf"sv,
                           "auto"sv, "'"sv,       "#"sv,
                           "="sv};
constexpr std::array numbers{"0"sv,
                             "-0"sv,
                             "-1"sv,
                             "0.5"sv,
                             "1e999"sv,
                             "1e308"sv,
                             "-1e308"sv,
                             "1e-320"sv,
                             "255"sv,
                             "4294967296"sv,
                             "2147483648"sv,
                             "9007199254740993"sv,
                             "9223372036854775807"sv,
                             "-9223372036854775808"sv,
                             "18446744073709551616"sv,
                             "00"sv,
                             "1.5.5"sv};

class Changer {
 public:
  explicit Changer(std::uint64_t seed) : random_(seed) {}

  // std::uniform_int_distribution gives other numbers elsewhere.
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void change(std::string& text, const std::string& other) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(1 + below(16), text.size() - at);
    switch (below(8)) {
      case 0:
        if (length > 0) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3: text.resize(at); break;
      case 4: text.insert(at, words[below(words.size())]); break;
      case 5: text.insert(at, other.substr(below(other.size() + 1), below(200))); break;
      case 6: {
        const std::string moved = text.substr(at, length);
        text.erase(at, length);
        text.insert(below(text.size() + 1), moved);
        break;
      }
      default: replace_number(text, at);
    }
  }

 private:
  void replace_number(std::string& text, std::size_t from) {
    constexpr std::string_view digits = "0123456789";
    std::size_t at = text.find_first_of(digits, from);
    if (at == std::string::npos) at = text.find_first_of(digits);
    if (at == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-", at), text.size());
    text.replace(at, end - at, numbers[below(numbers.size())]);
  }

  std::mt19937_64 random_;
};

}  // namespace

std::string changed(const std::vector<Seed>& seeds, const Seed& seed, std::size_t change) {
  std::string text = seed.bytes;
  if (change == 0) return text;
  std::uint64_t number = 20261121;
  for (const char c : seed.name) number = number * 31 + static_cast<unsigned char>(c);
  Changer changer(number + change * 1'000'003);
  const Seed& other = seeds[changer.below(seeds.size())];
  for (std::size_t times = 1 + changer.below(3); times > 0; --times)
    changer.change(text, other.bytes);
  return text;
}

}  // namespace rubato::fuzz
