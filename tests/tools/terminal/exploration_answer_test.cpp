#include "tools/terminal/exploration_answer.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "common/numbers.hpp"
#include "explorer/slack_ladder.hpp"
#include "models/gpu/spec.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

GpuSpec with_free_changes(GpuSpec spec) {
  spec.switching.core_s = spec.switching.mem_s = 0.0;
  return spec;
}

class ExplorationAnswer : public ::testing::Test {
 protected:
  ExplorationAnswer()
      : input_{.trace = generate_training_step(gpt_preset("gpt3-xl")).trace,
               .spec = with_free_changes(load_gpu_spec("rtx-3080-ti")),
               .grid = "paper",
               .power_limit_w = {},
               .switching = {},
               .questions = {{Granularity::iteration}, {Granularity::kernel}},
               .odds_frac = 0.0},  // plans for all of the time
        found_(explore(input_)) {}

  [[nodiscard]] std::string answer() const {
    return exploration_answer(input_, found_, "results.db");
  }
  [[nodiscard]] std::string energy_of(const PlanResult& plan) const {
    return "energy " +
           format_signed(change_pct(plan.sim.total.energy_j, found_.baseline.total.energy_j), 2) +
           " % (90 %: ";
  }

  ExplorationInput input_;
  Exploration found_;
};

TEST_F(ExplorationAnswer, NamesTheClockAndThePlanThatSaveMost) {
  const std::string heading = exploration_heading("gpt3-xl", input_, found_);
  EXPECT_EQ(heading.find("gpt3-xl on NVIDIA GeForce RTX 3080 Ti, 350 W, 66 clocks"), 0U);
  EXPECT_NE(heading.find("100.0 % measured\nDefault clocks (the driver's choice): "),
            std::string::npos);

  const ClockId clock = found_.plans[0].plan.clock_of_site.front();
  const std::string one = "One clock for all, in at most 0 % more time" +
                          odds_words(found_.plans[0].odds_in_time) + ": " +
                          clock_words(found_.grid.label(clock)) + "\n  ";
  EXPECT_EQ(answer().find(one + energy_of(found_.plans[0])), 0U);
  EXPECT_NE(answer().find("\n  To set: sudo nvidia-smi"), std::string::npos);
  EXPECT_NE(answer().find("\nPer kernel, in at most 0 % more time, with "), std::string::npos);
  EXPECT_NE(answer().find(" changes/s taken as free\n"), std::string::npos);
  EXPECT_NE(answer().find(energy_of(found_.plans[1])), std::string::npos);
  EXPECT_NE(answer().find("--granularity kernel --db results.db"), std::string::npos);
}

// With what changes of clock take the plan per kernel is late: it is named after what can be set.
TEST_F(ExplorationAnswer, SaysWhatAPlanWouldSaveIfChangesWereFree) {
  const std::string free = energy_of(found_.plans[1]);
  input_.spec.switching.core_s.reset();
  found_ = explore(input_);
  const PlanResult& kernel = found_.plans[1];
  ASSERT_TRUE(kernel.counted);
  const std::string text = answer();
  const Totals &counted = *kernel.counted, &base = found_.baseline.total;
  const std::size_t at =
      text.find("\nPer kernel: " + free.substr(0, free.find(" (90")) +
                " if changes of clock were free; with what they take energy " +
                format_signed(change_pct(counted.energy_j, base.energy_j), 2) + " %, time " +
                format_signed(change_pct(counted.time_s, base.time_s), 2) +
                " %.\n  To plan with them: --granularity segment\n");
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_LT(text.find("To set: "), at);

  input_.questions = {{Granularity::kernel}};
  found_ = explore(input_);
  EXPECT_EQ(answer().find("No plan that is in time saves energy: keep the default clocks.\nPer "
                          "kernel: " +
                          free.substr(0, free.find(" (90"))),
            0U)
      << answer();
}

