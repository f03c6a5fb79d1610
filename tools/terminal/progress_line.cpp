#include "tools/terminal/progress_line.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "common/text.hpp"
#include "tools/terminal/terminal.hpp"

namespace rubato {

namespace {

constexpr std::chrono::milliseconds interval{200};

void write_line(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

void print_message(const std::string& line) {
  clear_progress();
  write_line(line + '\n');
}

std::string duration_text(double time_s) {
  constexpr double minute_s = 60.0, hour_s = 3600.0;
  if (time_s < 2.0 * minute_s) return fmt::format("{:.0f} s", time_s);
  if (time_s < 2.0 * hour_s) return fmt::format("{:.0f} min", time_s / minute_s);
  return fmt::format("{:.1f} h", time_s / hour_s);
}

ProgressLine::ProgressLine(std::chrono::milliseconds first_after)
    : is_shown_(::isatty(STDERR_FILENO) == 1 || std::getenv("RUBATO_PROGRESS") != nullptr),
      first_after_(first_after) {}

ProgressLine::~ProgressLine() { clear_progress(); }

void ProgressLine::show(const ProgressUpdate& update) {
  const auto now = Clock::now();
  if (!is_shown_ || now - start_ < first_after_) return;
  if (last_ && now - *last_ < interval) return;
  last_ = now;
  note_progress();
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  const double rate_per_s = static_cast<double>(update.done) / elapsed_s;
  std::string text = fmt::format("\r\x1b[K{}", update.done);
  if (update.total > 0) {
    const auto left = static_cast<double>(update.total - std::min(update.done, update.total));
    text +=
        fmt::format(" of {} ({:.0f} %)", update.total,
                    100.0 * static_cast<double>(update.done) / static_cast<double>(update.total));
    if (rate_per_s > 0.0)
      text += fmt::format(", {} left", duration_text(update.left_s.value_or(left / rate_per_s)));
  }
  text += fmt::format(", {:.3g}/s", rate_per_s);
  if (!update.note.empty()) text += ", " + printable(update.note);
  write_line(text);
}

}  // namespace rubato
