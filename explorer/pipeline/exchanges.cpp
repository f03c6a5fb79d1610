// Exchanges of clocks between passes: the part of ClockRounder that improves a plan.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "explorer/pipeline/rounding.hpp"

namespace rubato {

namespace {

// An exchange must save this share of the cost: below it, sums of costs are noise.
constexpr double least_gain = 1e-12;

constexpr int exchange_rounds = 2;             // over all passes
constexpr std::uint32_t fastest_exchange = 3;  // choices by which a pass may get faster
// A faster choice may cost this many times what its time is worth in free durations: clocks are
// not free.
constexpr double most_worth = 1.5;

// Passes that all trials of exchanges together may look at.
constexpr double exchange_effort = 3e7;

}  // namespace

PipelinePlan ClockRounder::improve(const PipelinePlan& plan, double deadline_s,
                                   std::span<const double> flow_w) const {
  auto chosen = chosen_of(plan);
  if (!chosen) return plan;
  exchange(*chosen, deadline_s, flow_w);
  return plan_of(*chosen);
}

// Passes in the order in which exchanges try them. Where not all can be tried, those come first
// whose next faster clock costs least beyond what its time is worth.
std::vector<std::uint32_t> ClockRounder::by_promise(const std::vector<std::uint32_t>& chosen,
                                                    std::span<const double> flow_w) const {
  std::vector<std::uint32_t> sorted = order_;
  const auto passes = static_cast<double>(order_.size());
  if (4.0 * passes * passes * fastest_exchange * exchange_rounds <= exchange_effort) return sorted;
  const auto excess_j = [&](std::uint32_t pass) {
    if (chosen[pass] == 0) return std::numeric_limits<double>::infinity();
    const Choice &now = choices(pass)[chosen[pass]], &then = choices(pass)[chosen[pass] - 1];
    return then.cost_j - now.cost_j - flow_w[pass] * (now.time_s - then.time_s);
  };
  std::ranges::stable_sort(sorted, {}, excess_j);
  return sorted;
}

// Speeds single passes up where the slack that this frees is worth more elsewhere. A second is
// worth the flow through the pass. Where speeding up costs more than most_worth times that, it is
// not tried.
void ClockRounder::exchange(std::vector<std::uint32_t>& chosen, double limit_s,
                            std::span<const double> flow_w) const {
  const double price_w = steepest_w_ / 64.0;  // first to large savings, then to any
  double best_j = chosen_cost_j(chosen);
  std::vector<std::uint32_t> trial;
  double effort_left = exchange_effort;
  for (int round = 0; round < exchange_rounds; ++round) {
    const double before_j = best_j;
    for (const std::uint32_t pass : by_promise(chosen, flow_w)) {
      const std::vector<Choice>& list = choices(pass);
      for (std::uint32_t faster = 1; faster <= fastest_exchange && faster <= chosen[pass];
           ++faster) {
        const Choice &now = list[chosen[pass]], &then = list[chosen[pass] - faster];
        const double worth_j = flow_w[pass] * (now.time_s - then.time_s);
        if (then.cost_j - now.cost_j > most_worth * worth_j) continue;
        effort_left -= 4.0 * static_cast<double>(order_.size());  // two sweeps there and back
        if (effort_left < 0.0) return;
        trial = chosen;
        trial[pass] -= faster;
        spend_slack(trial, limit_s, price_w);
        spend_slack(trial, limit_s, 0.0);
        const double total_j = chosen_cost_j(trial);
        if (total_j >= best_j * (1.0 - least_gain) || end_s(trial) > limit_s) continue;
        best_j = total_j;
        chosen = trial;
        break;
      }
    }
    if (best_j >= before_j) break;
  }
}

}  // namespace rubato
