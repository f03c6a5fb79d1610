#pragma once
// Text: made safe to show, cut, split, quoted and measured.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// The text with control characters and bytes that are not UTF-8 written as
/// "\xNN", so that a name out of a trace cannot move the cursor or recolour a
/// terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// The first bytes of a UTF-8 text, at most `bytes`, without half a character at the end.
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t bytes);

/// ASCII letters in lower case.
[[nodiscard]] std::string lower_case(std::string_view text);

/// The parts between separators; one more than there are separators.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// A word as a shell reads it: in quotes where it needs them.
[[nodiscard]] std::string shell_word(std::string_view text);

/// Characters (code points) of a UTF-8 text, for aligning columns.
[[nodiscard]] std::size_t display_width(std::string_view utf8);

}  // namespace rubato