// Beside plans that take changes to be free segments are planned that count them: they can be set.
TEST_F(ExplorationAnswer, NamesSegmentsThatCountChanges) {
  input_.spec.switching.core_s.reset();
  input_.questions.push_back({Granularity::automatic, Aggregation::global, LeastWaste{}, true});
  found_ = explore(input_);
  const PlanResult& segment = found_.plans[2];
  const Totals &total = segment.sim.total, &base = found_.baseline.total;
  const GpuModel model = model_of(input_);
  const Totals played =
      simulate(input_.trace, model, found_.grid, segment.plan, switch_model(input_.spec)).total;
  EXPECT_DOUBLE_EQ(total.energy_j, played.energy_j);
  EXPECT_DOUBLE_EQ(total.time_s, played.time_s);
  EXPECT_GT(played.clock_switches, 0U);
  EXPECT_FALSE(segment.counted);
  EXPECT_EQ(kinds_text(segment.marks), "changes counted");
  EXPECT_LE(total.time_s, base.time_s * (1.0 + 1e-9));
  EXPECT_LT(total.energy_j, found_.plans[0].sim.total.energy_j);
  EXPECT_GT(total.energy_j, found_.plans[1].sim.total.energy_j);
  const std::string text = answer();
  EXPECT_NE(text.find("\nPer segment (run of launches), in at most 0 % more time, with "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" changes/s, each 22 ms (a guess: nobody measured this GPU)\n  " +
                      energy_of(segment)),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("To plan with them"), std::string::npos) << text;

  const std::vector<SlackStep> ladder = slack_ladder(input_, found_);
  ASSERT_EQ(ladder.size(), 3 * ladder_slacks_frac.size());
  const auto segments = ladder.end() - std::ssize(ladder_slacks_frac);
  EXPECT_EQ(segments->least->energy_j, total.energy_j);
  for (auto step = segments; step != ladder.end(); ++step) {
    EXPECT_EQ(step->granularity, Granularity::automatic);
    EXPECT_LE(step->least->time_s, base.time_s * (1.0 + step->slack_frac) * (1.0 + 1e-9));
  }
  EXPECT_TRUE(std::is_sorted(segments, ladder.end(), [](const SlackStep& a, const SlackStep& b) {
    return a.least->energy_j > b.least->energy_j;
  }));
  EXPECT_LT(ladder.back().least->energy_j, 0.95 * total.energy_j);
}

// Where nothing is late, what is named is what saves most with its changes counted.
TEST_F(ExplorationAnswer, OfLeastCostCountsChanges) {
  input_.spec.switching.core_s.reset();
  const Goal cheapest = LeastCost{{.per_kwh = 0.12, .per_gpu_hour = 0.05}};
  input_.questions = {{Granularity::iteration, Aggregation::global, cheapest},
                      {Granularity::kernel, Aggregation::global, cheapest}};
  found_ = explore(input_);
  EXPECT_NE(answer().find("\nPer kernel: cost -"), std::string::npos) << answer();
  EXPECT_EQ(answer().find("\nPer kernel, "), std::string::npos) << answer();
  found_.plans[1].counted = found_.plans[1].sim.total;
  found_.plans[1].verdict = {};
  EXPECT_EQ(answer().find("\nPer kernel: "), std::string::npos) << answer();
  EXPECT_NE(answer().find("\nPer kernel, of least cost: "), std::string::npos) << answer();
}

TEST_F(ExplorationAnswer, LeavesLatePlansOut) {
  const double late_s = 1.5 * found_.baseline.total.time_s;
  found_.plans[1].sim.total.time_s = late_s;
  EXPECT_EQ(answer().find("Per kernel"), std::string::npos);
  found_.plans[0].sim.total.time_s = late_s;
  EXPECT_EQ(answer(), "No plan that is in time saves energy: keep the default clocks.\n");
  // Who asks for less time than the default clocks take cannot keep them.
  for (PlanResult& plan : found_.plans) plan.question.goal = LeastWaste{.slack_frac = -0.5};
  const auto faster =
      found_.plans[0].sim.total.time_s <= found_.plans[1].sim.total.time_s ? 0U : 1U;
  const PlanResult& fastest = found_.plans.at(faster);
  EXPECT_EQ(answer().find("No plan is in time; the fastest, per " +
                          std::string(name_of(fastest.question.granularity)) + ": " +
                          clock_words(clocks_text(found_.grid, fastest.plan.clock_of_site)) +
                          "\n  " + energy_of(fastest)),
            0U);
  for (PlanResult& plan : found_.plans) {
    plan.plan = {};
    plan.sim = {};
  }
  EXPECT_EQ(answer().find("No plan is in time; the fastest, per kernel: energy "), 0U);
  const FrontPoint& fastest_kernels = found_.fronts.at(1).points.front();
  EXPECT_NE(answer().find(
                "time " +
                format_signed(change_pct(fastest_kernels.time_s, found_.baseline.total.time_s), 2) +
                " %\n"),
            std::string::npos);
  found_.fronts.clear();
  EXPECT_EQ(answer(), "No plan is in time.\n");
}

