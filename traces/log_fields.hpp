#pragma once
// What the cells of a log mean, whoever wrote it: names of columns with units, quantities, times.

#include <optional>
#include <string>
#include <string_view>

namespace rubato {

/// What the times of a log count from: 1970 in UTC, 1970 in a local time whose
/// zone the file does not say, or an unknown moment.
enum class TimeBase { utc, local, relative };

/// Without blanks, quotes and carriage returns at both ends.
[[nodiscard]] std::string_view without_blanks(std::string_view text);

/// A column's name. "power.draw [mW]" and "power_draw_mw" are both {"power.draw", "mw"}: lower
/// case, dots between words, the unit apart ("" if there is none).
struct LogField {
  std::string name, unit;
};
[[nodiscard]] LogField log_field(std::string_view cell);

/// Whether a cell says that there is no value: empty, "-", "[N/A]", "nan" and the like.
[[nodiscard]] bool is_missing_cell(std::string_view cell);

/// "341.60 W", "341600 mW", or a number in `unit` -> 341.6. A unit in the cell wins. Without any
/// unit the number is taken as it is. Nothing where the cell is no number or the unit is unknown.
/// @param unit  in lower case: of powers in W, mW or kW, of clocks in MHz, kHz, GHz or Hz
[[nodiscard]] std::optional<double> log_quantity(std::string_view cell, std::string_view unit);

struct LogTime {
  double time_s = 0.0;
  TimeBase base = TimeBase::utc;
};

/// "2024/05/22 17:15:22.123", ISO 8601 with or without a zone ("Z", "+05:30", "+0530", " UTC"),
/// "20240522 17:15:22", "17:15:22" (relative), or a number. A number of `unit` s, ms, us or ns
/// counts from 1970 where that is after 2001, else from an unknown moment. Without a unit, numbers
/// above 1e11 are milli-, micro- or nanoseconds. Nothing if it is none of these or negative.
[[nodiscard]] std::optional<LogTime> log_time(std::string_view cell, std::string_view unit);

}  // namespace rubato
