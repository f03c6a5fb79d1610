#include "tools/options/disturbance.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/command_line.hpp"

namespace rubato {

namespace {

// "4=1.1": rank 4 takes 1.1 times as long.
std::vector<RankSlowdown> slowdowns_of(const std::vector<std::string>& texts,
                                       std::string_view option) {
  std::vector<RankSlowdown> slowdowns;
  for (const std::string& text : texts) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const auto rank = parse_count(text.substr(0, equals));
    const auto factor = parse_number(text.substr(std::min(equals + 1, text.size())));
    if (!rank || *rank > std::numeric_limits<std::uint32_t>::max() || !factor) {
      throw UsageError(
          fmt::format("{} '{}'; expected RANK=FACTOR, e.g. 4=1.1", option, printable(text)));
    }
    slowdowns.push_back({static_cast<std::uint32_t>(*rank), *factor});
  }
  return slowdowns;
}

// "4=1110MHz": no higher core clock; "4=250W": a lower power limit.
std::vector<RankThrottle> throttles_of(const std::vector<std::string>& texts) {
  std::vector<RankThrottle> throttles;
  for (const std::string& text : texts) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const auto rank = parse_count(text.substr(0, equals));
    std::string_view value = std::string_view(text).substr(std::min(equals + 1, text.size()));
    const bool clock = value.ends_with("MHz");
    const bool known_unit = clock || value.ends_with("W");
    value.remove_suffix(clock ? 3 : known_unit ? 1 : 0);
    const auto number = parse_number(value);
    if (!rank || *rank > std::numeric_limits<std::uint32_t>::max() || !number || !known_unit) {
      throw UsageError(fmt::format(
          "--throttle '{}'; expected RANK=CLOCK or RANK=POWER, e.g. 4=1110MHz or 4=250W",
          printable(text)));
    }
    throttles.push_back({static_cast<std::uint32_t>(*rank), {}});
    (clock ? throttles.back().throttle.core_mhz : throttles.back().throttle.power_limit_w) = number;
  }
  return throttles;
}

}  // namespace

void add_disturbance_options(CommandLine& app, DisturbanceOptions& o) {
  app.add_option("--straggler", o.stragglers,
                 "Of several ranks: RANK=FACTOR, one whose kernels take so many times as long "
                 "(several with commas)")
      ->delimiter(',');
  app.add_option(
         "--throttle", o.throttles,
         "Of several ranks: RANK=CLOCK or RANK=POWER, e.g. 4=1110MHz or 4=250W: one held at "
         "a lower core clock or power limit (several with commas)")
      ->delimiter(',');
  app.add_option("--slow-link", o.slow_links,
                 "Of several ranks: RANK=FACTOR, one whose communication does")
      ->delimiter(',');
  app.add_option(
      "--jitter", o.jitter_frac,
      "Of captured and generated runs: standard deviation of the logarithm of each kernel's time");
}

void refuse_options_of_captures(const CommandLine& app) {
  for (const char* option :
       {"--straggler", "--throttle", "--slow-link", "--jitter", "--comm-sms", "--own-steps"})
    if (app.has(option)) throw UsageError(fmt::format("{} is for captured runs", option));
}

GraphDisturbance disturbance_of(const DisturbanceOptions& o) {
  return {.gpus = slowdowns_of(o.stragglers, "--straggler"),
          .links = slowdowns_of(o.slow_links, "--slow-link"),
          .throttles = throttles_of(o.throttles),
          .jitter_frac = o.jitter_frac};
}

}  // namespace rubato