TEST(ClockWords, SayTheUnitOnce) {
  EXPECT_EQ(clock_words("9251/1890"), "memory 9251, core 1890 MHz");
  EXPECT_EQ(clock_words("auto/1890"), "memory auto, core 1890 MHz");
  EXPECT_EQ(clock_words("5001/auto"), "memory 5001, core auto");
  EXPECT_EQ(clock_words("auto/auto"), "the driver's choice");
  EXPECT_EQ(clock_words("12 clocks"), "12 clocks");
}

// A slack's step is the plan of that slack, and the same whatever else was asked.
TEST_F(ExplorationAnswer, LadderIsSolvedExactlyWhateverWasAsked) {
  const std::vector<SlackStep> ladder = slack_ladder(input_, found_);
  ASSERT_EQ(ladder.size(), 2 * ladder_slacks_frac.size());
  for (const SlackStep& step : ladder) {
    ExplorationInput asked = input_;
    asked.questions = {{step.granularity, Aggregation::global, LeastWaste{step.slack_frac}}};
    const PlanResult plan = explore(asked).plans.front();
    ASSERT_TRUE(step.least);
    EXPECT_NEAR(step.least->energy_j / plan.sim.total.energy_j, 1.0, 1e-9);
    EXPECT_LE(step.least->time_s, found_.baseline.total.time_s * (1.0 + step.slack_frac + 1e-9));
  }
  input_.questions = {{Granularity::iteration, Aggregation::global, LeastEdp{}},
                      {Granularity::kernel, Aggregation::global, LeastEdp{}}};
  const std::vector<SlackStep> again = slack_ladder(input_, explore(input_));
  ASSERT_EQ(again.size(), ladder.size());
  for (std::size_t i = 0; i < ladder.size(); ++i)
    EXPECT_EQ(again[i].least->energy_j, ladder[i].least->energy_j);
}

TEST_F(ExplorationAnswer, StatusSaysThatALimitIsNotReached) {
  EXPECT_EQ(status_text(SolveStatus::optimal, {}), "optimal");
  const Mark late{MarkKind::slack_missed, "late"}, over{MarkKind::limit_not_reached, "too much"};
  EXPECT_EQ(status_text(SolveStatus::optimal, std::array{late}), "optimal");
  EXPECT_EQ(status_text(SolveStatus::feasible, std::array{late, over}), "limit not reached");
}

TEST_F(ExplorationAnswer, TableShowsWhereALimitIsNotReached) {
  EXPECT_EQ(plans_table(found_).render(OutputFormat::table).find("limit not reached"),
            std::string::npos);
  found_.plans[0].marks.push_back({MarkKind::limit_not_reached, "too much"});
  const std::string csv = plans_table(found_).render(OutputFormat::csv);
  EXPECT_NE(csv.find(",limit not reached,"), std::string::npos);
}

// On a terminal of 100 characters, and on narrow ones: how often clocks change, and what is left of
// the saving, stand in a table of their own, by plan and slack.
TEST_F(ExplorationAnswer, WhatChangesLeaveIsNeverLeftOut) {
  EXPECT_EQ(counted_table(found_).rows(), 0U);
  PlanResult& plan = found_.plans[1];
  const Totals& base = found_.baseline.total;
  plan.sim.total.clock_switches = 30;
  plan.counted = base;
  plan.counted->time_s = 1.25 * base.time_s;
  plan.counted->energy_j = 0.875 * base.energy_j;
  const auto apart = counted_table(found_).shown();
  EXPECT_EQ(apart[0],
            (std::vector<std::string>{"plan", "changes/s", "counted: time %", "energy %"}));
  ASSERT_EQ(apart.size(), 2U);
  EXPECT_EQ(apart[1],
            (std::vector<std::string>{"kernel", format_fixed(30.0 / plan.sim.total.time_s, 0),
                                      "25.00", "-12.50"}));
  const OutputTable beside = plans_table(found_), without = plans_table(found_, Counted::apart);
  EXPECT_TRUE(beside.has_room_for("counted_energy_change_pct", {.columns = 200}));
  EXPECT_FALSE(without.has_room_for("counted_energy_change_pct", {.columns = 200}));
  EXPECT_EQ(beside.render(OutputFormat::csv), without.render(OutputFormat::csv));
}

