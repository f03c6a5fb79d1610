// The rest of the node in totals, plans, intervals and plan files, against sums by hand.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "explorer/exploration.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/plan_file.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/made_exploration.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

constexpr double host_w = 250.0;

ExplorationInput input_of(double host_power_w, std::vector<Question> questions) {
  ExplorationInput input = small_input();
  input.questions = std::move(questions);
  input.host_power_w = host_power_w;
  return input;
}

Question ask(Granularity granularity, const Goal& goal) {
  return {granularity, Aggregation::global, goal};
}

double find_host_power(const std::vector<Mark>& marks) {
  double host_power_w = 0.0;
  for (const Mark& mark : marks) host_power_w += host_power_w_of(name_of(mark.kind), mark.reason);
  return host_power_w;
}

// One clock for all: every clock's sums, by hand.
TEST(HostPower, OneClockIsTheBestOfAllSums) {
  const Prices prices{.per_kwh = 0.12, .per_gpu_hour = 0.05, .pue = 1.2};
  const Exploration found = explore(input_of(
      host_w, {ask(Granularity::run, LeastEnergy{}), ask(Granularity::run, LeastCost{prices})}));
  const Trace trace = small_input().trace;
  const auto counts = launch_counts(trace);
  double least_j = std::numeric_limits<double>::infinity(), least_cost = least_j;
  for (std::size_t c = 0; c < found.grid.size(); ++c) {
    double time_s = 0.0, energy_j = 0.0;
    for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
      const OperatingPoint& cell = found.cells[k * found.grid.size() + c];
      time_s += static_cast<double>(counts[k]) * cell.time_s;
      energy_j += static_cast<double>(counts[k]) * cell.energy_j;
    }
    const double node_j = energy_j + host_w * time_s;
    least_j = std::min(least_j, node_j);
    least_cost = std::min(least_cost, 0.12 * 1.2 * node_j / 3.6e6 + 0.05 * time_s / 3600.0);
  }
  EXPECT_NEAR(found.plans[0].sim.total.energy_j / least_j, 1.0, 1e-12);
  const Totals& cheapest = found.plans[1].sim.total;
  EXPECT_NEAR(prices.of(cheapest.time_s, cheapest.energy_j) / least_cost, 1.0, 1e-12);
  EXPECT_NEAR(found.plans[1].objective / least_cost, 1.0, 1e-12);
}

// The same clocks with and without it: every total differs by its power times its time.
TEST(HostPower, EveryTotalHasItForItsTime) {
  const std::vector<Question> questions{ask(Granularity::run, LeastWaste{.slack_frac = 0.5})};
  ExplorationInput with_stalls = input_of(host_w, questions);
  with_stalls.grid = "mem=5001 core=1470";  // beside the default clocks: the same choice
  with_stalls.switching.core.stall_s = 1e-3;
  const Exploration with = explore(with_stalls);
  with_stalls.host_power_w = 0.0;
  const Exploration without = explore(with_stalls);
  const auto expect_added = [](const Totals& node, const Totals& board) {
    EXPECT_EQ(node.time_s, board.time_s);
    EXPECT_NEAR(node.energy_j, board.energy_j + host_w * board.time_s, 1e-9 * node.energy_j);
  };
  expect_added(with.baseline.total, without.baseline.total);
  ASSERT_NE(without.plans[0].sim.total.time_s, without.baseline.total.time_s);
  for (std::size_t q = 0; q < questions.size(); ++q) {
    const SimResult &node = with.plans[q].sim, &board = without.plans[q].sim;
    expect_added(node.total, board.total);
    double sum_j = node.switching.energy_j;
    for (std::size_t k = 0; k < node.by_kernel.size(); ++k) {
      expect_added(node.by_kernel[k], board.by_kernel[k]);
      sum_j += node.by_kernel[k].energy_j;
    }
    EXPECT_NEAR(sum_j / node.total.energy_j, 1.0, 1e-9);
    // As sure of the time, and of a part of the energy that is known.
    EXPECT_EQ(with.plans[q].interval->time.low_pct, without.plans[q].interval->time.low_pct);
    // Its change is a mean of the board's change of energy and that of time, in every draw.
    const SavingInterval &of_node = *with.plans[q].interval, &of_board = *without.plans[q].interval;
    constexpr double margin_points = 0.5;  // quantiles of a mean, not means of quantiles
    EXPECT_GE(of_node.energy.low_pct,
              std::min(of_board.energy.low_pct, of_board.time.low_pct) - margin_points);
    EXPECT_LE(of_node.energy.high_pct,
              std::max(of_board.energy.high_pct, of_board.time.high_pct) + margin_points);
    EXPECT_LT(of_node.energy.low_pct, of_node.energy.high_pct);
  }
  EXPECT_EQ(with.cells[0].energy_j, without.cells[0].energy_j);
}

