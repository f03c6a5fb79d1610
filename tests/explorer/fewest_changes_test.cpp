#include "explorer/fewest_changes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "explorer/exploration.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

// Kernels in any order, some in a block that is repeated.
Trace arbitrary_trace(std::size_t kernels) {
  Trace trace;
  for (std::size_t k = 0; k < kernels; ++k) {
    Kernel kernel;
    kernel.name = "k" + std::to_string(k);
    trace.kernels.push_back(kernel);
  }
  const auto block = [&](std::uint32_t repeat) {
    Segment segment{.name = "s", .repeat = repeat, .launches = {}};
    const auto launches = *rc::gen::inRange<std::size_t>(1, 6);
    for (std::size_t i = 0; i < launches; ++i)
      segment.launches.push_back(id_at<KernelId>(*rc::gen::inRange<std::size_t>(0, kernels)));
    return segment;
  };
  trace.segments = {block(1), block(*rc::gen::inRange<std::uint32_t>(1, 4)), block(1)};
  return trace;
}

std::uint64_t counted_one_by_one(const Trace& trace, const std::vector<ClockId>& clocks) {
  const std::vector<KernelId> order = launches(trace.segments);
  std::uint64_t changes = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const KernelId before = order[(i + order.size() - 1) % order.size()];
    if (clocks[index(order[i])] != clocks[index(before)]) ++changes;
  }
  return changes;
}

RC_GTEST_PROP(FewestChanges, CostStaysAndChangesDoNotGrow, ()) {
  const auto kernels = *rc::gen::inRange<std::size_t>(1, 5);
  constexpr std::size_t clocks = 3;
  const Trace trace = arbitrary_trace(kernels);
  const ChoiceUnits units = choice_units(trace, Granularity::kernel);
  std::vector<double> time_s, energy_j;
  for (std::size_t i = 0; i < kernels * clocks; ++i) {  // few values: many equals
    time_s.push_back(1.0 + *rc::gen::inRange(0, 2));
    energy_j.push_back(1.0 + *rc::gen::inRange(0, 2));
  }
  const ProfileTable table(kernels, clocks, time_s, energy_j);
  std::vector<ClockId> chosen;
  for (std::size_t k = 0; k < kernels; ++k)
    chosen.push_back(id_at<ClockId>(*rc::gen::inRange<std::size_t>(0, clocks)));
  const std::vector<ClockId> found = with_few_changes(trace, units, table, chosen, ClockId{0});
  const auto no_worse = [&](std::size_t k, ClockId clock) {
    return table.cost(k, clock).time_s <= table.cost(k, chosen[k]).time_s &&
           table.cost(k, clock).energy_j <= table.cost(k, chosen[k]).energy_j;
  };
  for (std::size_t k = 0; k < kernels; ++k) RC_ASSERT(no_worse(k, found[k]));
  const std::uint64_t changes = counted_one_by_one(trace, found);
  RC_ASSERT(changes == changes_of_clock(trace, units, found));
  RC_ASSERT(changes <= counted_one_by_one(trace, chosen));
  // Where one clock suits all, there is none.
  for (std::size_t c = 0; c < clocks; ++c) {
    bool all = true;
    for (std::size_t k = 0; k < kernels; ++k) all = all && no_worse(k, id_at<ClockId>(c));
    if (all) RC_ASSERT(changes == 0U);
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
  Trace trace;
  trace.kernels.resize(2);
  trace.segments = {{.name = "s", .repeat = 1, .launches = {KernelId{0}, KernelId{1}}}};
  const ProfileTable table(2, 3, std::vector<double>(6, 1.0), std::vector<double>(6, 1.0));
  const std::vector<ClockId> chosen{ClockId{2}, ClockId{0}}, defaults{ClockId{1}, ClockId{1}};
  EXPECT_EQ(
      with_few_changes(trace, choice_units(trace, Granularity::kernel), table, chosen, ClockId{1}),
      defaults);
}

}  // namespace
}  // namespace rubato
