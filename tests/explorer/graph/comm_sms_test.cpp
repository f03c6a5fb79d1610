// Plans that may put collectives on other SMs, against all there are.

#include "sim/graph/comm_sms.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "explorer/graph/plan_interval.hpp"
#include "explorer/results/capture_rows.hpp"
#include "explorer/results/plan_file.hpp"
#include "explorer/transfer.hpp"
#include "tests/expect_error.hpp"
#include "tests/made_exploration.hpp"
#include "tests/small_graph.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

constexpr double worth_it = 1e-4;  // collectives are not moved for less

// Data-parallel training whose collectives of 16 SMs send `bytes` each beside backward passes.
GraphExplorationInput overlapped(const MadeStep& step, std::uint64_t bytes,
                                 std::vector<GraphQuestion> questions) {
  GraphExplorationInput input = made_exploration_input(step, std::move(questions));
  Capture& capture = input.captures.front();
  capture.groups = {{"0", "default_pg", 2, {}}};
  for (CapturedLaunch& launch : capture.launches) {
    if (capture.kernels[index(launch.kernel)].kind != KernelClass::communication) continue;
    launch.collective = static_cast<std::uint32_t>(capture.collectives.size());
    capture.collectives.push_back(
        {.kind = CollectiveKind::all_reduce, .group = 0, .in_bytes = bytes});
  }
  input.grid = "mem=1593 core=1320,1410";
  return input;
}

// All plans of a number of SMs: one clock for all, or one for each launch.
struct Least {
  double one_clock_j = std::numeric_limits<double>::infinity(), per_launch_j = one_clock_j;

  void add(const GraphModel& model, const ClockGrid& grid, double deadline_s) {
    GraphSimulator simulator(model, grid);
    const ExecutionGraph& graph = model.graph();
    std::vector<std::size_t> clocked;
    for (std::size_t i = 0; i < graph.size(); ++i) {
      if (model.work()[i] > 0.0) clocked.push_back(i);
    }
    GraphPlan plan = uniform_plan(graph, ClockId{0});
    std::vector<std::size_t> clock(clocked.size(), 0);
    for (std::size_t digit = 0; digit < clocked.size();) {
      const GraphRun run = simulator.run(plan);
      if (run.span_s <= deadline_s * (1.0 + rounding)) {
        per_launch_j = std::min(per_launch_j, run.total_energy_j);
        if (std::ranges::count(clock, clock.front()) == static_cast<std::ptrdiff_t>(clock.size()))
          one_clock_j = std::min(one_clock_j, run.total_energy_j);
      }
      for (digit = 0; digit < clocked.size() && ++clock[digit] == grid.size(); ++digit)
        clock[digit] = 0;
      for (std::size_t k = 0; k < clocked.size(); ++k)
        plan.clock_of_activity[clocked[k]] = id_at<ClockId>(clock[k]);
    }
  }
};

