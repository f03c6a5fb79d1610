// Do intervals hold what was published of plans that no fit has seen?

#include <gtest/gtest.h>

#include "explorer/confidence/confidence.hpp"
#include "explorer/exploration.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

struct PublishedPlan {
  Granularity granularity;
  Aggregation aggregation;
  Goal goal;
  double time_pct, energy_pct;
};

// Spaan et al., arXiv 2601.08539, Table 2. The fit without Table 1 has seen kernels at their
// extremes and the forward pass, no plan. It holds all times, and the energies of plans of kernels;
// those of passes contradict the kernels they consist of (docs/models.md, section 5).
TEST(PublishedPlans, LieInTheIntervalsOfAFitThatHasNotSeenThem) {
  using enum Granularity;
  using enum Aggregation;
  const LeastWaste strict{0.0, 0.0};
  for (const PublishedPlan& published : {PublishedPlan{kernel, local, LeastEdp{}, 10.03, -27.34},
                                         {kernel, global, LeastEdp{}, 10.28, -27.52},
                                         {kernel, local, strict, -1.78, -11.54},
                                         {kernel, global, strict, 0.0, -15.64},
                                         {pass, local, LeastEdp{}, 10.21, -25.42},
                                         {pass, local, strict, -0.20, -1.98},
                                         {pass, global, strict, -0.10, -2.07}}) {
    SCOPED_TRACE(published.energy_pct);
    const Exploration found =
        explore({.trace = load_trace("gpt3-xl"),
                 .spec = load_gpu_spec("rtx-3080-ti-without-table1"),
                 .grid = "paper",
                 .power_limit_w = {},
                 .switching = {},
                 .questions = {{published.granularity, published.aggregation, published.goal}}});
    const SavingInterval& interval = found.plans.front().interval.value();
    EXPECT_LE(interval.time.low_pct, published.time_pct);
    EXPECT_GE(interval.time.high_pct, published.time_pct);
    if (published.granularity == kernel) {
      EXPECT_LE(interval.energy.low_pct, published.energy_pct);
      EXPECT_GE(interval.energy.high_pct, published.energy_pct);
    }
    // Not because they hold everything.
    constexpr double widest_pct = 6.0;
    EXPECT_LT(interval.time.high_pct - interval.time.low_pct, widest_pct);
    EXPECT_LT(interval.energy.high_pct - interval.energy.low_pct, widest_pct);
  }
}

}  // namespace
}  // namespace rubato
