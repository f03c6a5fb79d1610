// TOML into the same documents as JSON, so that one strict reader serves both.

#include <algorithm>

#include <fmt/format.h>
#include <toml++/toml.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/json.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// The place of a key as JsonNode writes it: "axes.batch[2]".
std::string place_below(const std::string& place, std::string_view key) {
  return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
}

// Whether a dot is one in a number: digits on both sides, and no other dot before them.
bool is_fraction(std::string_view text, std::size_t dot) {
  const auto is_digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  if (dot == 0 || dot + 1 >= text.size() || !is_digit(dot - 1) || !is_digit(dot + 1)) return false;
  std::size_t from = dot - 1;
  while (from > 0 && is_digit(from)) --from;
  return text[from] != '.';
}

// The last character of the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool long_form = text.substr(at, 3) == three;
  for (std::size_t i = at + (long_form ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (long_form ? text.substr(i, 3) == three : text[i] == quote) {
      return long_form ? i + 2 : i;
    } else if (!long_form && text[i] == '\n') {
      return i - 1;
    }
  }
  return text.size();
}

// Every dot of a key is a table in a table, and the library frees tables by recursion: too many
// exhaust the stack.
bool has_keys_too_deep(std::string_view text) {
  constexpr std::size_t most_dots = 1000;
  std::size_t dots = 0, open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '#': i = std::min(text.find('\n', i), text.size()) - 1; break;
      case '"':
      case '\'': i = end_of_string(text, i); break;
      case '[':
      case '{': ++open; break;
      case ']':
      case '}': open -= open > 0 ? 1 : 0; break;
      case '\n': dots = open == 0 ? 0 : dots; break;
      case '.':
        if (!is_fraction(text, i) && ++dots > most_dots) return true;
        break;
      default: break;
    }
  }
  return false;
}

class Converter {
 public:
  explicit Converter(std::string name) : source_{std::move(name)} {}

  Json convert(const toml::node& node, const std::string& place, std::size_t depth = 0) {
    const auto line = node.source().begin.line;
    source_.lines[place] = line;
    if (depth > max_json_depth)
      throw DataError(fmt::format("{}:{}: tables nest deeper than {}; expected less", source_.name,
                                  line, max_json_depth));
    if (const auto* table = node.as_table()) {
      if (table->size() > max_json_keys)
        throw DataError(fmt::format("{}:{}: {}: {} keys; expected at most {}", source_.name, line,
                                    printable(place), table->size(), max_json_keys));
      Json object = Json::object();
      for (const auto& [key, value] : *table)
        object[std::string(key.str())] = convert(value, place_below(place, key.str()), depth + 1);
      return object;
    }
    if (const auto* array = node.as_array()) {
      Json list = Json::array();
      for (std::size_t i = 0; i < array->size(); ++i)
        list.push_back(convert((*array)[i], fmt::format("{}[{}]", place, i), depth + 1));
      return list;
    }
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* integer = node.as_integer()) return integer->get();
    if (const auto* number = node.as_floating_point()) return number->get();
    if (const auto* boolean = node.as_boolean()) return boolean->get();
    throw DataError(
        fmt::format("{}:{}: {}: found a date or time; expected text, a number or a list",
                    source_.name, source_.lines[place], printable(place)));
  }

  JsonSource take_source() { return std::move(source_); }

 private:
  JsonSource source_;
};

}  // namespace

JsonDocument JsonDocument::parse_toml(std::string_view text, std::string name) {
  if (has_keys_too_deep(text))
    throw DataError(fmt::format("{}: keys nest deeper than any table needs", name));
  try {
    const toml::table root = toml::parse(text);
    Converter converter(name);
    auto json = std::make_unique<Json>(converter.convert(root, ""));
    return {std::move(json), converter.take_source()};
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    throw DataError(fmt::format("{}:{}:{}: not valid TOML: {}", name, at.line, at.column,
                                printable(error.description())));
  }
}

}  // namespace rubato
