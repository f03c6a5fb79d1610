#include "tools/terminal/next_capture.hpp"

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

OutputTable next_table(const std::optional<NextMeasurement>& next) {
  OutputTable table({{"core_mhz", "second capture at, MHz"},
                     {"slack_pct", "slack, %"},
                     {"saving_now_pct", "one clock saves now, %", 2},
                     {"saving_pct", "then, %", 2},
                     {"time_width_now_pct", "its time is known to, points", 2},
                     {"time_width_pct", "then, points", 2},
                     {"best"}});
  if (!next) return table;
  for (const NextCapture& one : next->captures)
    table.add_row({one.core_mhz, percent * next->slack_frac, percent * next->saving_now_frac,
                   percent * one.saving_frac,
                   next->width_now_frac ? Cell(percent * *next->width_now_frac) : Cell(),
                   percent * one.width_frac, std::int64_t{&one == &next->best()}});
  return table;
}

std::string next_text(const std::optional<NextMeasurement>& next, double usual_mhz) {
  if (!next) return "";
  const NextCapture& best = next->best();
  std::string text = fmt::format(
      "capture the same run at core {0:.0f} MHz too (nvidia-smi -lgc {0:.0f},{0:.0f}) and add "
      "--also SLOW@{0:.0f}: one capture, at {1:.0f} MHz, does not say how much of each kernel's "
      "time follows the core clock",
      best.core_mhz, usual_mhz);
  if (!(best.saving_frac > 0.0)) return text;
  constexpr double worth_saying_frac = 1e-3;
  const bool adds = best.saving_frac > next->saving_now_frac + worth_saying_frac;
  text +=
      fmt::format(". One clock for all, in at most {:.4g} % more time, is then expected to save ",
                  percent * next->slack_frac);
  text += adds ? fmt::format("{:.1f} % (now {:.1f} %)", percent * best.saving_frac,
                             percent * next->saving_now_frac)
               : "no more than now";
  text += fmt::format(", its time known to {:.1f} points", percent * best.width_frac);
  if (next->width_now_frac) text += fmt::format(" (now {:.1f})", percent * *next->width_now_frac);
  return text;
}

}  // namespace rubato
