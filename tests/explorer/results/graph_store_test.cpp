#include "explorer/results/graph_store.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "explorer/exploration.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/results/store.hpp"
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
      {{GraphGrain::iteration, 0.0}, {GraphGrain::launch, 0.0}, {GraphGrain::kernel, 0.1}});
  ASSERT_EQ(store_graph_run(db(), request_, found), 1);
  const ClockGrid& grid = found.planner->grid();
  EXPECT_EQ(number("SELECT count(*) FROM graph_clocks"), static_cast<double>(grid.size()));
  for (const UniformRun& run : found.planner->uniform()) {
    const std::string where = " FROM graph_clocks WHERE clock = '" + grid.label(run.clock) + "'";
    EXPECT_EQ(number("SELECT time_s" + where), run.span_s);
    EXPECT_EQ(number("SELECT energy_j" + where), run.energy_j);
  }
  EXPECT_EQ(number("SELECT time_s FROM graph_clocks WHERE is_default"),
            number("SELECT default_s FROM graph_runs"));
  // A bound at an earlier time bounds nothing that ends later; one at a later time bounds all.
  EXPECT_GT(number("SELECT count(*) FROM graph_front"), 50);
  EXPECT_EQ(number("SELECT count(*) FROM graph_front f JOIN graph_plans p ON p.time_s <= f.time_s "
                   "WHERE p.energy_j < f.bound_j * (1 - 1e-9)"),
            0);
  EXPECT_EQ(number("SELECT count(*) FROM graph_plan_clocks WHERE kernel_key = ''"), 0);
}

// Nothing was proven when the search ended, not even that there is no plan.
TEST_F(GraphStore, StoppedSearchesHaveNoBound) {
  const std::atomic<bool> stop = true;
  const GraphExploration found = explored_capture(
      {{GraphGrain::iteration, 0.0}, {GraphGrain::launch, 0.1}, {GraphGrain::pass, -0.5}},
      {.cancelled = &stop});
  store_graph_run(db(), request_, found);
  EXPECT_EQ(number("SELECT count(*) FROM graph_plans WHERE status = 'time_limit' AND lower_bound_j "
                   "IS NULL AND gap_frac IS NULL"),
            3);
}

TEST_F(GraphStore, OneClockAloneNeedsNoBound) {
  store_graph_run(db(), request_, explored_capture({{GraphGrain::iteration, 0.0}}));
  EXPECT_EQ(number("SELECT count(*) FROM graph_front"), 0);
  EXPECT_GT(number("SELECT count(*) FROM graph_clocks"), 0);
  const std::string page = captured_page(ResultStore::open_read_only(db()), 1, db().string());
  EXPECT_NE(page.find("\"front\":[]"), std::string::npos);
}

// They take less there than alone at any clock: only bounds that know that are kept.
TEST_F(GraphStore, LaunchesThatReachTheLimitTogetherHaveNoBoundAlone) {
  GraphExplorationInput input = made_exploration_input({.layers = 3}, {{GraphGrain::pass, 0.1}});
  input.power_limit_w = 100.0;
  const GraphExploration found = explore_captured(input);
  ASSERT_TRUE(found.planner->limited_together());
  store_graph_run(db(), request_, found);
  EXPECT_EQ(number("SELECT count(*) FROM graph_front"), 0);
  EXPECT_EQ(number("SELECT count(*) FROM graph_plans WHERE lower_bound_j > 0"), 1);
}

TEST_F(GraphStore, TheAnswerOfEachSlack) {
  store_graph_run(
      db(), request_,
      explored_capture(
          {{GraphGrain::launch, 0.2}, {GraphGrain::iteration, 0.0}, {GraphGrain::kernel, 0.0}}));
  EXPECT_EQ(number("SELECT count(*) FROM v_answer"), 2);
  EXPECT_EQ(number("SELECT slack_pct FROM v_answer WHERE is_headline"), 0);
  for (const double slack_frac : {0.0, 0.2}) {
    const std::string least = fmt::format(
        "SELECT min(energy_j) FROM v_plans WHERE in_time AND applicable AND slack_pct = {}",
        100.0 * slack_frac);
    const std::string answer =
        fmt::format("SELECT energy_j FROM v_answer WHERE slack_pct = {}", 100.0 * slack_frac);
    EXPECT_LE(number(answer),
              number(least) + alike_objective_frac * number("SELECT default_j FROM graph_runs"));
    EXPECT_GE(number(answer), number(least));
  }
}

// What traces, captured runs and pipelines have in common is in one view.
TEST_F(GraphStore, AllPlansAreInOneView) {
  store_graph_run(db(), request_,
                  explored_capture({{GraphGrain::iteration, 0.0}, {GraphGrain::kernel, 0.05}}));
  const ExplorationInput input = small_input();
  (void)ResultStore::open(db()).add(input, explore(input), {"rubato explore", "{}"});
  EXPECT_EQ(number("SELECT count(*) FROM v_plans WHERE kind = 'capture'"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM v_plans WHERE kind = 'trace'"),
            number("SELECT count(*) FROM plans WHERE goal <> 'default'"));
  EXPECT_EQ(
      number("SELECT count(*) FROM v_graph_plans WHERE goal = 'strict_waste' AND slack_pct = 0"),
      1);
  EXPECT_EQ(number("SELECT count(*) FROM v_graph_plans WHERE goal = 'relaxed_waste'"), 1);
  for (const auto& [own, key, kind] : {std::tuple("v_trace_plans", "plan_id", "trace"),
                                       std::tuple("v_graph_plans", "graph_plan_id", "capture")}) {
    EXPECT_EQ(number(fmt::format("SELECT count(*) FROM v_plans a JOIN {} v ON v.{} = a.plan_id "
                                 "WHERE a.kind = '{}' AND a.planned_energy_change_pct IS "
                                 "v.energy_change_pct AND a.slack_pct IS v.slack_pct AND a.goal = "
                                 "v.goal AND a.energy_change_pct IS ifnull("
                                 "v.counted_energy_change_pct, v.energy_change_pct)",
                                 own, key, kind)),
              number(fmt::format("SELECT count(*) FROM v_plans WHERE kind = '{}'", kind)));
  }
}

TEST_F(GraphStore, ThePageHoldsEverythingItNeedsAndNamesStayText) {
  store_graph_run(db(), request_,
                  explored_capture({{GraphGrain::iteration, 0.0}, {GraphGrain::kernel, 0.05}}));
  const std::string page = captured_page(ResultStore::open_read_only(db()), 1, db().string());
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
      .questions = {{GraphGrain::iteration, 0.0}, {GraphGrain::kernel, 0.05}}};
  input.captured_clock = parse_clock_pair(input.spec, clock);
  return explore_captured(input);
}

TEST_F(GraphStore, MarksOfTheDefaultClocksStandBesideEveryPlan) {
  const GraphExploration found = explored_on("a40", "7251/1740", 100.0, {});
  EXPECT_TRUE(has(found.baseline_marks, MarkKind::limit_not_reached));
  EXPECT_TRUE(has(found.baseline_marks, MarkKind::clocks_not_fitted));
  for (const GraphPlanOutcome& plan : found.plans)
    EXPECT_TRUE(has(plan.marks, MarkKind::limit_not_reached));
  store_graph_run(db(), request_, found);
  EXPECT_EQ(number("SELECT count(*) FROM graph_run_marks"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM v_graph_plans WHERE notes LIKE '%limit not reached%'"), 2);
  const std::string page = captured_page(ResultStore::open_read_only(db()), 1, db().string());
  EXPECT_NE(page.find("more than the limit of 100 W"), std::string::npos);

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
