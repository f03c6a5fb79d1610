#include "tools/options/disturbance.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/command_line.hpp"
#include "tools/options/values.hpp"

namespace rubato {

namespace {

constexpr std::string_view kernels = "kernels*", network = "network*",
                           jitter = "jitter=", power = "power*";

std::optional<double> behind(std::string_view text, std::string_view word) {
  return text.starts_with(word) ? parse_number(text.substr(word.size())) : std::nullopt;
}
std::optional<double> before(std::string_view text, std::string_view unit) {
  return text.ends_with(unit) ? parse_number(text.substr(0, text.size() - unit.size()))
                              : std::nullopt;
}

}  // namespace

void add_disturb_option(CommandLine& app, std::vector<std::string>& texts) {
  app.add_option(
         "--disturb WHAT,...", texts,
         "Plan with a disturbance: 3:kernels*1.2 (rank 3's kernels take 1.2 times as long), "
         "3:network*1.5, 3:1110MHz, 3:250W, 3:power*1.1 (a warm GPU), or jitter=0.02 (of all "
         "kernels' times)")
      ->delimiter(',')
      ->one_word();
}

GraphDisturbance disturbance_of(const std::vector<std::string>& texts) {
  GraphDisturbance all;
  for (const std::string& text : texts) {
    if (const auto spread = behind(text, jitter)) {
      all.jitter_frac = *spread;
      continue;
    }
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto rank = parse_count(text.substr(0, colon));
    const std::string_view what = std::string_view(text).substr(std::min(colon + 1, text.size()));
    const auto core_mhz = before(what, "MHz"), limit_w = before(what, "W");
    const auto slower = behind(what, kernels), slower_link = behind(what, network),
               draws = behind(what, power);
    if (!rank || *rank > std::numeric_limits<std::uint32_t>::max() ||
        !(core_mhz || limit_w || slower || slower_link || draws))
      throw UsageError(
          fmt::format("--disturb '{}'; expected e.g. 3:kernels*1.2, 3:network*1.5, "
                      "3:1110MHz, 3:250W, 3:power*1.1 or jitter=0.02",
                      printable(text)));
    const auto id = static_cast<std::uint32_t>(*rank);
    if (slower) all.gpus.push_back({id, *slower});
    if (slower_link) all.links.push_back({id, *slower_link});
    if (draws) all.throttles.push_back({id, {.power_factor = *draws}});
    if (core_mhz || limit_w)
      all.throttles.push_back(
          {id, {.core_mhz = core_mhz, .power_limit_w = core_mhz ? std::nullopt : limit_w}});
  }
  return all;
}

}  // namespace rubato