// However many marks a plan has, and however narrow the terminal is.
TEST_F(ExplorationAnswer, TheSavingIsNeverLeftOut) {
  for (PlanResult& plan : found_.plans) {
    plan.marks = {{MarkKind::clocks_not_fitted, "beyond"},
                  {MarkKind::changes_ignored, "free"},
                  {MarkKind::slack_missed, "late"}};
  }
  found_.plans[1].question.goal = LeastWaste{.slack_frac = 0.05};
  const OutputTable table = plans_table(found_);
  for (const char* key : {"slack_pct", "time_change_pct", "energy_change_pct", "notes"}) {
    EXPECT_TRUE(table.has_room_for(key, {.columns = 100})) << key;
    EXPECT_TRUE(table.has_room_for(key, {.columns = 72})) << key;
  }
}

// Where less is expected than is estimated, the narrowest terminal says so, with marks too.
TEST_F(ExplorationAnswer, OptimisticEstimatesStandBesideWhatToExpect) {
  for (PlanResult& plan : found_.plans) {
    plan.marks = {{MarkKind::changes_ignored, "free"}, {MarkKind::slack_missed, "late"}};
    plan.interval->energy.median_pct =
        change_pct(plan.sim.total.energy_j, found_.baseline.total.energy_j);
  }
  const auto shown = [&] {
    return plans_table(found_, Counted::apart)
        .has_room_for("energy_change_expected_pct", {.columns = 72});
  };
  EXPECT_FALSE(shown());
  found_.plans[1].interval->energy.median_pct += 0.01;
  EXPECT_TRUE(shown());
}

// What does not show in the last digit is no reason to set a clock.
TEST_F(ExplorationAnswer, TiesKeepTheDefaultClocks) {
  const auto saves = [&](PlanResult& plan, double frac) {
    plan.sim = found_.baseline;
    plan.sim.total.energy_j = (1.0 - frac) * found_.baseline.total.energy_j;
  };
  saves(found_.plans[0], 4e-5);
  saves(found_.plans[1], 4.5e-5);
  EXPECT_EQ(answer(), "No plan that is in time saves energy: keep the default clocks.\n");
  saves(found_.plans[1], 0.01);
  EXPECT_EQ(answer().find("One clock for all, in at most 0 % more time, with "), 0U);
  EXPECT_NE(
      answer().find(" % odds: the driver's choice, no other saves anything\n  To set: nothing"),
      std::string::npos);
  EXPECT_NE(answer().find("\nPer kernel, "), std::string::npos);
  saves(found_.plans[0], 0.00998);
  EXPECT_EQ(answer().find("Per kernel, "), std::string::npos);
}

// All that is named is of one slack, the least; the table tells plans of several apart.
TEST_F(ExplorationAnswer, IsOfTheLeastSlack) {
  input_.questions = {{Granularity::kernel, Aggregation::global, LeastWaste{0.05, 0.0}},
                      {Granularity::kernel, Aggregation::global, LeastWaste{0.01, 0.0}}};
  found_ = explore(input_);
  EXPECT_EQ(answer().find("Per kernel, in at most 1 % more time, with "), 0U) << answer();
  EXPECT_EQ(answer().find("5 % more time"), std::string::npos);
  const auto shown = plans_table(found_).shown();
  EXPECT_NE(std::ranges::find(shown.front(), "slack %"), shown.front().end());
}

// Of the plan or of what it is held against.
TEST_F(ExplorationAnswer, SaysBesideTheSavingWhatWasNotMeasured) {
  EXPECT_EQ(answer().find('['), std::string::npos);
  found_.baseline_marks.push_back({MarkKind::clocks_not_fitted, "beyond"});
  found_.plans[1].marks.push_back({MarkKind::scaled, "other shapes"});
  found_.plans[1].marks.push_back({MarkKind::changes_ignored, "free"});
  const std::string text = answer();
  EXPECT_NE(text.find(") [clocks not fitted]\n  To set"), std::string::npos) << text;
  EXPECT_NE(text.find(") [clocks not fitted, scaled]\n"), std::string::npos) << text;
}

TEST_F(ExplorationAnswer, SaysWhenNothingIsSaved) {
  for (PlanResult& plan : found_.plans) plan.sim = found_.baseline;
  EXPECT_EQ(answer(), "No plan that is in time saves energy: keep the default clocks.\n");
}

}  // namespace
}  // namespace rubato
