#pragma once
// Fields of objects that may be damaged, for readers that use simdjson's on-demand parser.

#include <optional>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "common/error.hpp"

namespace rubato {

/// Brackets, commas, colons and quotes stand as in JSON; what stands between them is not looked at.
/// simdjson's search for fields in any order takes that for granted, and reads outside the document
/// where a damaged one ends otherwise the second time.
/// @throws DataError
void check_structure(std::string_view text);

/// Whether a value is there and of the type asked for. Whoever goes on after any other error reads
/// outside the document. @throws DataError for those: the text is no JSON
inline bool is_there(simdjson::error_code code) {
  switch (code) {
    case simdjson::SUCCESS: return true;
    case simdjson::NO_SUCH_FIELD:
    case simdjson::INCORRECT_TYPE:
    case simdjson::NUMBER_ERROR:
    case simdjson::NUMBER_OUT_OF_RANGE: return false;
    default: throw DataError(simdjson::error_message(code));
  }
}

/// What is wrong with a part of a document; nothing if it can be read.
template <class Read>
[[nodiscard]] std::optional<std::string> problem_of(const Read& read) {
  try {
    read();
    return std::nullopt;
  } catch (const simdjson::simdjson_error& error) {
    return error.what();
  } catch (const DataError& error) {
    return error.what();
  }
}

/// A document whose objects are asked for fields, valid until the next one.
class JsonPart {
 public:
  /// @param text  followed by at least json_padding readable bytes
  /// @throws simdjson::simdjson_error if it does not begin with an object, and as check_structure()
  simdjson::ondemand::object open(simdjson::ondemand::parser& parser, std::string_view text,
                                  std::size_t padding) {
    check_structure(text);
    document_ = parser.iterate(text.data(), text.size(), text.size() + padding).value();
    return document_.get_object().value();
  }

  /// simdjson gives up at the first syntax error, and whoever asks it for more then ends up at a
  /// null pointer. @throws DataError if it has given up
  void check() {
    if (!document_.is_alive()) throw DataError("not valid JSON");
  }

  /// A field of an object of this document. @throws as check()
  simdjson::simdjson_result<simdjson::ondemand::value> field(simdjson::ondemand::object& object,
                                                             std::string_view key) {
    check();
    return object.find_field_unordered(key);
  }

 private:
  simdjson::ondemand::document document_;
};

}  // namespace rubato
