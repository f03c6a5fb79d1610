#include "traces/log_fields.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>

#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

struct Unit {
  std::string_view name;
  double factor;  // to W, MHz or s
};
constexpr std::array units{Unit{"w", 1.0},           Unit{"watt", 1.0},
                           Unit{"watts", 1.0},       Unit{"mw", 1e-3},
                           Unit{"kw", 1e3},          Unit{"mhz", 1.0},
                           Unit{"khz", 1e-3},        Unit{"ghz", 1e3},
                           Unit{"hz", 1e-6},         Unit{"s", 1.0},
                           Unit{"sec", 1.0},         Unit{"seconds", 1.0},
                           Unit{"ms", 1e-3},         Unit{"us", 1e-6},
                           Unit{"ns", 1e-9},         Unit{"microseconds", 1e-6},
                           Unit{"milliwatts", 1e-3}, Unit{"milliseconds", 1e-3},
                           Unit{"nanoseconds", 1e-9}};

const Unit* unit_named(std::string_view name) {
  const auto* found = std::ranges::find(units, name, &Unit::name);
  return found == units.end() ? nullptr : found;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Takes `digits` digits off the front.
std::optional<int> take_count(std::string_view& text, std::size_t digits) {
  if (text.size() < digits || !std::ranges::all_of(text.substr(0, digits), is_digit))
    return std::nullopt;
  const auto count = parse_count(text.substr(0, digits));
  text.remove_prefix(digits);
  return static_cast<int>(*count);
}

bool take(std::string_view& text, std::string_view one_of) {
  if (text.empty() || one_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// "2024-05-22", "2024/05/22", "20240522" or "22.05.2024": days since 1970.
std::optional<double> take_date(std::string_view& text) {
  constexpr std::size_t day_digits = 2;
  const bool day_first = text.size() > day_digits && text[day_digits] == '.';
  auto year = take_count(text, day_first ? 2 : 4);
  const char separator = text.empty() ? ' ' : text.front();
  const bool separated = take(text, "-/.");
  const auto month = take_count(text, 2);
  if (separated && !take(text, std::string_view(&separator, 1))) return std::nullopt;
  auto day = take_count(text, day_first ? 4 : 2);
  if (day_first) std::swap(year, day);
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
}

// "17:15:22.123", also with a comma: seconds since midnight.
std::optional<double> take_clock(std::string_view& text) {
  const auto hour = take_count(text, 2);
  if (!take(text, ":")) return std::nullopt;
  const auto minute = take_count(text, 2);
  if (!take(text, ":")) return std::nullopt;
  const auto second = take_count(text, 2);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  double seconds = 3600.0 * *hour + 60.0 * *minute + *second;
  if (take(text, ".,")) {
    const auto digits =
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
    const auto fraction = parse_count(text.substr(0, digits));
    if (!fraction) return std::nullopt;
    seconds += static_cast<double>(*fraction) * std::pow(10.0, -static_cast<double>(digits));
    text.remove_prefix(digits);
  }
  return seconds;
}

// What stands behind a time of day: nothing (0 and no zone), "Z", "UTC" or an offset, in s.
struct Zone {
  bool known = false;
  double ahead_s = 0.0;
};
std::optional<Zone> zone_of(std::string_view text) {
  text = without_blanks(text);
  if (text.empty()) return Zone{};
  const std::string name = lower_case(text);
  if (name == "z" || name == "utc" || name == "gmt") return Zone{.known = true};
  const double sign = text.front() == '-' ? -1.0 : 1.0;
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_count(text, 2);
  take(text, ":");
  const auto minutes = text.empty() ? std::optional(0) : take_count(text, 2);
  if (!hours || !minutes || !text.empty() || *hours > 14 || *minutes > 59) return std::nullopt;
  return Zone{.known = true, .ahead_s = sign * (3600.0 * *hours + 60.0 * *minutes)};
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\"'";
  const std::size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

LogField log_field(std::string_view cell) {
  std::string name = lower_case(without_blanks(cell));
  std::string unit;
  if (const std::size_t open = name.find_first_of("[("); open != std::string::npos) {
    unit = name.substr(open + 1, name.find_first_of("])", open) - open - 1);
    name = std::string(without_blanks(name.substr(0, open)));
  }
  std::ranges::replace_if(
      name, [](char c) { return c == '_' || c == ' ' || c == '-'; }, '.');
  const std::size_t last = name.rfind('.');
  if (last != std::string::npos && last > 0 &&
      unit_named(std::string_view(name).substr(last + 1))) {
    if (unit.empty()) unit = name.substr(last + 1);
    name.resize(last);
  }
  return {std::move(name), std::move(unit)};
}

bool is_missing_cell(std::string_view cell) {
  if (cell.empty() || cell.front() == '[') return true;
  constexpr std::array<std::string_view, 8> words{"-",    "n/a",  "na", "nan",
                                                  "none", "null", "--", "not supported"};
  return std::ranges::find(words, lower_case(cell)) != words.end();
}

std::optional<double> log_quantity(std::string_view cell, std::string_view unit) {
  if (cell.starts_with('(') && cell.ends_with(')'))
    cell = cell.substr(1, cell.size() - 2);  // rocm-smi
  std::size_t end = cell.size();
  while (end > 0 && std::isalpha(static_cast<unsigned char>(cell[end - 1])) != 0) --end;
  const std::string own = lower_case(cell.substr(end));
  std::string number(without_blanks(cell.substr(0, end)));
  // A decimal comma, as spreadsheets of many countries write it.
  if (std::ranges::count(number, ',') == 1 && number.find('.') == std::string::npos)
    std::ranges::replace(number, ',', '.');
  const auto value = parse_number(number);
  const std::string_view of = own.empty() ? unit : std::string_view(own);
  if (!value || of.empty()) return value;
  const Unit* known = unit_named(of);
  if (known == nullptr) return std::nullopt;
  return *value * known->factor;
}

std::optional<LogTime> log_time(std::string_view cell, std::string_view unit) {
  // A number above 1e9 s counts from 1970. Above 1e11 it is one of milli-, micro- or nanoseconds.
  constexpr double year_2001_s = 1e9, year_5138_s = 1e11;
  if (auto number = log_quantity(cell, unit)) {
    if (*number < 0.0) return std::nullopt;
    while (*number > year_5138_s) *number /= 1e3;
    return LogTime{*number, *number > year_2001_s ? TimeBase::utc : TimeBase::relative};
  }
  std::string_view rest = cell;
  if (const auto time_of_day = take_clock(rest); time_of_day && rest.empty())
    return LogTime{*time_of_day, TimeBase::relative};
  rest = cell;
  const auto days = take_date(rest);
  if (!days || !take(rest, " Tt")) return std::nullopt;
  const auto seconds = take_clock(rest);
  const auto zone = zone_of(rest);
  if (!seconds || !zone) return std::nullopt;
  constexpr double day_s = 86400.0;
  return LogTime{day_s * *days + *seconds - zone->ahead_s,
                 zone->known ? TimeBase::utc : TimeBase::local};
}

}  // namespace rubato
