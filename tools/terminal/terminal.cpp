#include "tools/terminal/terminal.hpp"

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

std::size_t terminal_columns() {
  if (const std::optional<std::uint64_t> asked = parse_count(variable("COLUMNS"));
      asked && *asked > 0)
    return *asked;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return TableStyle::no_limit;
}

}  // namespace

TableStyle table_style() {
  TableStyle style;
  if (wide) style.longest_text = TableStyle::no_limit;
  if (::isatty(STDOUT_FILENO) != 1) return style;
  if (!wide) style.columns = terminal_columns();
  style.colours = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  return style;
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
