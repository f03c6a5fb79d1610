#include "common/json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// What was found, short enough for one line.
std::string shown(const Json& json) {
  constexpr std::size_t max_shown = 60;
  // From TOML: JSON has no word for infinity and NaN.
  if (json.is_number_float() && !std::isfinite(json.get<double>()))
    return fmt::format("{}", json.get<double>());
  std::string text = json_text(json);
  if (text.size() > max_shown) text = text.substr(0, max_shown) + "...";
  return text;
}

std::optional<std::int64_t> exact_integer(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() &&
      json.get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  return json.get<std::int64_t>();
}

// Line and column (from 1) of a byte offset.
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", line, before.size() - line_start + 1);
}

// Finds keys that occur twice: nlohmann keeps the last of them without a word. Holds the limits of
// depth and keys too.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(const std::string& name) : name_(name) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > static_cast<int>(max_json_depth))
      throw DataError(fmt::format("{}: lists and objects nest deeper than {}; expected less", name_,
                                  max_json_depth));
    if (event == Json::parse_event_t::key && open_.back().size() >= max_json_keys)
      throw DataError(
          fmt::format("{}: an object has more than {} keys; expected less", name_, max_json_keys));
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key &&
        !open_.back().insert(parsed.get<std::string>()).second) {
      if (!first_) first_ = parsed.get<std::string>();
    }
    return true;
  }
  [[nodiscard]] const std::optional<std::string>& first() const { return first_; }

 private:
  const std::string& name_;
  std::vector<std::set<std::string>> open_;
  std::optional<std::string> first_;
};

}  // namespace

std::string json_text(const nlohmann::ordered_json& json, int indent, bool ascii) {
  return json.dump(indent, ' ', ascii, Json::error_handler_t::replace);
}

std::string JsonNode::where() const {
  if (place_.empty()) return source_->name;
  const auto line = source_->lines.find(place_);
  if (line == source_->lines.end()) return fmt::format("{}: {}", source_->name, printable(place_));
  return fmt::format("{}:{}: {}", source_->name, line->second, printable(place_));
}

void JsonNode::fail(const std::string& what, const std::string& hint) const {
  throw DataError(fmt::format("{}: {}", where(), what), {.in = {}, .hint = hint});
}

void JsonNode::expect_keys(std::initializer_list<std::string_view> required,
                           std::initializer_list<std::string_view> optional) const {
  if (!json_->is_object()) fail(fmt::format("found {}; expected an object", shown(*json_)));
  std::vector<std::string> known(required.begin(), required.end());
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto& [key, value] : json_->items()) {
    if (std::ranges::find(known, key) == known.end()) {
      fail(fmt::format("unknown key '{}'{}", printable(key), did_you_mean(key, known)));
    }
  }
  for (const std::string_view key : required) {
    if (!json_->contains(std::string(key))) fail(fmt::format("key '{}' is missing", key));
  }
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  if (!json_->is_object()) fail(fmt::format("found {}; expected an object", shown(*json_)));
  const auto found = json_->find(std::string(key));
  if (found == json_->end() || found->is_null()) return std::nullopt;
  std::string place = place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
  return JsonNode(&*found, source_, std::move(place));
}

JsonNode JsonNode::at(std::string_view key) const {
  auto node = find(key);
  if (!node) fail(fmt::format("key '{}' is missing or null", key));
  return *std::move(node);
}

std::optional<double> JsonNode::optional_number(std::string_view key, Range range) const {
  const auto found = find(key);
  return found ? std::optional(found->number(range)) : std::nullopt;
}

bool JsonNode::is_text() const noexcept { return json_->is_string(); }
bool JsonNode::is_number() const noexcept { return json_->is_number(); }
bool JsonNode::is_object() const noexcept { return json_->is_object(); }
bool JsonNode::is_list() const noexcept { return json_->is_array(); }

std::string JsonNode::text() const {
  if (!json_->is_string()) fail(fmt::format("found {}; expected text", shown(*json_)));
  return json_->get<std::string>();
}

