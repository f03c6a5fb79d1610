#pragma once
// What a JSON file of any size is made of, without reading it whole.

#include <functional>
#include <string_view>

#include "common/byte_source.hpp"

namespace rubato {

/// A key near the root of a JSON text.
struct JsonKey {
  int depth = 1;           ///< 1: of the root object; 2: of an object within the root
  std::string_view text;   ///< as written, without its quotes
  std::string_view value;  ///< how its value begins: a bracket, or a scalar of up to 32 bytes
};

/// Calls `see` for the keys of the root object and of the objects within the root, in the file's
/// order, until it returns false. What is deeper, or in strings, is passed over.
/// @return whether all brackets that were opened have been closed; true if `see` ended it
/// @throws IoError; DataError as ByteSource
bool scan_json_keys(ByteSource& source, const std::function<bool(const JsonKey& key)>& see);

}  // namespace rubato
