#include "explorer/transfer.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "explorer/results/capture_rows.hpp"
#include "tests/expect_error.hpp"
#include "tests/made_exploration.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

class CapturedTransfers : public ::testing::Test {
 protected:
  // Plans 1, 2, ...
  GraphExploration stored(std::vector<GraphQuestion> questions, const MadeStep& step = run) {
    GraphExploration found = explore_captured(made_exploration_input(step, std::move(questions)));
    store_graph_run(db(), {{"a.json"}, "1593/1410", ClockSource::given, "rubato explore"}, found);
    return found;
  }
  [[nodiscard]] Transfer played(std::int64_t plan_id, const MadeStep& step = run) const {
    const ResultStore store = ResultStore::open_read_only(db());
    return transfer(store, load_graph_plan(store, plan_id), made_exploration_input(step, {}));
  }
  [[nodiscard]] std::filesystem::path db() const { return folder_ / "r.db"; }

  static constexpr MadeStep run{.layers = 4};
  TemporaryFolder folder_;
};

TEST_F(CapturedTransfers, OnItsOwnCaptureAPlanIsWhatItWas) {
  const GraphExploration found =
      stored({{Granularity::run, 0.02}, {Granularity::pass, 0.02}, {Granularity::launch, 0.02}});
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const GraphRun& plan = found.plans[i].result.run;
    const Transfer same = played(static_cast<std::int64_t>(i) + 1);
    // Launches that begin with a change of clock may fall on either side of it.
    const double rounding =
        found.plans[i].result.question.grain == Granularity::launch ? 5e-3 : 1e-9;
    EXPECT_NEAR(same.transferred.time_s / plan.span_s, 1.0, rounding);
    EXPECT_NEAR(same.transferred.energy_j / plan.total_energy_j, 1.0, rounding);
    EXPECT_NEAR(same.baseline.energy_j, found.planner->baseline().total_energy_j, 1e-12);
    EXPECT_DOUBLE_EQ(same.known_frac, 1.0);
    ASSERT_TRUE(same.own);
  }
}

// Steps share clocks, so that the one that is played is what was planned for all.
TEST_F(CapturedTransfers, OneStepIsPlayedForAll) {
  constexpr MadeStep steps{.steps = 4, .layers = 4};
  const GraphExploration found =
      stored({{Granularity::kernel, 0.02}, {Granularity::launch, 0.02}}, steps);
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const GraphRun& plan = found.plans[i].result.run;
    const Transfer same = played(static_cast<std::int64_t>(i) + 1, steps);
    EXPECT_NEAR(same.transferred.time_s / plan.span_s, 1.0, 5e-3);
    EXPECT_NEAR(same.transferred.energy_j / plan.total_energy_j, 1.0, 5e-3);
  }
}

TEST_F(CapturedTransfers, ElsewhereNoPlanOfItsGranularityDoesBetterInTime) {
  const GraphExploration found = stored({{Granularity::run, 0.05}, {Granularity::pass, 0.05}});
  for (const std::int64_t plan : {1, 2}) {
    const Transfer other = played(plan, {.layers = 9});
    ASSERT_TRUE(other.own);
    EXPECT_DOUBLE_EQ(*other.deadline_s, 1.05 * other.baseline.time_s);
    EXPECT_LE(other.own->time_s, *other.deadline_s * (1 + 1e-9));
    EXPECT_LT(other.transferred.energy_j, other.baseline.energy_j);
    if (other.in_time()) {
      EXPECT_GE(*other.regret_points(), -1e-7);
    }
  }
}

TEST_F(CapturedTransfers, APassThatThePlanLacksKeepsTheClock) {
  const GraphExploration found = stored({{Granularity::run, 0.02}});
  open_result_database(db()).execute("UPDATE plan_segments SET pass = 'other'");
  const Transfer lost = played(1);
  EXPECT_EQ(lost.known_frac, 0.0);
  EXPECT_EQ(lost.clock_changes, 0U);
  EXPECT_NEAR(lost.transferred.energy_j, lost.baseline.energy_j, 1e-9 * lost.baseline.energy_j);
}

TEST_F(CapturedTransfers, SaysWhichPlanIsMissing) {
  stored({{Granularity::run, 0.02}});
  expect_error<UsageError>([&] { (void)played(7); }, "there is no plan 7 of a captured run");
  open_result_database(db()).execute("UPDATE plans SET time_s = NULL");
  expect_error<UsageError>([&] { (void)played(1); }, "has no clocks");
}

}  // namespace
}  // namespace rubato
