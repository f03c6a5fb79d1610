#pragma once
// Fields of objects that may be damaged, for readers that use simdjson's on-demand parser. That
// parser looks at a value only when it is asked for, and trusts the text around it.

#include <optional>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "common/error.hpp"

namespace rubato {

/// Checks that brackets, commas, colons and quotes stand as in JSON. What stands between them is
/// not looked at. simdjson takes this for granted when it searches an object for fields in any
/// order: it goes over the object a second time. Where a damaged object ends elsewhere then, it
/// reads outside the document.
/// @throws DataError if they do not
void check_structure(std::string_view text);

/// Whether a value is there and of the type asked for.
/// @throws DataError for every other error: the text is no JSON, and whoever went on would read
///         outside the document
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

/// A document whose objects are asked for fields. Valid until its parser gets the next document.
class JsonPart {
 public:
  /// @param padding  readable bytes that follow `text`, at least simdjson::SIMDJSON_PADDING
  /// @throws simdjson::simdjson_error if the text does not begin with an object, and as
  ///         check_structure()
  simdjson::ondemand::object open(simdjson::ondemand::parser& parser, std::string_view text,
                                  std::size_t padding) {
    check_structure(text);
    document_ = parser.iterate(text.data(), text.size(), text.size() + padding).value();
    return document_.get_object().value();
  }

  /// simdjson gives up at the first syntax error. Asked for more after that, it follows a null
  /// pointer. @throws DataError if it has given up
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
