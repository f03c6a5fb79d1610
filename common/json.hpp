#pragma once
// Strict reading of JSON: a wrong type, a missing or unknown key, a duplicate
// key or a number out of range is a DataError that names file, place and value.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/range.hpp"

namespace rubato {

class JsonDocument;

/// The JSON text of a value. Bytes that are not UTF-8 become U+FFFD. It is here so that dump() is
/// compiled once: every source file that calls it costs the compiler a second.
/// @param indent  spaces a level; -1: all on one line
/// @param ascii   whether characters beyond ASCII are escaped
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json, int indent = -1,
                                    bool ascii = false);

/// Limits of a document, against files made to exhaust stack or time.
inline constexpr std::size_t max_json_depth = 100;    ///< levels of lists and objects
inline constexpr std::size_t max_json_keys = 10'000;  ///< of one object; keys are looked up in turn

/// What messages call a document: its name, and the lines of its values where they are known.
struct JsonSource {
  std::string name;
  std::map<std::string, std::size_t> lines = {};  ///< place -> line, from 1
};

/// One value inside a JsonDocument, with its place ("kernels[3].flops") for
/// messages. Valid while the document lives.
class JsonNode {
 public:
  /// This number is a file's `schema`.
  /// @throws DataError if it is not `supported`; a newer one asks for a newer program
  void check_schema(std::uint64_t supported) const;

  /// Checks that this is an object with every required key and no key outside
  /// both lists. Call it first: else a misspelt optional key reads as one that is not there.
  /// @throws DataError, with the nearest known key
  void expect_keys(std::initializer_list<std::string_view> required,
                   std::initializer_list<std::string_view> optional = {}) const;

  [[nodiscard]] JsonNode at(std::string_view key) const;  ///< throws if absent or null
  [[nodiscard]] std::optional<JsonNode> find(
      std::string_view key) const;  ///< absent or null: nothing

  /// The number under `key`; absent or null: nothing.
  [[nodiscard]] std::optional<double> optional_number(std::string_view key,
                                                      Range range = Range::any) const;

  [[nodiscard]] bool is_text() const noexcept;
  [[nodiscard]] bool is_number() const noexcept;
  [[nodiscard]] bool is_object() const noexcept;
  [[nodiscard]] bool is_list() const noexcept;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] double number(Range range = Range::any) const;
  [[nodiscard]] std::uint64_t count() const;            ///< whole number, 0 to 2^53
  [[nodiscard]] std::vector<JsonNode> items() const;    ///< elements of an array
  [[nodiscard]] std::vector<std::string> keys() const;  ///< keys of an object, in file order
  [[nodiscard]] std::vector<double> numbers(Range range = Range::any) const;
  [[nodiscard]] std::int64_t integer() const;  ///< whole number, exact in 64 bits
  /// Whole numbers of an array; null gives nothing. For long arrays: an element's place is spelt
  /// out only if it is wrong.
  [[nodiscard]] std::vector<std::optional<std::int64_t>> integers() const;

  /// "file: place", with the line where it is known, for messages of callers.
  [[nodiscard]] std::string where() const;

  /// Throws DataError("where: what"), with an optional hint.
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;

 private:
  friend class JsonDocument;
  JsonNode(const nlohmann::ordered_json* json, const JsonSource* source, std::string place)
      : json_(json), source_(source), place_(std::move(place)) {}

  const nlohmann::ordered_json* json_;
  const JsonSource* source_;
  std::string place_;
};

/// A parsed JSON text and the name it is reported under.
class JsonDocument {
 public:
  /// @param name  shown in messages, usually the path
  /// @throws DataError at the first syntax error (with line and column), for a duplicate key, and
  ///         for what is beyond the limits above
  [[nodiscard]] static JsonDocument parse(std::string_view text, std::string name);

  /// As parse, from TOML; messages then name lines. Dates and times are not accepted.
  /// @throws DataError at the first syntax error, with line and column
  [[nodiscard]] static JsonDocument parse_toml(std::string_view text, std::string name);

  /// @throws IoError, DataError
  [[nodiscard]] static JsonDocument read(const std::filesystem::path& path);

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  [[nodiscard]] JsonNode root() const;

  /// Checks the `schema` number at the root.
  /// @throws DataError if it is absent or not `supported`; a newer one asks for a newer program
  void expect_schema(std::uint64_t supported) const;

 private:
  JsonDocument(std::unique_ptr<nlohmann::ordered_json> json, JsonSource source);

  std::unique_ptr<nlohmann::ordered_json> json_;
  std::unique_ptr<JsonSource> source_;  // on the heap: nodes point to it, also after a move
};

}  // namespace rubato