TEST(CommSmsPlans, AgreeWithAllThereAre) {
  constexpr MadeStep small{
      .layers = 2, .launches_per_layer = 1, .kernel_ns = 400'000, .collective_ns = 390'000};
  int moved = 0;
  for (const std::uint64_t bytes : {200'000ULL, 1'000'000ULL, 9'000'000ULL}) {
    for (const double slack : {0.0, 0.01, 0.03}) {
      GraphExplorationInput input =
          overlapped(small, bytes, {{Granularity::run, slack}, {Granularity::launch, slack}});
      const GraphExploration without = explore_captured(input);
      input.comm_sms = {2.0, 8.0, 16.0};
      const GraphExploration found = explore_captured(input);
      const double deadline_s = without.planner->baseline().span_s * (1.0 + slack);
      Least least;
      least.add(*found.model, found.planner->grid(), deadline_s);
      for (const CommSmsChoice& choice : found.comm_sms)
        least.add(*choice.model, found.planner->grid(), deadline_s);
      const double one_clock_j = found.plans[0].result.run.total_energy_j,
                   per_launch_j = found.plans[1].result.run.total_energy_j;
      EXPECT_GE(one_clock_j, least.one_clock_j * (1.0 - rounding));
      EXPECT_LE(one_clock_j, least.one_clock_j * (1.0 + worth_it));
      EXPECT_EQ(found.plans[0].result.gap_frac, 0.0);
      EXPECT_GE(per_launch_j, least.per_launch_j * (1.0 - rounding));
      EXPECT_LE(per_launch_j, least.per_launch_j * 1.001);  // a heuristic, but few launches
      for (std::size_t q = 0; q < 2; ++q) {
        const GraphPlanOutcome& with = found.plans[q];
        EXPECT_LE(with.result.run.total_energy_j, without.plans[q].result.run.total_energy_j);
        EXPECT_LE(with.result.run.span_s, deadline_s * (1.0 + rounding));
        EXPECT_NEAR(with.result.deadline_s, deadline_s, rounding * deadline_s);
        // The numbers are those of the plan on its own SMs.
        const GraphRun again =
            GraphSimulator(found.model_of(with), found.planner->grid()).run(with.result.plan);
        EXPECT_EQ(again.total_energy_j, with.result.run.total_energy_j);
        EXPECT_NEAR(with.change.energy_frac,
                    again.total_energy_j / without.planner->baseline().total_energy_j - 1.0, 1e-12);
        moved += with.comm_sms.has_value();
      }
    }
  }
  EXPECT_GT(moved, 4);  // else nothing was chosen here
}

// As they are played, too.
TEST(CommSmsPlans, AutomaticOnesAreNeverWorseThanWithout) {
  constexpr MadeStep steps{.steps = 3, .layers = 3, .kernel_ns = 300'000};
  GraphExplorationInput input =
      overlapped(steps, 1'000'000, {{Granularity::run, 0.02}, {Granularity::segment, 0.02}});
  input.switching.emplace().core = {.stall_s = 2e-5, .lead_s = 1e-4};
  const GraphExploration without = explore_captured(input);
  input.comm_sms.emplace();
  const GraphExploration found = explore_captured(input);
  EXPECT_EQ(found.comm_sms.size(), 6U);  // 1 to 32
  const GraphPlanOutcome &with = found.plans[1], &before = without.plans[1];
  ASSERT_TRUE(with.counted && before.counted);
  EXPECT_TRUE(with.counted->in_time);
  EXPECT_LE(with.counted->change.energy_frac, before.counted->change.energy_frac);
  EXPECT_LE(with.result.lower_bound_j, with.result.run.total_energy_j);
}

TEST(CommSmsPlans, NeedACollectiveBesideComputeAndSmsThatThereAre) {
  GraphExplorationInput input = overlapped({.layers = 2}, 1'000'000, {{Granularity::run, 0.0}});
  input.comm_sms = {200.0};
  expect_error<UsageError>([&] { (void)explore_captured(input); },
                           "a collective on 200 SMs: a100-sxm4-80gb has 108; expected 1 to 107");
  for (Kernel& kernel : input.captures.front().kernels) kernel.kind = KernelClass::gemm;
  expect_error<UsageError>([&] { (void)explore_captured(input); },
                           "no collective runs beside compute here");
}

// The number goes with the plan: to the database, to its file, to other captures.
TEST(CommSmsPlans, AreKeptWithTheirSms) {
  constexpr MadeStep step{
      .layers = 2, .launches_per_layer = 1, .kernel_ns = 400'000, .collective_ns = 390'000};
  GraphExplorationInput input =
      overlapped(step, 200'000, {{Granularity::run, 0.0}, {Granularity::pass, 0.0}});
  input.comm_sms = {8.0};
  const GraphExploration found = explore_captured(input);
  ASSERT_EQ(found.plans[0].comm_sms, 8.0);
  const TemporaryFolder folder;
  const std::filesystem::path db = folder / "r.db";
  store_graph_run(db, {{"a.json"}, "1593/1410", ClockSource::given, "rubato explore"}, found);
  const ResultStore store = ResultStore::open_read_only(db);
  EXPECT_EQ(
      std::get<double>(store.query("SELECT comm_sms FROM v_plans ORDER BY 1 DESC").rows[0][0]),
      8.0);
  const auto file = plan_file(store, {.run = "latest", .granularity = "run"});
  EXPECT_EQ(file.plans.front().comm_sms, 8.0);
  const StoredGraphPlan plan = load_graph_plan(store, 1);
  EXPECT_EQ(plan.comm_sms, 8.0);
  const Transfer same = transfer(store, plan, overlapped(step, 200'000, {}));
  EXPECT_NEAR(same.transferred.energy_j, found.plans[0].result.run.total_energy_j, 1e-9);
  EXPECT_TRUE(same.notes.empty());
  // Where none runs beside compute, the clocks are played and the SMs are not.
  constexpr MadeStep no_collectives{.layers = 2, .launches_per_layer = 1, .kernel_ns = 400'000};
  GraphExplorationInput alone = made_exploration_input(no_collectives, {});
  for (Kernel& kernel : alone.captures.front().kernels) kernel.kind = KernelClass::gemm;
  const Transfer other = transfer(store, plan, alone);
  ASSERT_EQ(other.notes.size(), 1U);
  EXPECT_NE(other.notes[0].find("on 8 SMs; none runs beside compute here"), std::string::npos);
  EXPECT_GT(other.transferred.energy_j, 0.0);
}

// Clocks lower than the captured one draw out what fewer SMs add: intervals are drawn around that.
TEST(CommSmsPlans, IntervalsAreDrawnOnTheirSms) {
  constexpr MadeStep step{
      .layers = 2, .launches_per_layer = 1, .kernel_ns = 100'000, .collective_ns = 390'000};
  const GraphExplorationInput input = overlapped(step, 9'000'000, {});
  const CaptureGraph run = capture_graph(input.captures);
  const GraphModel model(run.graph, input.spec, input.captured_clock);
  const GraphModel moved =
      model.with_comm_sms(overlapping_collectives(run, input.captures, input.spec.sm_count), 2.0);
  const ClockGrid grid = make_clock_grid(input.spec, "mem=1593 core=705,1410");
  GraphSimulator simulator(moved, grid);
  const GraphRun baseline =
      GraphSimulator(model, grid).run(uniform_plan(run.graph, grid.default_clock()));
  const GraphPlan low = uniform_plan(run.graph, *grid.find("1593/705"));
  const GraphRun planned = simulator.run(low);
  ASSERT_GT(planned.span_s, 3.0 * baseline.span_s);  // collectives are most of it
  const GraphPlanInterval interval =
      GraphPlanIntervals(moved, model, grid, baseline).of(low, planned);
  const double change = planned.span_s / baseline.span_s - 1.0;
  // Drawn as captured, whose time follows no clock, it would reach down to less than half.
  EXPECT_GT(interval.low.time_frac, 0.7 * change);
  EXPECT_LT(interval.high.time_frac, 1.3 * change);
}

}  // namespace
}  // namespace rubato
