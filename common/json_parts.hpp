#pragma once
// A JSON file of any size as a stream: the elements of one array (or of several), and the other
// members of the root object. Only a block of elements is in memory at a time.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/byte_source.hpp"

namespace rubato {

/// What to do with the parts. Texts are followed by at least json_padding readable bytes and are
/// valid during the call only.
struct JsonPartHandlers {
  /// An element of the array, text from brace to brace, and its offset in the file.
  std::function<void(std::string_view text, std::uint64_t offset)> element;
  /// Another member of the root object.
  std::function<void(std::string_view key, std::string_view value)> member;
  /// Optional: many elements at once, text from bracket to bracket. Much faster for a reader that
  /// parses them as a whole. The text may be no JSON: blocks are cut by a guess.
  /// @return nothing if all elements are handled; else how many are, and the others go to `element`
  std::function<std::optional<std::size_t>(std::string_view text)> block = {};
};

/// The same for several arrays of the root object: `element` is told which one.
struct JsonListHandlers {
  std::function<void(std::string_view list, std::string_view text, std::uint64_t offset)> element;
  std::function<void(std::string_view key, std::string_view value)> member;
};

/// Bytes behind a part that may be read, as simdjson does.
inline constexpr std::size_t json_padding = 64;
/// Of one element or member; larger ones are errors.
inline constexpr std::size_t max_json_part_bytes = std::size_t{256} << 20;
/// Of a block, at most: what a parser makes of one fits into a core's cache.
inline constexpr std::size_t json_block_bytes = std::size_t{128} << 10;

/// Reads `{..., "<array>": [{...}, ...], ...}` or the bare array, which may lack its last bracket
/// and have a comma before it, as Chrome's trace format says. Elements that are not objects are
/// errors.
/// @throws DataError with the byte offset for text that is not such JSON or ends early, and with
///         the line too where a part begins that does not end; elements before it have been handled
void read_json_parts(ByteSource& source, std::string_view array, const JsonPartHandlers& handlers);

/// Reads `{..., "<one of lists>": [{...}, ...], ...}`; a bare array is the first of them.
/// @throws as read_json_parts
void read_json_lists(ByteSource& source, std::span<const std::string_view> lists,
                     const JsonListHandlers& handlers);

}  // namespace rubato
