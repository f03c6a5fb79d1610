#include "tools/drawing/latency.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

namespace {

std::string latency_text(double latency_us) { return time_text(latency_us / us_per_s); }

}  // namespace

std::string latency_answer(std::span<const LatencySaving> savings, std::string_view who) {
  std::string answer;
  if (savings.empty()) return answer;
  const bool first = savings.front().waits;
  for (const bool waits : {first, !first}) {
    const LatencySaving *shortest = nullptr, *longest = nullptr;
    for (const LatencySaving& one : savings) {
      if (one.waits != waits) continue;
      if (shortest == nullptr || one.latency_us < shortest->latency_us) shortest = &one;
      if (longest == nullptr || one.latency_us > longest->latency_us) longest = &one;
    }
    if (shortest == nullptr) continue;
    const auto saved = [](const LatencySaving& one) {
      return change_words(one.energy_change_pct, one.interval);
    };
    if (!answer.empty()) answer.append("\n");
    answer
        .append(
            fmt::format("A {} that {}: ", who, waits ? "waits for its clock" : "runs on meanwhile"))
        .append("energy " + saved(*shortest))
        .append(" if a switch takes " + latency_text(shortest->latency_us));
    if (longest != shortest) {
      answer.append(", ")
          .append(saved(*longest))
          .append(" if it takes " + latency_text(longest->latency_us));
    }
    answer.append(".");
  }
  return answer;
}

std::string latency_answer(std::span<const LatencyPoint> points) {
  std::vector<LatencySaving> savings;
  for (const LatencyPoint& point : points) {
    if (const auto& plan = point.plans.back())
      savings.push_back({point.latency_us, point.waits, plan->energy_change_pct});
  }
  return latency_answer(savings, "device");
}

}  // namespace rubato
