#include "tools/options/values.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"

namespace rubato {

std::map<std::string, std::string> named_values(std::string_view option, std::string_view text,
                                                const std::vector<std::string>& known) {
  std::map<std::string, std::string> values;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name(part.substr(0, equals));
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(fmt::format("{} has no value '{}'{}", option, printable(name),
                                   did_you_mean(name, known)));
    if (equals == part.size())
      throw UsageError(fmt::format("{}: {} has no value; expected {}=...", option, name, name));
    if (!values.emplace(name, part.substr(equals + 1)).second)
      throw UsageError(fmt::format("{}: {} is given twice", option, name));
  }
  return values;
}

double number_of(std::string_view option, std::string_view name, std::string_view value,
                 double least, double most, std::string_view unit) {
  const bool has_unit = value.ends_with(unit);
  const auto number =
      has_unit ? parse_number(value.substr(0, value.size() - unit.size())) : std::nullopt;
  if (!number || !(*number >= least && *number <= most))
    throw UsageError(fmt::format("{}{}{} is '{}'; expected a number from {} to {}{}{}", option,
                                 name.empty() ? "" : ": ", name, printable(value),
                                 format_number(least), format_number(most), unit.empty() ? "" : " ",
                                 unit));
  return *number;
}

double seconds_of(std::string_view option, std::string_view name, const std::string& value,
                  double most_s) {
  if (value == "0") return 0.0;
  const std::string_view unit = value.ends_with("us") ? "us" : value.ends_with("ms") ? "ms" : "s";
  const double scale = unit == "us" ? us_per_s : unit == "ms" ? ms_per_s : 1.0;
  return number_of(option, name, value, 0.0, most_s * scale, unit) / scale;
}

}  // namespace rubato
