#include "explorer/fewest_changes.hpp"

#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "explorer/exploration.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

RC_GTEST_PROP(FewestChanges, CostStaysAndOneClockIsTakenWhereItSuitsAll, ()) {
  const auto units = *rc::gen::inRange<std::size_t>(1, 5);
  constexpr std::size_t clocks = 3;
  std::vector<double> time_s, energy_j;
  for (std::size_t i = 0; i < units * clocks; ++i) {  // few values: many equals
    time_s.push_back(1.0 + *rc::gen::inRange(0, 2));
    energy_j.push_back(1.0 + *rc::gen::inRange(0, 2));
  }
  const ProfileTable table(units, clocks, time_s, energy_j);
  std::vector<ClockId> chosen;
  for (std::size_t k = 0; k < units; ++k)
    chosen.push_back(id_at<ClockId>(*rc::gen::inRange<std::size_t>(0, clocks)));
  const std::vector<ClockId> found = with_few_changes(table, chosen, ClockId{0});
  const auto no_worse = [&](std::size_t k, ClockId clock) {
    return table.cost(k, clock).time_s <= table.cost(k, chosen[k]).time_s &&
           table.cost(k, clock).energy_j <= table.cost(k, chosen[k]).energy_j;
  };
  for (std::size_t k = 0; k < units; ++k) RC_ASSERT(no_worse(k, found[k]));
  for (std::size_t c = 0; c < clocks; ++c) {
    bool all = true;
    for (std::size_t k = 0; k < units; ++k) all = all && no_worse(k, id_at<ClockId>(c));
    if (all) RC_ASSERT(std::ranges::count(found, found.front()) == std::ssize(found));
  }
}

// At the power limit every request comes to the same: a plan that saves nothing changes nothing.
TEST(FewestChanges, NothingSavedIsNothingChanged) {
  for (const char* gpu : {"h100-sxm5", "a40", "rtx-3080-ti"}) {
    SCOPED_TRACE(gpu);
    const Exploration found = explore({.trace = load_trace("gpt3-xl"),
                                       .spec = load_gpu_spec(gpu),
                                       .grid = {},
                                       .power_limit_w = {},
                                       .switching = {},
                                       .questions = {{}}});
    const Totals& plan = found.plans.front().sim.total;
    const bool saves = plan.energy_j < found.baseline.total.energy_j * (1.0 - 1e-9);
    EXPECT_EQ(saves, plan.clock_switches > 0U);
  }
}

TEST(FewestChanges, OfEqualClocksTheDefaultOneStays) {
  const ProfileTable table(2, 3, std::vector<double>(6, 1.0), std::vector<double>(6, 1.0));
  const std::vector<ClockId> chosen{ClockId{2}, ClockId{0}}, defaults{ClockId{1}, ClockId{1}};
  EXPECT_EQ(with_few_changes(table, chosen, ClockId{1}), defaults);
}

}  // namespace
}  // namespace rubato
