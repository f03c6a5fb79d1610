// Steps that are unlike the others are found, and taken out as if they had not been.

#include "traces/odd_steps.hpp"

#include <gtest/gtest.h>

#include "tests/made_run.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {
namespace {

// Steps of a kernel and a wait for it; the host then works for as long as asked.
Capture run_of(const std::vector<std::int64_t>& pauses_ns) {
  MadeRun run(1);
  for (const std::int64_t pause_ns : pauses_ns) {
    run.begin_step();
    run.launch(0, run.kernel("a"), 10'000'000);
    run.sync_device();
    run.spend(pause_ns);
    run.end_step();
  }
  Capture capture = std::move(run).finish();
  capture.step_source = StepSource::annotation;
  return capture;
}

TEST(OddSteps, AreTakenOutAsIfTheyHadNotBeen) {
  constexpr std::int64_t usual_ns = 1'000'000, stall_ns = 100'000'000;
  const Capture whole = run_of({usual_ns, usual_ns, usual_ns, usual_ns});
  for (std::size_t at = 0; at < 5; ++at) {
    std::vector<std::int64_t> pauses_ns(5, usual_ns);
    pauses_ns[at] = stall_ns;
    const Capture stalled = run_of(pauses_ns);
    const std::vector<OddStep> odd = odd_steps(stalled);
    ASSERT_EQ(odd.size(), 1U) << at;
    EXPECT_EQ(odd.front().position, at);
    EXPECT_NEAR(odd.front().over_median, 10.0, 0.1);
    const std::optional<Capture> kept = without_step(stalled, odd.front().position);
    ASSERT_TRUE(kept) << at;
    EXPECT_EQ(kept->steps.size(), 4U);
    EXPECT_EQ(kept->launches.size(), 4U);
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(kept->launches[i].step, i);
    EXPECT_NEAR(capture_graph(*kept).graph.captured_span_s(),
                capture_graph(whole).graph.captured_span_s(), 1e-9)
        << at;
    EXPECT_EQ(odd_steps(*kept).size(), 0U);
  }
}

TEST(OddSteps, AreNoneWhereStepsDifferOrAreFew) {
  EXPECT_EQ(odd_steps(run_of({1, 1, 60'000'000})).size(), 0U);
  EXPECT_EQ(odd_steps(run_of({1, 1, 1, 1})).size(), 0U);
  EXPECT_EQ(odd_steps(run_of({1, 60'000'000, 1, 60'000'000})).size(), 0U);
}

// A GPU that is still at work for the step before cannot be parted from it.
TEST(OddSteps, StayWhereWorkReachesOverTheirEnds) {
  MadeRun run(1);
  for (int step = 0; step < 5; ++step) {
    run.begin_step();
    run.launch(0, run.kernel("a"), 10'000'000);
    run.spend(step == 2 ? 30'000'000 : 3'000'000);
    run.end_step();
  }
  const Capture capture = std::move(run).finish();
  EXPECT_FALSE(without_step(capture, 2));
}

}  // namespace
}  // namespace rubato
