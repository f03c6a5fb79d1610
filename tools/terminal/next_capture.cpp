#include "tools/terminal/next_capture.hpp"

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/report/setting_lines.hpp"
#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "models/kernel/model.hpp"

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

std::string next_text(const std::optional<NextMeasurement>& next, const GraphModel& model,
                      bool power_is_seen) {
  if (!next) return "";
  const NextCapture& best = next->best();
  const GpuSpec& spec = model.spec();
  const std::string line =
      setting_commands(spec, {.mem = spec.default_clock.mem, .core_mhz = best.core_mhz}).set;
  std::string text = fmt::format(
      "capture the same run at core {0:.0f} MHz too{1} and add --also SLOW@{0:.0f}. One capture, "
      "at {2:.0f} MHz, does not show how much of each kernel's time depends on the core clock",
      best.core_mhz, line.empty() ? "" : fmt::format(" ({})", line),
      effective_core_mhz(spec, model.captured_clock()));
  if (!(best.saving_frac > 0.0)) return text;
  constexpr double worth_saying_frac = 1e-3;
  const bool adds = best.saving_frac > next->saving_now_frac + worth_saying_frac;
  // What it adds, for one clock in the time allowed.
  text += ". The interval of the time of one clock for all is then ";
  text += next->width_now_frac
              ? fmt::format("{:.1f} instead of {:.1f} points wide", percent * best.width_frac,
                            percent * *next->width_now_frac)
              : fmt::format("{:.1f} points wide", percent * best.width_frac);
  if (adds)
    text += fmt::format(
        ", and it is expected to save {:.1f} instead of {:.1f} % in at most {:.4g} % more time",
        percent * best.saving_frac, percent * next->saving_now_frac, percent * next->slack_frac);
  else
    text += "; a larger saving is not expected";
  if (!power_is_seen && next->energy_width_now_frac > next->width_now_frac.value_or(0.0))
    text += fmt::format(
        ". Energy is known to {:.1f} points: log power beside both captures (--power LOG, --also "
        "SLOW@{:.0f},power=LOG)",
        percent * next->energy_width_now_frac, best.core_mhz);
  return text;
}

}  // namespace rubato