bool JsonNode::boolean() const {
  if (!json_->is_boolean()) fail(fmt::format("found {}; expected true or false", shown(*json_)));
  return json_->get<bool>();
}

double JsonNode::number(Range range) const {
  if (json_->is_number()) {
    const double value = json_->get<double>();
    if (std::isfinite(value) && in_range(value, range)) return value;
  }
  fail(fmt::format("found {}; expected {}", shown(*json_), expected_text(range)));
}

std::uint64_t JsonNode::count() const {
  constexpr double max_exact = 9007199254740992.0;  // 2^53: above it doubles skip whole numbers
  if (json_->is_number()) {
    const double value = json_->get<double>();
    if (value >= 0.0 && value <= max_exact && std::floor(value) == value) {
      return static_cast<std::uint64_t>(value);
    }
  }
  fail(fmt::format("found {}; expected a whole number >= 0", shown(*json_)));
}

std::vector<JsonNode> JsonNode::items() const {
  if (!json_->is_array()) fail(fmt::format("found {}; expected a list", shown(*json_)));
  std::vector<JsonNode> nodes;
  nodes.reserve(json_->size());
  for (std::size_t i = 0; i < json_->size(); ++i) {
    nodes.push_back(JsonNode(&(*json_)[i], source_, fmt::format("{}[{}]", place_, i)));
  }
  return nodes;
}

std::vector<std::string> JsonNode::keys() const {
  if (!json_->is_object()) fail(fmt::format("found {}; expected an object", shown(*json_)));
  std::vector<std::string> names;
  for (const auto& [key, value] : json_->items()) names.push_back(key);
  return names;
}

std::vector<double> JsonNode::numbers(Range range) const {
  std::vector<double> values;
  for (const JsonNode& node : items()) values.push_back(node.number(range));
  return values;
}

std::int64_t JsonNode::integer() const {
  if (const auto value = exact_integer(*json_)) return *value;
  fail(fmt::format("found {}; expected a whole number of at most 64 bits", shown(*json_)));
}

std::vector<std::optional<std::int64_t>> JsonNode::integers() const {
  if (!json_->is_array()) fail(fmt::format("found {}; expected a list", shown(*json_)));
  std::vector<std::optional<std::int64_t>> values;
  values.reserve(json_->size());
  for (const Json& item : *json_) {
    values.push_back(exact_integer(item));
    if (values.back() || item.is_null()) continue;
    const JsonNode node(&item, source_, fmt::format("{}[{}]", place_, values.size() - 1));
    (void)node.integer();  // throws
  }
  return values;
}

JsonDocument::JsonDocument(std::unique_ptr<nlohmann::ordered_json> json, JsonSource source)
    : json_(std::move(json)), source_(std::make_unique<JsonSource>(std::move(source))) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::parse(std::string_view text, std::string name) {
  DuplicateKeys duplicates(name);
  auto json = std::make_unique<Json>();
  try {
    *json = Json::parse(text, std::ref(duplicates));
  } catch (const Json::parse_error& error) {
    const bool cut_off = error.byte >= text.size();
    throw DataError(
        fmt::format("{}:{}: not valid JSON", name, line_and_column(text, error.byte - 1)),
        {.in = {}, .hint = cut_off ? "the text ends too early; was the file cut off?" : ""});
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: {}", name, error.what()));
  }
  if (duplicates.first()) {
    throw DataError(
        fmt::format("{}: key '{}' occurs twice in one object", name, *duplicates.first()));
  }
  return {std::move(json), JsonSource{std::move(name)}};
}

JsonDocument JsonDocument::read(const std::filesystem::path& path) {
  return parse(read_file(path), path.string());
}

JsonNode JsonDocument::root() const { return {json_.get(), source_.get(), ""}; }

void JsonDocument::expect_schema(std::uint64_t supported) const {
  root().at("schema").check_schema(supported);
}

void JsonNode::check_schema(std::uint64_t supported) const {
  const std::uint64_t found = count();
  if (found == supported) return;
  fail(fmt::format("schema {} is not supported; expected {}", found, supported),
       found > supported ? "the file was written by a newer version of rubato" : "");
}

}  // namespace rubato
