#include "tools/terminal/screen.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "common/numbers.hpp"
#include "explorer/slack_ladder.hpp"
#include "models/gpu/spec.hpp"
#include "tools/commands/plans/trace_screen.hpp"
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
               .questions = {{Granularity::run}, {Granularity::kernel}},
               .odds_frac = 0.0},  // plans for all of the time
        found_(explore(input_)) {}

  [[nodiscard]] ShownRun shown() const {
    return shown_run("gpt3-xl", input_, found_, "results.db", "");
  }
  /// The text behind a label.
  [[nodiscard]] std::string line(std::string_view label) const {
    for (const auto& [name, text] : screen_lines(shown()))
      if (name == label) return text;
    return "no such line";
  }
  /// "10.7 % energy (90 %: 9.0 to 12.4)", as applied.
  [[nodiscard]] std::string saved_by(const PlanResult& plan) const {
    const Totals& total = plan.counted ? *plan.counted : plan.sim.total;
    return format_fixed(-change_pct(total.energy_j, found_.baseline.total.energy_j), 1) +
           " % energy (90 %: ";
  }

  ExplorationInput input_;
  Exploration found_;
};

TEST_F(ExplorationAnswer, HasFiveLinesThatNameThePlanThatSavesMost) {
  EXPECT_EQ(line("Planned").find("gpt3-xl on NVIDIA GeForce RTX 3080 Ti, 350 W, 66 clocks: "), 0U);
  EXPECT_NE(line("Planned").find("at the default clocks (the driver's choice)"), std::string::npos);
  EXPECT_NE(line("Set").find(", one per kernel; "), std::string::npos) << line("Set");
  EXPECT_NE(line("Set").find(" To set: rubato export --plan latest --per kernel --db "
                             "results.db -o plan.json\n sudo -E rubato apply plan.json"),
            std::string::npos)
      << line("Set");
  EXPECT_EQ(line("Saves").find(saved_by(found_.plans[1])), 0U) << line("Saves");
  EXPECT_NE(line("Saves").find(" odds of no more time)"), std::string::npos) << line("Saves");
  EXPECT_NE(line("Saves").find("; one clock for all, memory 9251, core 1890 MHz: -"),
            std::string::npos)
      << line("Saves");
  EXPECT_EQ(line("Rests on").find("times of kernels: 100.0 % measured"), 0U);
  found_.plans.pop_back();
  EXPECT_EQ(line("Set").find("memory 9251, core 1890 MHz\n To set: sudo nvidia-smi -lgc 1890"), 0U)
      << line("Set");
  EXPECT_EQ(line("Saves").find(saved_by(found_.plans[0])), 0U);
}

// A saving of the sentence is the saving of the table and of JSON, with its interval.
TEST_F(ExplorationAnswer, SaysTheSameNumbersEverywhere) {
  const PlanResult& plan = found_.plans[1];
  const auto rows = plans_table(shown()).shown();
  const std::size_t energy =
      static_cast<std::size_t>(std::ranges::find(rows[0], "energy %") - rows[0].begin());
  const double pct = change_pct(plan.sim.total.energy_j, found_.baseline.total.energy_j);
  EXPECT_EQ(rows[3][energy], format_fixed(pct, 1));
  const Interval& interval = plan.interval->energy;
  EXPECT_NE(line("Saves").find("(90 %: " + format_fixed(-interval.high_pct, 1) + " to " +
                               format_fixed(-interval.low_pct, 1) + ")"),
            std::string::npos)
      << line("Saves");
  const std::string csv = answers_table(shown()).render(OutputFormat::csv);
  EXPECT_NE(csv.find("strict_waste,1,1,kernel,"), std::string::npos) << csv;
}

// With what changes of clock take the plan per kernel is late: it is named after what can be set.
TEST_F(ExplorationAnswer, SaysWhatAPlanWouldSaveIfChangesWereFree) {
  input_.spec.switching.core_s.reset();
  found_ = explore(input_);
  const PlanResult& kernel = found_.plans[1];
  ASSERT_TRUE(kernel.counted);
  const Totals &counted = *kernel.counted, &base = found_.baseline.total;
  const auto changed = [&](double value, double from) {
    return format_signed(change_pct(value, from), 1) + " %";
  };
  const std::string note = "note: one clock for each kernel would change energy by " +
                           changed(kernel.sim.total.energy_j, base.energy_j) +
                           " if switches were free; with their cost it is " +
                           changed(counted.energy_j, base.energy_j) + ", time " +
                           changed(counted.time_s, base.time_s) + "\n";
  EXPECT_NE(notes_text(shown()).find(note), std::string::npos) << notes_text(shown());
  EXPECT_EQ(line("Set").find("memory 9251, core 1890 MHz"), 0U);
  input_.questions = {{Granularity::kernel}};
  found_ = explore(input_);
  EXPECT_EQ(line("Set"), "nothing: keep the default clocks; as applied, every plan is late");
  EXPECT_EQ(line("Saves"), "nothing");
  EXPECT_NE(notes_text(shown()).find(note), std::string::npos) << notes_text(shown());
}

