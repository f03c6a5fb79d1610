#include <cmath>

#include "common/text.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "traces/power_log.hpp"

namespace {

using rubato::fuzz::require;

void check_log(const rubato::PowerLog& log) {
  require(log.samples.size() >= 2, "a log has samples");
  for (std::size_t i = 0; i < log.samples.size(); ++i) {
    const rubato::PowerSample& sample = log.samples[i];
    require(std::isfinite(sample.time_s), "a time is a number");
    require(i == 0 || log.samples[i - 1].time_s < sample.time_s, "times ascend");
    require(sample.power_w >= 0.0 && std::isfinite(sample.power_w), "power is a number >= 0");
  }
  require(log.period_s() > 0.0, "samples are some time apart");
  for (const std::string& line : log.left_out)
    require(rubato::printable(line) == line, "what was left out can be shown");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    bool read = false;
    for (const rubato::PowerLogOptions& options : {rubato::PowerLogOptions{},
                                                   {.period_s = 0.1},
                                                   {.gpu = "0"},
                                                   {.gpu = "0", .period_s = 0.1}}) {
      try {
        check_log(rubato::parse_power_log(bytes, "input", options));
        read = true;
        break;
      } catch (const rubato::UsageError&) {
      }
    }
    if (!read) throw rubato::UsageError("no option reads it");
  });
}