// 'segment' plans with it too: the search's claim is what the simulator finds.
TEST(HostPower, AutomaticPlansCountIt) {
  ExplorationInput input = input_of(host_w, {ask(Granularity::segment, LeastWaste{})});
  input.switching.core.stall_s = 1e-4;
  const Exploration found = explore(input);
  EXPECT_NEAR(found.plans[0].sim.total.energy_j / found.plans[0].objective, 1.0, 1e-9);
}

// A counter on the board sees none of it: plan files promise the board's change.
TEST(HostPower, PlanFilesPromiseWhatTheBoardTakes) {
  const TemporaryFolder folder;
  const std::vector<Question> questions{ask(Granularity::run, LeastWaste{.slack_frac = 0.5})};
  for (const double power_w : {0.0, host_w}) {
    ExplorationInput input = input_of(power_w, questions);
    input.grid =
        "mem=5001 core=1470";  // beside the default clocks: the same choice with and without
    store_trace(folder / "r.db", input, explore(input), {"explore", "{}"});
  }
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  EXPECT_EQ(stored_host_power_w(store, 1), 0.0);
  EXPECT_EQ(stored_host_power_w(store, 2), host_w);
  const auto file_of = [&](const std::string& run) {
    PlanFileRequest request;
    request.run = run;
    return plan_file(store, request);
  };
  const auto board = file_of("1"), node = file_of("2");
  const auto promised = [](const auto& file) {
    return file.plans.front().promise.energy.value_pct;
  };
  EXPECT_NE(promised(board), 0.0);
  EXPECT_NEAR(promised(node), promised(board), 1e-10);
  EXPECT_EQ(node.run.host_power_w, host_w);
  EXPECT_NEAR(node.run.default_energy_j, board.run.default_energy_j, 1e-9);
  const auto segments_j = [](const PlanFile& file) {
    double sum_j = 0.0;
    for (const PlanFileSegment& one : file.plans.front().gpus.front().segments)
      sum_j += one.energy_j;
    return sum_j;
  };
  EXPECT_NEAR(segments_j(node), segments_j(board), 1e-9);
}

// Captured runs: where a node draws far more than its GPUs, energy is time, for plans, their
// intervals and what the search with changes of clock claims.
TEST(HostPower, OfHugeNodesEnergyIsTime) {
  const SwitchModel switching{.core = {.stall_s = 2e-6}, .mem = {}};
  const std::vector<GraphQuestion> questions{
      {Granularity::run, 0.05}, {Granularity::kernel, 0.05}, {Granularity::segment, 0.05}};
  GraphExplorationInput input = made_exploration_input({.layers = 4}, questions, switching);
  const GraphExploration board = explore_captured(input);
  input.host_power_w = 1e9;
  const GraphExploration node = explore_captured(input);
  EXPECT_EQ(node.planner->baseline().span_s, board.planner->baseline().span_s);
  ASSERT_EQ(node.plans.size(), questions.size());
  for (std::size_t q = 0; q < questions.size(); ++q) {
    const GraphPlanOutcome &plan = node.plans[q], &of_board = board.plans[q];
    ASSERT_TRUE(plan.result.found());
    EXPECT_NEAR(plan.change.energy_frac, plan.change.time_frac, 1e-5);
    // No plan takes less energy than the bound, which is of whole nodes too.
    EXPECT_LE(plan.result.lower_bound_j, plan.result.run.total_energy_j * (1.0 + 1e-9));
    EXPECT_LE(plan.result.run.span_s, of_board.result.run.span_s * (1.0 + 1e-9));
    EXPECT_EQ(find_host_power(node.baseline_marks), 1e9);
  }
  // A slow clock: as unsure of the energy as of the time, but for how far either is scaled.
  const ClockGrid& grid = node.planner->grid();
  const GraphPlan slow = uniform_plan(node.run->graph, ClockId{0});
  const GraphRun run = GraphSimulator(*node.model, grid).run(slow);
  const GraphPlanInterval interval =
      GraphPlanIntervals(*node.model, *node.model, grid, node.planner->baseline()).of(slow, run);
  const double time_width = interval.high.time_frac - interval.low.time_frac;
  EXPECT_GT(time_width, 1e-3);
  EXPECT_GE(interval.high.energy_frac - interval.low.energy_frac, 0.1 * time_width);
  // The same run at the same clocks: what was added is the node's power for its time.
  const GraphRun &with = node.planner->baseline(), &without = board.planner->baseline();
  EXPECT_NEAR(with.total_energy_j, without.total_energy_j + 1e9 * with.span_s,
              1e-9 * with.total_energy_j);
}

}  // namespace
}  // namespace rubato