// Beside plans that take changes to be free segments are planned that count them: they can be set.
TEST_F(ExplorationAnswer, NamesSegmentsThatCountChanges) {
  input_.spec.switching.core_s.reset();
  input_.questions.push_back({Granularity::segment, Aggregation::global, LeastWaste{}, true});
  found_ = explore(input_);
  const PlanResult& segment = found_.plans[2];
  const Totals &total = segment.sim.total, &base = found_.baseline.total;
  const GpuModel model = model_of(input_);
  const Totals played =
      simulate(input_.trace, model, found_.grid, segment.plan, switch_model(input_.spec)).total;
  EXPECT_DOUBLE_EQ(total.energy_j, played.energy_j);
  EXPECT_DOUBLE_EQ(total.time_s, played.time_s);
  EXPECT_FALSE(segment.counted);
  EXPECT_LE(total.time_s, base.time_s * (1.0 + 1e-9));
  EXPECT_LT(total.energy_j, found_.plans[0].sim.total.energy_j);
  EXPECT_GT(total.energy_j, found_.plans[1].sim.total.energy_j);
  EXPECT_NE(line("Set").find(", one per segment; "), std::string::npos) << line("Set");
  EXPECT_EQ(line("Saves").find(saved_by(segment)), 0U) << line("Saves");
  EXPECT_NE(line("Rests on")
                .find("a switch takes 22 ms (a guess: nobody measured this "
                      "GPU)"),
            std::string::npos);
  EXPECT_NE(line("Next").find("how long a switch takes"), std::string::npos);

  const std::vector<SlackStep> ladder = slack_ladder(input_, found_);
  ASSERT_EQ(ladder.size(), 3 * ladder_slacks_frac.size());
  const auto segments = ladder.end() - std::ssize(ladder_slacks_frac);
  EXPECT_EQ(segments->least->energy_j, total.energy_j);
  for (auto step = segments; step != ladder.end(); ++step) {
    EXPECT_EQ(step->granularity, Granularity::segment);
    EXPECT_LE(step->least->time_s, base.time_s * (1.0 + step->slack_frac) * (1.0 + 1e-9));
  }
  EXPECT_TRUE(std::is_sorted(segments, ladder.end(), [](const SlackStep& a, const SlackStep& b) {
    return a.least->energy_j > b.least->energy_j;
  }));
}

// Where nothing is late, what is named is what saves most with its changes counted.
TEST_F(ExplorationAnswer, OfLeastCostCountsChanges) {
  input_.spec.switching.core_s.reset();
  const Goal cheapest = LeastCost{{.per_kwh = 0.12, .per_gpu_hour = 0.05}};
  input_.questions = {{Granularity::run, Aggregation::global, cheapest},
                      {Granularity::kernel, Aggregation::global, cheapest}};
  found_ = explore(input_);
  EXPECT_EQ(line("Saves").find("cost -"), 0U) << line("Saves");
  EXPECT_NE(line("Set").find(" MHz\n To set: sudo nvidia-smi"), std::string::npos);
  found_.plans[1].counted = found_.plans[1].sim.total;
  found_.plans[1].verdict = {};
  EXPECT_NE(line("Set").find("--per kernel --goal cost --db"), std::string::npos) << line("Set");
}

