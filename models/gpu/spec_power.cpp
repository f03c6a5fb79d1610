#include "models/gpu/spec_power.hpp"

#include <algorithm>
#include <functional>

#include "traces/files/json_names.hpp"

namespace rubato {

void read_measured_power(const JsonNode& root, GpuSpec& spec) {
  if (const auto node = root.find("waiting_power")) {
    node->expect_keys({"source", "core_mhz", "power_w"});
    spec.sources["waiting_power"] = node->at("source").text();
    const JsonNode clocks = node->at("core_mhz"), power = node->at("power_w");
    spec.waiting = WaitingPower{clocks.numbers(Range::positive), power.numbers(Range::positive)};
    if (!std::ranges::is_sorted(spec.waiting->core_mhz, std::ranges::less_equal{}))
      clocks.fail("the values must ascend");
    if (spec.waiting->core_mhz.empty() ||
        spec.waiting->core_mhz.size() != spec.waiting->power_w.size())
      power.fail("must have as many values as core_mhz, at least one");
    if (!std::ranges::is_sorted(spec.waiting->power_w)) power.fail("must not fall");
  }
  if (const auto node = root.find("logged_power")) {
    node->expect_keys({"source", "list"});
    spec.sources["logged_power"] = node->at("source").text();
    for (const JsonNode& item : node->at("list").items()) {
      item.expect_keys({"class", "core_factor", "relative_error"});
      spec.logged.push_back(
          {.kind = read_name<KernelClass>(item.at("class")),
           .core_factor = item.at("core_factor").number(Range::positive),
           .relative_error = item.at("relative_error").number(Range::non_negative)});
    }
  }
}

}  // namespace rubato
