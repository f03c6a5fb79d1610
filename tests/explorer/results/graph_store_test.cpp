#include "explorer/results/capture_rows.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "explorer/exploration.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/made_exploration.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

GraphExploration explored_capture(std::vector<GraphQuestion> questions,
                                  const RunContext& context = {}) {
  GraphExplorationInput input = made_exploration_input({.layers = 3}, std::move(questions));
  input.captures[0].kernels[1].label = "</script><script>alert(1)</script>";
  return explore_captured(input, context);
}

class GraphStore : public testing::Test {
 protected:
  TemporaryFolder folder_;
  GraphRequest request_{{"a.json", "b.json"}, "1593/1410", ClockSource::given, "rubato explore"};

  [[nodiscard]] std::filesystem::path db() const { return folder_ / "r.db"; }
  [[nodiscard]] double number(const std::string& sql) const {
    const SqlValue value = ResultStore::open_read_only(db()).query(sql).rows.at(0).at(0);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    return std::get<double>(value);
  }
};

TEST_F(GraphStore, EverySingleClockAndTheBoundAreKept) {
  const GraphExploration found = explored_capture(
      {{Granularity::run, 0.0}, {Granularity::launch, 0.0}, {Granularity::kernel, 0.1}});
  ASSERT_EQ(store_graph_run(db(), request_, found), 1);
  const ClockGrid& grid = found.planner->grid();
  EXPECT_EQ(number("SELECT count(*) FROM v_clocks"), static_cast<double>(grid.size()));
  for (const UniformRun& run : found.planner->uniform()) {
    const std::string where = " FROM v_clocks WHERE clock = '" + grid.label(run.clock) + "'";
    EXPECT_EQ(number("SELECT time_s" + where), run.span_s);
    EXPECT_EQ(number("SELECT energy_j" + where), run.energy_j);
  }
  EXPECT_EQ(number("SELECT time_s FROM v_clocks WHERE is_default"),
            number("SELECT default_time_s FROM v_runs"));
  // A bound at an earlier time bounds nothing that ends later; one at a later time bounds all.
  EXPECT_GT(number("SELECT count(*) FROM v_front"), 50);
  EXPECT_EQ(number("SELECT count(*) FROM v_front f JOIN v_plans p ON p.planned_time_s <= f.time_s "
                   "WHERE p.planned_energy_j < f.bound_j * (1 - 1e-9)"),
            0);
  EXPECT_EQ(number("SELECT count(*) FROM v_kernel_clocks WHERE ifnull(kernel_key, '') = ''"), 0);
}

// Nothing was proven when the search ended, not even that there is no plan.
TEST_F(GraphStore, StoppedSearchesHaveNoBound) {
  const std::atomic<bool> stop = true;
  const GraphExploration found = explored_capture(
      {{Granularity::run, 0.0}, {Granularity::launch, 0.1}, {Granularity::pass, -0.5}},
      {.cancelled = &stop});
  store_graph_run(db(), request_, found);
  EXPECT_EQ(number("SELECT count(*) FROM v_plans WHERE status = 'time_limit' AND lower_bound_j "
                   "IS NULL AND gap_pct IS NULL"),
            3);
}

TEST_F(GraphStore, OneClockAloneNeedsNoBound) {
  store_graph_run(db(), request_, explored_capture({{Granularity::run, 0.0}}));
  EXPECT_EQ(number("SELECT count(*) FROM v_front"), 0);
  EXPECT_GT(number("SELECT count(*) FROM v_clocks"), 0);
  const std::string page = run_page(ResultStore::open_read_only(db()), 1, db().string());
  EXPECT_NE(page.find("\"bound_change_pct\"],\"rows\":[]"), std::string::npos);
}

// They take less there than alone at any clock.
TEST_F(GraphStore, LaunchesThatReachTheLimitTogetherAreNotBelowTheirBound) {
  GraphExplorationInput input = made_exploration_input({.layers = 3}, {{Granularity::pass, 0.1}});
  input.power_limit_w = 100.0;
  store_graph_run(db(), request_, explore_captured(input));
  EXPECT_GT(number("SELECT count(*) FROM v_front"), 0);
  EXPECT_EQ(number("SELECT count(*) FROM v_plans WHERE lower_bound_j > 0 AND lower_bound_j <= "
                   "energy_j * (1 + 1e-9)"),
            1);
}

TEST_F(GraphStore, TheAnswerOfEachSlack) {
  store_graph_run(
      db(), request_,
      explored_capture(
          {{Granularity::launch, 0.2}, {Granularity::run, 0.0}, {Granularity::kernel, 0.0}}));
  EXPECT_EQ(number("SELECT count(*) FROM v_answer"), 2);
  EXPECT_EQ(number("SELECT slack_pct FROM v_answer WHERE is_headline"), 0);
  for (const double slack_frac : {0.0, 0.2}) {
    const std::string least = fmt::format(
        "SELECT min(energy_j) FROM v_plans WHERE in_time AND applicable AND slack_pct = {}",
        100.0 * slack_frac);
    const std::string answer =
        fmt::format("SELECT energy_j FROM v_answer WHERE slack_pct = {}", 100.0 * slack_frac);
    EXPECT_LE(number(answer),
              number(least) + alike_objective_frac * number("SELECT default_energy_j FROM v_runs"));
    EXPECT_GE(number(answer), number(least));
  }
}

