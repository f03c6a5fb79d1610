#include "explorer/experiments/file.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "explorer/experiments/shards.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

const std::string head = "schema = 1\nname = 'e'\n";
const std::string base =
    head + "[defaults]\ngpu = 'rtx-3080-ti'\nmodel = 'gpt3-xl'\nbatch = 8\nsequence = 1024\n";

Experiment parsed(const std::string& text) { return parse_experiment(text, "e.toml"); }
SweepPlan planned(const std::string& text) { return plan_sweep(parsed(text)); }

void expect_rejected(const std::string& text, const std::string& message) {
  expect_error<DataError>([&] { (void)planned(text); }, message);
}

TEST(Experiment, IsTheProductOfItsAxes) {
  const Experiment e =
      parsed(base + "[axes]\nbatch = [1, 2, 4]\nslack_pct = {from = 0, to = 1, step = 0.25}\n");
  ASSERT_EQ(e.points.size(), 3U * 5U);
  // The last axis varies fastest.
  EXPECT_EQ(e.points[1].point.number(AxisId::batch), 1.0);
  EXPECT_EQ(e.points[1].point.number(AxisId::slack_pct), 0.25);
  EXPECT_EQ(e.points[14].point.number(AxisId::slack_pct), 1.0);
  std::set<std::pair<double, double>> seen;
  for (const auto& p : e.points)
    seen.emplace(p.point.number(AxisId::batch), p.point.number(AxisId::slack_pct));
  EXPECT_EQ(seen.size(), 15U);
}

TEST(Experiment, FiltersCutTheProduct) {
  const std::string axes = "[axes]\nbatch = [1, 2, 4, 8]\ntensor_parallel = [1, 2]\n";
  EXPECT_EQ(parsed(base + axes + "[[drop]]\nbatch = '>= 4'\ntensor_parallel = 2\n").points.size(),
            6U);
  EXPECT_EQ(parsed(base + axes + "[[drop]]\nbatch = '>= 4'\n[[drop]]\ntensor_parallel = 2\n")
                .points.size(),
            2U);
  EXPECT_EQ(parsed(base + axes + "[[keep]]\nbatch = [1, 8]\n").points.size(), 4U);
  const Experiment both = parsed(
      base + axes + "[[keep]]\nbatch = '<2'\n[[drop]]\nmodel = 'gpt3-xl'\ntensor_parallel = 1\n");
  ASSERT_EQ(both.points.size(), 1U);
  EXPECT_EQ(both.filtered, 7U);
  EXPECT_EQ(both.points[0].point.count(AxisId::tensor_parallel), 2U);
}

TEST(Experiment, ScenariosAreNamedAndNotFiltered) {
  const Experiment e = parsed(
      base + "[axes]\nbatch = 4\n[[drop]]\nbatch = 2\n[scenario.'two or three']\nbatch = [2, 3]\n");
  ASSERT_EQ(e.points.size(), 3U);
  EXPECT_EQ(e.points[0].scenario, "");
  EXPECT_EQ(e.points[1].scenario, "two or three");
}

TEST(Experiment, ATraceHasNoBatch) {
  const Experiment e = parsed(head +
                              "[axes]\ngpu = 'rtx-3080-ti'\ntrace = 'gpt3-xl'\nmodel = "
                              "'gpt3-xl'\nbatch = [1, 2]\nsequence = 512\n");
  ASSERT_EQ(e.points.size(), 3U);
  EXPECT_EQ(shown(e.points[0].point[AxisId::batch]), "-");
  expect_rejected(head + "[axes]\ngpu = 'rtx-3080-ti'\ntrace = 'gpt3-xl'\nbatch = 2\n",
                  "e.toml:6: axes.batch: a fixed trace has its own");
}

