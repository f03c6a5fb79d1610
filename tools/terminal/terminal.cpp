#include "tools/terminal/terminal.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <sys/ioctl.h>
#include <unistd.h>

#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// One terminal, so one of each.
std::atomic<bool> wide = false, progress_stands = false;

constexpr std::string_view plain_again = "\x1b[0m";
// Cyan and yellow are told apart by colour-blind eyes; the sign says it too.
constexpr std::array<std::string_view, 4> begins{"", "\x1b[1m", "\x1b[36m", "\x1b[33m"};

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// Nothing where nobody says it: in a file or a pipe.
std::optional<std::size_t> terminal_columns() {
  if (const std::optional<std::uint64_t> asked = parse_count(variable("COLUMNS"));
      asked && *asked > 0)
    return *asked;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return std::nullopt;
}

}  // namespace

TableStyle table_style() {
  TableStyle style;
  const std::optional<std::size_t> columns = wide ? std::nullopt : terminal_columns();
  if (!columns) style.longest_text = TableStyle::no_limit;
  style.columns = columns.value_or(TableStyle::no_limit);
  if (::isatty(STDOUT_FILENO) != 1) return style;
  style.colours = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  return style;
}

std::size_t line_width() {
  constexpr std::size_t of_a_file = 100;
  if (wide) return TableStyle::no_limit;
  return terminal_columns().value_or(of_a_file);
}

namespace {

// Whether a blank ends a number before its unit.
bool is_before_unit(std::string_view line, std::size_t blank) {
  constexpr std::array<std::string_view, 12> units{"%",  "MHz", "W",  "J",  "kJ", "s",
                                                   "ms", "us",  "GB", "MB", "V",  "points"};
  if (blank == 0 || line[blank - 1] < '0' || line[blank - 1] > '9') return false;
  const std::string_view rest = line.substr(blank + 1);
  const std::string_view word = rest.substr(0, rest.find_first_of(" ,.;:()"));
  return std::ranges::find(units, word) != units.end();
}

}  // namespace

void add_wrapped(std::string& text, std::string_view line, std::size_t columns,
                 std::string_view indent, std::size_t at) {
  for (bool first = true; !line.empty(); first = false) {
    const std::size_t room = columns - std::min(columns - 1, first ? at : indent.size());
    std::size_t end = line.size();
    if (display_width(line) > room) {
      // The last blank of what fits, else the first one there is.
      std::size_t fits = 0, width = 0;
      while (fits < line.size() && width <= room) width += (line[fits++] & 0xC0) != 0x80;
      end = line.rfind(' ', fits - 1);
      while (end != std::string_view::npos && is_before_unit(line, end))
        end = line.rfind(' ', end - 1);
      if (end == std::string_view::npos || end == 0) end = std::min(line.find(' '), line.size());
    }
    if (!first) text += indent;
    text += line.substr(0, end);
    text += '\n';
    line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
  }
}

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.empty() || line.front() == ' ') {
      out.append(line).append("\n");
    } else {
      add_wrapped(out, line, columns);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void show_tables_wide() { wide = true; }

std::string inked(std::string_view text, Ink ink) {
  if (ink == Ink::plain) return std::string(text);
  return std::string(begins[static_cast<std::size_t>(ink)]).append(text).append(plain_again);
}

void note_progress() { progress_stands = true; }

void clear_progress() {
  if (!progress_stands.exchange(false)) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace rubato
