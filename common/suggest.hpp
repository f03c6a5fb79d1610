#pragma once
// "Did you mean": the known name nearest to a mistyped one.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rubato {

/// Number of single-character insertions, deletions, replacements and swaps of
/// neighbours that turn `a` into `b` (optimal string alignment distance).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known name with the least edit distance, first of equals; nothing if more than a third of
/// the characters (of fewer than three: more than one) would have to change.
[[nodiscard]] std::optional<std::string> nearest(std::string_view name,
                                                 std::span<const std::string> known);

/// The end of a message about an unknown name. "; did you mean 'x'?" if one known name contains it,
/// "; did you mean one of x, y?" if several do. If none does: the nearest name, or without one
/// "; expected one of a, b, c".
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace rubato