TEST(Experiment, SaysWhereAFileIsWrong) {
  expect_rejected("schema = 1\nname = 'e\n", "e.toml:2:10: not valid TOML");
  expect_rejected("schema = 2\nname = 'e'\n", "schema 2 is not supported");
  expect_rejected(head + "[axis]\n", "unknown key 'axis'; did you mean 'axes'?");
  expect_rejected(base + "[axes]\nbatsh = 4\n",
                  "e.toml:8: axes: unknown key 'batsh'; did you mean 'batch'?");
  expect_rejected(base + "[axes]\nbatch = [4, -1]\n",
                  "e.toml:9: axes.batch[1]: found -1; expected a whole number >= 0");
  expect_rejected(base + "[axes]\nbatch = 0\n", "expected a whole number >= 1");
  expect_rejected(base + "[axes]\nbatch = [4, 4]\n", "value 4 occurs twice");
  expect_rejected(base + "[axes]\nbatch = []\n", "the list is empty");
  expect_rejected(base + "[axes]\nbatch = {from = 1, to = 4}\n", "key 'step' is missing");
  expect_rejected(base + "[axes]\nbatch = {from = 1, to = 2, step = 0.5}\n", "the range holds 1.5");
  expect_rejected(base + "[axes]\nslack_pct = nan\n", "expected a number >= 0");
  expect_rejected(base + "[axes]\npower_limit_w = 'low'\n", "expected a number > 0 or \"spec\"");
  expect_rejected(base + "[axes]\npipeline_parallel = 0\n", "expected a whole number >= 1");
  expect_rejected(base + "[axes]\nslack_pct = 1979-05-27\n", "found a date or time");
  expect_rejected(base + "[axes]\nbatch = 4\n[drop]\nbatch = 4\n",
                  "write [[drop]] with two brackets");
  expect_rejected(base + "[axes]\nbatch = 4\n[[drop]]\nbatch = '~ 4'\n",
                  "a comparison such as \">= 8\"");
  expect_rejected(base + "[axes]\nbatch = 4\n[[drop]]\nbatch = 4\n",
                  "the filters leave nothing to run");
  expect_rejected(base, "nothing to run");
  expect_rejected(head + "[axes]\nmodel = 'gpt3-xl'\n", "key 'gpu' is missing");
  expect_rejected(head + "[axes]\ngpu = 'rtx-3080-ti'\n",
                  "none of 'trace', 'capture' and 'model' is given");
  expect_rejected(head + "[axes]\ngpu = 'rtx-3080-ti'\nmodel = 'gpt3-xl'\n",
                  "a model needs 'batch' and 'sequence'");
  expect_rejected(base +
                      "[axes]\nbatch = {from = 1, to = 2000, step = 1}\nsequence = {from = 1, to = "
                      "2000, step = 1}\n",
                  "the axes stand for 4e+06 points; expected at most 1000000");
}

TEST(Experiment, CombinationsThatCannotBeRunAreNamedTogether) {
  expect_error<DataError>(
      [] {
        (void)planned(base +
                      "[axes]\ntensor_parallel = [1, 3]\ngoal = ['strict_waste', "
                      "'time']\n[scenario.hot]\npower_limit_w = 9000\n");
      },
      "goal 'time' needs either energy_budget_j or power_budget_w\nerror: ", "[[drop]]");
  expect_rejected(base + "[scenario.hot]\npower_limit_w = 9000\n",
                  "scenario 'hot': a power limit of 9000 W is outside");
  expect_rejected(base + "[axes]\ngpu = 'rtx-3080'\n",
                  "there is no GPU spec 'rtx-3080'; did you mean");
  expect_rejected(base + "[axes]\ngranularity = 'kernels'\n", "did you mean 'kernel'?");
  expect_rejected(base + "[axes]\ngranularity = 'segment'\ngoal = 'edp'\n",
                  "granularity 'segment' plans for goal 'strict_waste'");
}

TEST(Experiment, TheTemplateRunsAsItIs) {
  const SweepPlan plan = planned(experiment_template());
  EXPECT_GT(plan.units.size(), 10U);
  EXPECT_GT(plan.experiment.filtered, 0U);
}

