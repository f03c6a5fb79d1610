#pragma once
// Options that hold several named values in one word: "kwh=0.12,pue=1.2".

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// The values by their names.
/// @throws UsageError for a word without a value, a name that is not known, and one given twice
[[nodiscard]] std::map<std::string, std::string> named_values(
    std::string_view option, std::string_view text, const std::vector<std::string>& known);

/// @param unit  that must stand behind it, such as "MHz"; may be empty
/// @throws UsageError naming option and value unless it is a number from least to most
[[nodiscard]] double number_of(std::string_view option, std::string_view name,
                               std::string_view value, double least, double most,
                               std::string_view unit = "");

/// A time with its unit: "22ms", "500us", "0.1s", "0". @throws as number_of
[[nodiscard]] double seconds_of(std::string_view option, std::string_view name,
                                const std::string& value, double most_s);

}  // namespace rubato