// What traces, captured runs and pipelines have in common is in one view.
TEST_F(GraphStore, AllPlansAreInOneView) {
  store_graph_run(db(), request_,
                  explored_capture({{Granularity::run, 0.0}, {Granularity::kernel, 0.05}}));
  const ExplorationInput input = small_input();
  (void)store_trace(db(), input, explore(input), {"rubato explore", "{}"});
  EXPECT_EQ(number("SELECT count(*) FROM v_plans WHERE kind = 'capture'"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM v_plans WHERE kind = 'trace'"), 5);
  EXPECT_EQ(
      number("SELECT count(*) FROM v_plans WHERE kind = 'capture' AND goal = 'strict_waste' AND "
             "slack_pct = 0"),
      1);
  EXPECT_EQ(
      number("SELECT count(*) FROM v_plans WHERE kind = 'capture' AND goal = 'relaxed_waste'"), 1);
}

// What is stored of a plan is what was found: as planned, as applied, by kernel.
TEST_F(GraphStore, APlanIsKeptAsItWasFound) {
  const GraphExploration found =
      explored_capture({{Granularity::kernel, 0.05}, {Granularity::launch, 0.1}});
  store_graph_run(db(), request_, found);
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const GraphPlanOutcome& plan = found.plans[i];
    const auto of = [&](const std::string& column, const std::string& view = "v_plans") {
      return number(fmt::format("SELECT {} FROM {} WHERE plan_id = {}", column, view, i + 1));
    };
    EXPECT_EQ(of("planned_time_s"), plan.result.run.span_s);
    EXPECT_EQ(of("planned_energy_j"), plan.result.run.total_energy_j);
    EXPECT_EQ(of("lower_bound_j"), plan.result.lower_bound_j);
    EXPECT_NEAR(of("energy_change_pct"), 100.0 * plan.change_as_played().energy_frac, 1e-9);
    EXPECT_NEAR(of("time_change_pct"), 100.0 * plan.change_as_played().time_frac, 1e-9);
    EXPECT_NEAR(of("energy_change_low_pct"),
                100.0 * (plan.interval.low.energy_frac + plan.change_as_played().energy_frac -
                         plan.change.energy_frac),
                1e-9);
    double kernels_j = 0.0;
    for (const double energy_j : plan.result.run.energy_j) kernels_j += energy_j;
    EXPECT_NEAR(of("sum(energy_j)", "v_kernels"), kernels_j, 1e-9 * kernels_j);
    EXPECT_EQ(of("sum(launches)", "v_kernels"), number("SELECT sum(launches) FROM units"));
  }
}

TEST_F(GraphStore, ThePageHoldsEverythingItNeedsAndNamesStayText) {
  store_graph_run(db(), request_,
                  explored_capture({{Granularity::run, 0.0}, {Granularity::kernel, 0.05}}));
  const std::string page = run_page(ResultStore::open_read_only(db()), 1, db().string());
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("/*@"), std::string::npos);
}

bool has(const std::vector<Mark>& marks, MarkKind kind) {
  return std::ranges::find(marks, kind, &Mark::kind) != marks.end();
}

GraphExploration explored_on(const char* gpu, const char* clock, std::optional<double> limit_w,
                             std::optional<SwitchModel> switching) {
  GraphExplorationInput input{
      .captures = {made_step({.layers = 3}, [](std::int64_t ns) { return ns; })},
      .spec = load_gpu_spec(gpu),
      .captured_clock = {},
      .grid = "full",
      .power_limit_w = limit_w,
      .switching = switching,
      .questions = {{Granularity::run},
                    {Granularity::kernel, Aggregation::global, LeastWaste{0.05}}}};
  input.captured_clock = parse_clock_pair(input.spec, clock);
  return explore_captured(input);
}

TEST_F(GraphStore, MarksOfTheDefaultClocksStandBesideEveryPlan) {
  const GraphExploration found = explored_on("a10", "6251/1695", 60.0, {});
  EXPECT_TRUE(has(found.baseline_marks, MarkKind::limit_not_reached));
  for (const GraphPlanOutcome& plan : found.plans)
    EXPECT_TRUE(has(plan.marks, MarkKind::limit_not_reached));
  store_graph_run(db(), request_, found);
  EXPECT_EQ(number("SELECT count(*) FROM v_caveats WHERE plan_id IS NULL"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM v_plans WHERE caveats LIKE '%limit not reached%'"), 2);
  const std::string page = run_page(ResultStore::open_read_only(db()), 1, db().string());
  EXPECT_NE(page.find("more than the limit of 60 W"), std::string::npos);

  const GraphExploration usual = explored_on("a40", "7251/1740", {}, {});
  EXPECT_TRUE(usual.baseline_marks.empty());
  EXPECT_FALSE(has(usual.plans.at(0).marks, MarkKind::limit_not_reached));
}

TEST_F(GraphStore, PlansThatIgnoreChangesOfClockSaySo) {
  SwitchModel slow;
  slow.core.stall_s = 0.01;
  const GraphExploration found = explored_on("a100-sxm4-80gb", "1593/1410", {}, slow);
  const GraphPlanOutcome& one = found.plans.at(0);
  const GraphPlanOutcome& kernel = found.plans.at(1);
  EXPECT_FALSE(has(one.marks, MarkKind::changes_ignored));
  ASSERT_GT(changes_per_s(kernel.result), 0.0);
  EXPECT_TRUE(has(kernel.marks, MarkKind::changes_ignored));
  // Stalls of 10 ms in a step of less than that.
  ASSERT_TRUE(kernel.counted.has_value());
  EXPECT_FALSE(kernel.counted->in_time);
  EXPECT_TRUE(has(kernel.marks, MarkKind::slack_missed));

  const GraphExploration free = explored_on("a100-sxm4-80gb", "1593/1410", {}, SwitchModel{});
  EXPECT_FALSE(has(free.plans.at(1).marks, MarkKind::changes_ignored));
  EXPECT_FALSE(has(free.plans.at(1).marks, MarkKind::slack_missed));
}

}  // namespace
}  // namespace rubato