std::set<std::string> ids(const SweepPlan& plan) {
  std::set<std::string> all;
  for (const Unit& unit : plan.units) all.insert(unit.id);
  return all;
}

TEST(SweepPlan, IdsFollowWhatTheAnswerDependsOn) {
  const std::string axes = "[axes]\nbatch = [4, 8]\nslack_pct = [0, 1]\n";
  const auto original = ids(planned(base + axes));
  ASSERT_EQ(original.size(), 4U);
  // Name, comments and order do not matter.
  EXPECT_EQ(ids(planned("schema = 1\nname = 'other'\n# comment\n" + base.substr(head.size()) +
                        "[axes]\nslack_pct = [1, 0]\nbatch = [8, 4]\n")),
            original);
  // The spec's own power limit is the spec's own power limit, however it is written.
  EXPECT_EQ(ids(planned(base + axes + "power_limit_w = [350, 'spec']\n")), original);
  // Slack means nothing to edp: asked twice, run once.
  const SweepPlan edp = planned(base + "[axes]\ngoal = 'edp'\nslack_pct = [0, 1]\n");
  EXPECT_EQ(edp.units.size(), 1U);
  EXPECT_EQ(edp.repeated, 1U);
  // A new value adds units and keeps the others; each other axis changes all.
  const auto more = ids(planned(base + "[axes]\nbatch = [4, 8]\nslack_pct = [0, 1, 2]\n"));
  EXPECT_EQ(more.size(), 6U);
  EXPECT_TRUE(std::ranges::includes(more, original));
  for (const char* change :
       {"seed = 1", "sequence = 512", "tensor_parallel = 2", "data_parallel = 2",
        "power_limit_w = 300", "clocks = 'mem=5001 core=1470'", "switch_stall_us = 1",
        "switch_energy_j = 1", "granularity = 'pass'", "aggregation = 'local'", "goal = 'energy'",
        "tolerance_pct = 1"}) {
    for (const std::string& id : ids(planned(base + axes + change + "\n")))
      EXPECT_FALSE(original.contains(id)) << change;
  }
}

TEST(SweepPlan, ShardsDivideTheUnitsEvenly) {
  const SweepPlan plan =
      planned(base +
              "[axes]\nbatch = [1, 2, 3, 4, 5, 6, 7]\ngranularity = ['pass', 'kernel']\n"
              "slack_pct = [0, 1, 2]\n[scenario.one]\nclocks = 'full'\nslack_pct = [0, 1, 2, 3]\n");
  for (const std::size_t count : {1U, 2U, 3U, 5U, 64U}) {
    std::vector<std::size_t> all;
    double most_s = 0.0, total_s = 0.0, longest_s = 0.0;
    for (std::size_t i = 1; i <= count; ++i) {
      const auto mine = units_of(plan, {i, count});
      EXPECT_EQ(mine, units_of(plan, {i, count}));
      all.insert(all.end(), mine.begin(), mine.end());
      most_s = std::max(most_s, estimated_time_s(plan, mine));
      total_s += estimated_time_s(plan, mine);
    }
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), plan.units.size());
    for (std::size_t u = 0; u < all.size(); ++u) EXPECT_EQ(all[u], u);
    for (const Unit& unit : plan.units)
      longest_s =
          std::max(longest_s, unit.estimated_s + plan.settings[unit.setting].estimated_store_s);
    // Graham's bound for longest-first assignment, with room for pieces that are kept together.
    EXPECT_LE(most_s, 4.0 / 3.0 * std::max(total_s / static_cast<double>(count), 2.0 * longest_s))
        << count;
  }
  expect_error<UsageError>([] { (void)parse_shard("0/4"); }, "expected i/n with 1 <= i <= n");
  expect_error<UsageError>([] { (void)parse_shard("5/4"); }, "--shard '5/4'");
  EXPECT_EQ(parse_shard("3/8").count, 8U);
}

}  // namespace
}  // namespace rubato