TEST_F(ExplorationAnswer, LeavesLatePlansOut) {
  const double late_s = 1.5 * found_.baseline.total.time_s;
  found_.plans[1].sim.total.time_s = late_s;
  EXPECT_EQ(line("Set").find("memory 9251, core 1890 MHz"), 0U);
  const auto rows = plans_table(shown()).shown();
  EXPECT_EQ(rows[3].back(), "late");
  found_.plans[0].sim.total.time_s = late_s;
  EXPECT_EQ(line("Set"), "nothing: keep the default clocks; as applied, every plan is late");
  // Who asks for less time than the default clocks take cannot keep them.
  for (PlanResult& plan : found_.plans) plan.question.goal = LeastWaste{.slack_frac = -0.5};
  EXPECT_EQ(line("Set"), "nothing: no plan is in time");
  const FrontPoint& fastest = found_.fronts.at(1).points.front();
  EXPECT_NE(line("Saves").find("nothing; the fastest plan, per kernel: energy "), std::string::npos)
      << line("Saves");
  EXPECT_NE(line("Saves").find(
                "time " +
                format_signed(change_pct(fastest.time_s, found_.baseline.total.time_s), 1) + " %"),
            std::string::npos);
  found_.fronts.clear();
  EXPECT_EQ(line("Saves"), "nothing");
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
  input_.questions = {{Granularity::run, Aggregation::global, LeastEdp{}},
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
  EXPECT_EQ(plans_table(shown()).render(OutputFormat::table).find("limit not reached"),
            std::string::npos);
  found_.plans[0].marks.push_back({MarkKind::limit_not_reached, "too much"});
  const std::string csv = plans_table(shown()).render(OutputFormat::csv);
  EXPECT_NE(csv.find(",limit not reached,"), std::string::npos);
}

// What a plan comes to as applied is what people see; programs get both.
TEST_F(ExplorationAnswer, TableIsOfPlansAsApplied) {
  PlanResult& plan = found_.plans[1];
  const Totals& base = found_.baseline.total;
  plan.counted = base;
  plan.counted->time_s = 1.25 * base.time_s;
  plan.counted->energy_j = 0.875 * base.energy_j;
  const OutputTable table = plans_table(shown());
  const auto rows = table.shown();
  EXPECT_NE(std::ranges::find(rows[3], "25.0"), rows[3].end());
  EXPECT_NE(std::ranges::find(rows[3], "-12.5"), rows[3].end());
  EXPECT_NE(table.render(OutputFormat::csv).find(",25,-12.5,"), std::string::npos);
}

// However narrow the terminal is.
TEST_F(ExplorationAnswer, TheSavingIsNeverLeftOut) {
  found_.plans[1].question.goal = LeastWaste{.slack_frac = 0.05};
  const OutputTable table = plans_table(shown());
  for (const char* key : {"plan", "slack_pct", "time", "energy", "clocks", "set_with"}) {
    EXPECT_TRUE(table.has_room_for(key, {.columns = 100})) << key;
    EXPECT_TRUE(table.has_room_for(key, {.columns = 72})) << key;
  }
}

// What does not show in the last digit is no reason to set a clock.
TEST_F(ExplorationAnswer, TiesKeepTheDefaultClocks) {
  const auto saves = [&](PlanResult& plan, double frac) {
    plan.sim = found_.baseline;
    plan.sim.total.energy_j = (1.0 - frac) * found_.baseline.total.energy_j;
  };
  saves(found_.plans[0], 4e-5);
  saves(found_.plans[1], 4.5e-5);
  EXPECT_EQ(line("Set").find("nothing: keep the default clocks"), 0U);
  saves(found_.plans[1], 0.0101);
  EXPECT_NE(line("Set").find("one per kernel"), std::string::npos);
  saves(found_.plans[0], 0.00998);
  EXPECT_EQ(line("Set").find("one per kernel"), std::string::npos);
}

// All that is named is of one slack, the least; the table has the answers to others.
TEST_F(ExplorationAnswer, IsOfTheLeastSlack) {
  input_.questions = {{Granularity::kernel, Aggregation::global, LeastWaste{0.05, 0.0}},
                      {Granularity::run, Aggregation::global, LeastWaste{0.05, 0.0}},
                      {Granularity::kernel, Aggregation::global, LeastWaste{0.01, 0.0}}};
  found_ = explore(input_);
  EXPECT_NE(line("Saves").find("odds of at most 1 % more time"), std::string::npos);
  EXPECT_EQ(line("Saves").find("5 % more time"), std::string::npos);
  const auto rows = plans_table(shown(), false).shown();
  EXPECT_NE(std::ranges::find(rows.front(), "slack %"), rows.front().end());
  EXPECT_EQ(rows.size(), 4U);  // titles, default clocks, and a plan of each slack
  EXPECT_EQ(plans_table(shown()).rows(), 4U);
}

// Of the plan or of what it is held against; three notes at most.
TEST_F(ExplorationAnswer, SaysWhatWasNotMeasured) {
  EXPECT_EQ(line("Rests on").find('['), std::string::npos);
  found_.baseline_marks.push_back({MarkKind::clocks_not_fitted, "beyond"});
  found_.plans[1].marks.push_back({MarkKind::scaled, "other shapes"});
  found_.plans[1].marks.push_back({MarkKind::changes_ignored, "free"});
  EXPECT_NE(line("Rests on").find(" [clocks not fitted, scaled]"), std::string::npos)
      << line("Rests on");
  EXPECT_NE(notes_text(shown()).find("note: clocks not fitted: beyond\n"), std::string::npos);
  found_.baseline_marks.push_back({MarkKind::too_large, "does not fit"});
  found_.plans[1].marks.push_back({MarkKind::limit_not_reached, "too much"});
  const std::string notes = notes_text(shown());
  EXPECT_EQ(std::ranges::count(notes, '\n'), 4) << notes;
  EXPECT_NE(notes.find("1 more: --list notes\n"), std::string::npos) << notes;
}

TEST_F(ExplorationAnswer, SaysWhenNothingIsSaved) {
  for (PlanResult& plan : found_.plans) plan.sim = found_.baseline;
  EXPECT_EQ(line("Set"), "nothing: keep the default clocks; no plan in no more time saves energy");
}

}  // namespace
}  // namespace rubato
