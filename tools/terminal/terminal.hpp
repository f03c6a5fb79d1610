#pragma once
// What standard output and standard error are shown on. There is one of it for a process.

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace rubato {

/// How tables are shown.
struct TableStyle {
  static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

  std::size_t columns = no_limit;  ///< characters of a line
  bool colours = false;            ///< bold titles, changes for less in cyan, for more in yellow
  std::size_t longest_text = 100;  ///< characters of a cell
};

/// On a terminal: its width, and colours unless NO_COLOR is set (no-color.org) or TERM is 'dumb'.
/// Anywhere else, as in a file or a pipe, and with --wide: everything, without colours. The
/// environment variable COLUMNS outweighs either width.
[[nodiscard]] TableStyle table_style();

/// Characters of a line of prose: the terminal's width, 100 where there is none, or COLUMNS; no
/// limit with --wide.
[[nodiscard]] std::size_t line_width();

/// Lines of at most so many characters where blanks allow it; those that begin with a blank stay
/// whole. @param columns  > 0
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns);

/// Adds one line, broken at blanks where it does not fit; later lines are indented.
/// @param columns  > 0
/// @param at       characters that stand before it
void add_wrapped(std::string& text, std::string_view line, std::size_t columns,
                 std::string_view indent = "  ", std::size_t at = 0);

/// From this call on tables are not fitted to a width (--wide).
void show_tables_wide();

enum class Ink { plain, bold, less, more };
/// The text between the control sequences of an ink.
[[nodiscard]] std::string inked(std::string_view text, Ink ink);

/// Says that a progress line stands on the terminal, which the next text must not run into.
void note_progress();
/// Erases the progress line, if there is one.
void clear_progress();

}  // namespace rubato
