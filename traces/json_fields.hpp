#pragma once
// Fields of objects that may be damaged, for readers that use simdjson's on-demand parser.

#include <string_view>

#include <simdjson.h>

#include "common/error.hpp"

namespace rubato {

/// A document whose objects are asked for fields, valid until the next one.
class JsonPart {
 public:
  /// @param text  followed by at least json_padding readable bytes
  /// @throws simdjson::simdjson_error if it does not begin with an object
  simdjson::ondemand::object open(simdjson::ondemand::parser& parser, std::string_view text,
                                  std::size_t padding) {
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
