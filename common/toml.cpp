// TOML into the same documents as JSON, so that one strict reader serves both.

#include <fmt/format.h>
#include <toml++/toml.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/json.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// The places of JsonNode: "axes.batch[2]".
std::string place_below(const std::string& place, std::string_view key) {
  return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
}

class Converter {
 public:
  explicit Converter(std::string name) : source_{std::move(name)} {}

  Json convert(const toml::node& node, const std::string& place) {
    source_.lines[place] = node.source().begin.line;
    if (const auto* table = node.as_table()) {
      Json object = Json::object();
      for (const auto& [key, value] : *table)
        object[std::string(key.str())] = convert(value, place_below(place, key.str()));
      return object;
    }
    if (const auto* array = node.as_array()) {
      Json list = Json::array();
      for (std::size_t i = 0; i < array->size(); ++i)
        list.push_back(convert((*array)[i], fmt::format("{}[{}]", place, i)));
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
