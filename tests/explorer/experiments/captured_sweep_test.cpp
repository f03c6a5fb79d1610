#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "explorer/experiments/shards.hpp"
#include "explorer/experiments/sweep.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/results/merge.hpp"
#include "explorer/results/store.hpp"
#include "models/gpu/device.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/experiments/sweep_fixture.hpp"
#include "tests/made_exploration.hpp"
#include "tests/paths.hpp"
#include "traces/files/capture_json.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

// Two latencies and three slacks of a made run and of the shipped example.
const std::string slacks = "slack_pct = [0, 1, 5]\n";

class CapturedSweep : public SweepFixture {
 protected:
  CapturedSweep() {
    save_capture(made_exploration_input({.layers = 3}, {}).captures.front(), file("made.json"));
  }

  [[nodiscard]] SweepPlan plan(const std::string& axes, const std::string& more = "") const {
    return plan_sweep(
        parse_experiment("schema = 1\nname = 'captured'\n[axes]\ngpu = 'a100-sxm4-80gb'\n"
                         "captured_clock = '1593/1410'\nclocks = 'coarse'\n"
                         "switch_latency_us = [1000, 22000]\n" +
                             axes + more,
                         file("e.toml")));
  }
  [[nodiscard]] SweepPlan made(const std::string& more = "") const {
    return plan(slacks + "capture = 'made.json'\ngranularity = ['run', 'kernel', 'segment']\n",
                more);
  }

  // Each unit beside one exploration of its question, asked by hand.
  static void expect_as_explored(const SweepPlan& all, const std::filesystem::path& db,
                                 const std::filesystem::path& capture) {
    for (const Unit& unit : all.units) {
      const Question& question = unit.question;
      GraphExplorationInput input{.captures = {import_capture(capture)},
                                  .spec = load_gpu_spec("a100-sxm4-80gb"),
                                  .captured_clock = {},
                                  .grid = "coarse",
                                  .power_limit_w = {},
                                  .switching = all.settings[unit.setting].switching,
                                  .questions = {question},
                                  .odds_frac = usual_odds_frac};
      input.captured_clock = captured_clock(input.spec, "1593/1410");
      const GraphExploration found = explore_captured(input);
      const GraphPlanOutcome& outcome = found.plans.at(0);
      const auto row =
          rows(db,
               "SELECT planned_time_s, planned_energy_j, lower_bound_j, energy_change_low_pct, "
               "time_change_pct, energy_change_pct, in_time, switch_latency_us, "
               "slack_pct, granularity, anchored_pct, guessed_split_pct, "
               "measured_pct + anchored_pct + scaled_pct + derived_pct + guessed_pct + fixed_pct "
               "FROM v_plans WHERE question_hash = '" +
                   unit.question_id + "'")
              .at(0);
      EXPECT_EQ(std::get<double>(row[0]), outcome.result.run.span_s);
      EXPECT_EQ(std::get<double>(row[1]), outcome.result.run.total_energy_j);
      EXPECT_EQ(std::get<double>(row[2]), outcome.result.lower_bound_j);
      EXPECT_NEAR(std::get<double>(row[3]),
                  100.0 * (outcome.interval.low.energy_frac + outcome.counted->change.energy_frac -
                           outcome.change.energy_frac),
                  1e-9);
      EXPECT_NEAR(std::get<double>(row[4]), 100.0 * outcome.counted->change.time_frac, 1e-9);
      EXPECT_NEAR(std::get<double>(row[5]), 100.0 * outcome.counted->change.energy_frac, 1e-9);
      EXPECT_EQ(std::get<std::int64_t>(row[6]), outcome.counted->in_time ? 1 : 0);
      EXPECT_DOUBLE_EQ(std::get<double>(row[7]), 1e6 * input.switching->core.latency_s());
      EXPECT_DOUBLE_EQ(std::get<double>(row[8]), 100.0 * *allowed_frac(question));
      EXPECT_EQ(std::get<std::string>(row[9]), name_of(question.granularity));
      const GraphCoverage& c = found.coverage;
      EXPECT_NEAR(std::get<double>(row[10]), 100.0 * c.anchored_s / c.total_s(), 1e-9);
      EXPECT_NEAR(std::get<double>(row[11]), 100.0 * c.guessed_split_s / c.total_s(), 1e-9);
      EXPECT_NEAR(std::get<double>(row[12]), 100.0, 1e-9);
    }
  }
};

// Every stored number of a sweep without ids that depend on the order of work, and without times.
const std::vector<std::string> contents{
    "SELECT question_hash, result_hash, granularity, slack_pct, status, time_s, energy_j, "
    "lower_bound, gap_pct, applied_energy_j, in_time, is_answer FROM plans ORDER BY 1",
    "SELECT p.question_hash, k.unit_id, k.clock_id, k.time_s, k.energy_j FROM plans p JOIN "
    "plan_units k USING (plan_id) ORDER BY 1, 2, 3",
    "SELECT p.question_hash, g.segment_id, g.clock_id, g.start_s, g.energy_j FROM plans p JOIN "
    "plan_segments g USING (plan_id) ORDER BY 1, 2",
    "SELECT r.run_hash, r.result_hash, r.switch_lead_s, c.label, c.time_s, c.energy_j FROM runs r "
    "JOIN clocks c USING (run_id) ORDER BY 1, 4",
    "SELECT r.run_hash, i.kind, i.input_hash FROM runs r JOIN v_inputs i USING (run_id) ORDER BY "
    "1, 2",
    "SELECT r.run_hash, f.point_id, f.time_s, f.bound_j FROM runs r JOIN fronts f USING (run_id) "
    "ORDER BY 1, 2",
    "SELECT x.experiment_id, x.scenario, p.question_hash FROM experiment_plans x JOIN plans p "
    "USING "
    "(plan_id) ORDER BY 1, 2, 3",
    "SELECT name, value FROM model_errors ORDER BY 1"};

void expect_equal_contents(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const std::string& sql : contents) {
    const auto expected = ResultStore::open_read_only(a).query(sql).rows;
    EXPECT_FALSE(expected.empty()) << sql;
    EXPECT_EQ(ResultStore::open_read_only(b).query(sql).rows, expected) << sql;
  }
}

TEST_F(CapturedSweep, TheAnswersAreThoseOfExplore) {
  const SweepPlan all = made();
  EXPECT_EQ(all.settings.size(), 2U);
  EXPECT_EQ(run(all, file("a.db")).finished, 18U);
  expect_as_explored(all, file("a.db"), file("made.json"));
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM v_runs WHERE kind = 'capture'"), 2);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM v_runs WHERE kind = 'trace'"), 0);
  const SqlConnection stored(file("a.db"), SqlConnection::Mode::create);
  EXPECT_FALSE(SqlStatement(stored, "SELECT * FROM pragma_foreign_key_check").next());
}

// Whichever unit is the first to be stored.
TEST_F(CapturedSweep, TheFrontIsThatOfNoUnit) {
  const auto example = source_dir() / "docs/examples/run.pt.trace.json.gz";
  const SweepPlan all = plan("slack_pct = [0, 3, 40]\ncapture = '" + example.string() +
                             "'\ngranularity = ['run', 'kernel']\n");
  const std::string front =
      "SELECT r.run_hash, f.point_id, f.time_s, f.bound_j FROM runs r JOIN fronts f USING (run_id) "
      "ORDER BY 1, 2";
  std::vector<std::vector<SqlValue>> first;
  for (std::size_t u = 0; u < all.units.size(); ++u) {
    const Question& question = all.units[u].question;
    const std::filesystem::path db = file("first" + std::to_string(u) + ".db");
    SweepStore store(db);
    store.begin(all);
    EXPECT_EQ(run_sweep(all, {u}, store, {1, "test"}, {}, {}).finished, 1U);
    const auto stored = rows(db, front);
    if (question.granularity == Granularity::run) {
      EXPECT_TRUE(stored.empty());
      continue;
    }
    ASSERT_FALSE(stored.empty());
    if (all.units[u].setting != 0) continue;
    if (first.empty()) first = stored;
    EXPECT_EQ(stored, first) << u;
  }
  EXPECT_FALSE(first.empty());
}

TEST_F(CapturedSweep, TheShippedExampleAtTwoLatenciesAndThreeSlacks) {
  const auto example = source_dir() / "docs/examples/run.pt.trace.json.gz";
  const SweepPlan all =
      plan(slacks + "capture = '" + example.string() + "'\ngranularity = 'kernel'\n");
  EXPECT_EQ(run(all, file("a.db")).finished, 6U);
  expect_as_explored(all, file("a.db"), example);
  // Slack that a plan misses as played is said, and such a plan is never the best one.
  EXPECT_GT(number(file("a.db"), "SELECT count(*) FROM v_plans WHERE NOT in_time"), 0);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM v_plans WHERE is_answer AND NOT in_time"),
            0);
}

TEST_F(CapturedSweep, AStoppedSweepIsResumedToTheSameContents) {
  const SweepPlan all = made();
  run(all, file("whole.db"));
  std::atomic<bool> stop = false;
  const SweepObserver observer{.started = {}, .done = [&](const SweepProgress& progress) {
                                 ASSERT_TRUE(progress.answer);
                                 if (progress.done == 5) stop = true;
                               }};
  const SweepSummary first =
      run(all, file("a.db"), 2, observer, {.progress = {}, .cancelled = &stop, .command_line = {}});
  EXPECT_TRUE(first.interrupted());
  EXPECT_GE(first.finished, 5U);
  EXPECT_EQ(run(all, file("a.db")).finished, 18U - first.finished);
  EXPECT_EQ(run(all, file("a.db")).finished, 0U);
  expect_equal_contents(file("whole.db"), file("a.db"));
}

TEST_F(CapturedSweep, ShardsMergeToTheWhole) {
  const SweepPlan all = made(
      "[scenario.named]\ngpu = 'a100-sxm4-80gb'\ncapture = 'made.json'\n"
      "clocks = 'coarse'\ngranularity = 'gpu'\n");
  run(all, file("whole.db"));
  SqlConnection target = open_result_database(file("merged.db"));
  std::int64_t units = 0;
  for (std::size_t i = 1; i <= 2; ++i) {
    const auto shard = file("shard" + std::to_string(i) + ".db");
    SweepStore store(shard);
    store.begin(all);
    const std::vector<std::size_t> mine = units_of(all, {i, 2});
    EXPECT_LT(mine.size(), all.units.size());
    run_sweep(all, mine, store, {1, "shard"}, {}, {});
    units += merge(target, file("merged.db"), shard).new_plans;
  }
  EXPECT_EQ(units, static_cast<std::int64_t>(all.units.size()));
  expect_equal_contents(file("whole.db"), file("merged.db"));
  for (const char* name : {"shard1.db", "shard2.db", "whole.db"}) {
    const MergeCounts again = merge(target, file("merged.db"), file(name));
    EXPECT_EQ(again.new_runs + again.new_plans + again.new_measurements, 0) << name;
    EXPECT_GT(again.known_runs, 0);
  }
  expect_equal_contents(file("whole.db"), file("merged.db"));
  EXPECT_FALSE(SqlStatement(target, "PRAGMA foreign_key_check").next());
  EXPECT_EQ(run(all, file("merged.db")).finished, 0U);
  // The same question with another answer is refused.
  open_result_database(file("shard1.db")).execute("UPDATE plans SET result_hash = 'other'");
  expect_error<DataError>([&] { merge(target, file("merged.db"), file("shard1.db")); },
                          "has another result than in", "answered in two ways");
}

TEST_F(CapturedSweep, StandsBesideTracesInOneExperiment) {
  const SweepPlan all = plan(
      "capture = 'made.json'\nmodel = 'gpt3-small'\nbatch = 4\nsequence = 128\ngranularity = "
      "'pass'\nslack_pct = 1\n");
  EXPECT_EQ(all.units.size(), 4U);
  EXPECT_EQ(run(all, file("a.db")).finished, 4U);
  EXPECT_EQ(number(file("a.db"),
                   "SELECT count(*) FROM v_experiment_plans WHERE energy_change_pct <= 0 AND "
                   "(model IS NULL) = (captured_clock IS NOT NULL)"),
            4);
  EXPECT_EQ(number(file("a.db"),
                   "SELECT plans FROM v_axes WHERE axis = 'work' AND value = "
                   "'made.json'"),
            2);
  const ResultStore store = ResultStore::open_read_only(file("a.db"));
  const std::string page = experiment_page(store, all.experiment.id);
  for (const auto& row : rows(file("a.db"), "SELECT run_id FROM v_runs WHERE kind = 'capture'")) {
    EXPECT_NE(page.find(fmt::format("[{},\"run\",", std::get<std::int64_t>(row[0]))),
              std::string::npos);
  }
}

TEST_F(CapturedSweep, IdsFollowWhatTheAnswerDependsOn) {
  const auto ids = [&](const std::string& capture, const std::string& clock) {
    const SweepPlan all = plan_sweep(parse_experiment(
        "schema = 1\nname = 'n'\n[axes]\ngpu = 'a100-sxm4-80gb'\ncapture = '" + capture +
            "'\ncaptured_clock = '" + clock + "'\nclocks = 'coarse'\nslack_pct = [0, 1]\n",
        file("e.toml")));
    std::vector<std::string> found;
    for (const Unit& unit : all.units) found.push_back(unit.question_id);
    return found;
  };
  const std::vector<std::string> original = ids("made.json", "1593/1410");
  EXPECT_NE(original.at(0), original.at(1));
  // The name of a file is not what the answer depends on, what it holds is.
  std::filesystem::copy_file(file("made.json"), file("copy.json"));
  EXPECT_EQ(ids("copy.json", "1593/1410"), original);
  EXPECT_NE(ids("made.json", "1593/1005"), original);
  save_capture(made_exploration_input({.layers = 4}, {}).captures.front(), file("made.json"));
  EXPECT_NE(ids("made.json", "1593/1410"), original);
}

// Steps of the example differ, so that one step's clocks for all are late though changes are free.
TEST_F(CapturedSweep, LatePlansAreMarkedWhereChangesOfClockAreFree) {
  const auto example = source_dir() / "docs/examples/run.pt.trace.json.gz";
  const SweepPlan all = plan_sweep(parse_experiment(
      "schema = 1\nname = 'free'\n[axes]\ngpu = 'a100-sxm4-80gb'\ncaptured_clock = '1593/1410'\n"
      "clocks = 'coarse'\nslack_pct = 1\ngranularity = ['run', 'kernel']\ncapture = '" +
          example.string() + "'\n",
      file("e.toml")));
  const auto is_late = [](const SweepProgress& one) { return !one.answer->in_time; };
  std::size_t late = 0;
  EXPECT_EQ(run(all, file("a.db"), 2,
                {.started = {},
                 .done = [&](const SweepProgress& one) { late += is_late(one) ? 1U : 0U; }})
                .finished,
            2U);
  EXPECT_EQ(late, 1U);
  EXPECT_EQ(number(file("a.db"),
                   "SELECT count(*) FROM v_plans WHERE granularity = 'kernel' AND NOT in_time AND "
                   "caveats LIKE '%slack missed%'"),
            1);
  EXPECT_EQ(number(file("a.db"),
                   "SELECT count(*) FROM v_plans WHERE granularity = 'run' AND in_time AND "
                   "gap_pct IS NOT NULL AND tolerance_pct = 0"),
            1);
}

// A goal without a slack is one exploration's own.
TEST_F(CapturedSweep, GoalsAreThoseOfAnExploration) {
  const SweepPlan all =
      plan("capture = 'made.json'\ngranularity = ['run', 'gpu']\ngoal = ['edp', 'energy']\n");
  ASSERT_EQ(all.units.size(), 8U);
  SweepStore store(file("goals.db"));
  store.begin(all);
  EXPECT_EQ(run_sweep(all, {0, 1, 2, 3, 4, 5, 6, 7}, store, {1, "test"}, {}, {}).finished, 8U);
  for (const Unit& unit : all.units) {
    const Question& question = unit.question;
    const GraphExploration found = explore_captured(graph_exploration_input(all, unit));
    ASSERT_EQ(found.plans.size(), 1U);
    const GraphPlanOutcome& plan = found.plans.front();
    EXPECT_EQ(plan.result.question.grain, question.granularity);
    EXPECT_EQ(name_of(plan.asked_goal()), name_of(question.goal));
    const auto stored = ResultStore::open_read_only(file("goals.db"))
                            .query(
                                "SELECT energy_change_pct FROM v_plans WHERE goal = ? AND "
                                "granularity = ?",
                                {SqlValue(std::string(name_of(question.goal))),
                                 SqlValue(std::string(name_of(question.granularity)))});
    ASSERT_EQ(stored.rows.size(), 2U);  // of two latencies, which one clock does not meet
    EXPECT_DOUBLE_EQ(std::get<double>(stored.rows.front().front()),
                     100.0 * plan.change.energy_frac);
  }
}

TEST_F(CapturedSweep, AFolderWithWildcardsInItsNameIsAFolder) {
  std::filesystem::create_directory(file("run[1]*"));
  std::filesystem::copy_file(file("made.json"), file("run[1]*/rank0.json"));
  EXPECT_EQ(read_captured_files("rank0.json", file("run[1]*")).files.size(), 1U);
  EXPECT_EQ(read_captured_files("rank*.json", file("run[1]*")).files.size(), 1U);
}

TEST_F(CapturedSweep, SaysWhatItCannotPlan) {
  const std::string capture = "capture = 'made.json'\n";
  expect_error<DataError>([&] { (void)plan(capture + "granularity = 'passes'\n"); },
                          "granularity 'passes' is not known; did you mean 'pass'",
                          "leave impossible combinations out");
  expect_error<DataError>([&] { (void)plan(capture + "goal = 'time'\n"); },
                          "goal 'time' needs either energy_budget_j or power_budget_w");
  expect_error<DataError>([&] { (void)plan(capture + "tolerance_pct = 1\n"); },
                          "captured runs have no tolerance");
  expect_error<DataError>([&] { (void)plan(capture + "granularity = 'stage'\n"); },
                          "captures do not say which ranks form a stage");
  expect_error<UsageError>(
      [&] {
        Point point;
        point[AxisId::captured_clock] = std::string("1593/1");
        (void)captured_work(nullptr, load_gpu_spec("a100-sxm4-80gb"), point);
      },
      "'1593/1' is no captured clock of a100-sxm4-80gb: no core clock is near 1");
  expect_error<DataError>([&] { (void)plan(capture + "power_limit_w = 1\n"); },
                          "a power limit of 1 W is outside");
  expect_error<IoError>([&] { (void)plan("capture = 'none*.json'\n"); },
                        "no file is named like 'none*.json', neither in " + folder_.path().string(),
                        "beside the experiment, then in the working directory");
  expect_error<DataError>([&] { (void)plan("trace = 'gpt3-xl'\n"); },
                          "captured_clock: this applies to captures only");
  expect_error<DataError>(
      [] { (void)parse_experiment("schema = 1\nname = 'n'\n[axes]\ngpu = 'a40'\n", "e.toml"); },
      "none of 'trace', 'capture' and 'model' is given");
}

}  // namespace
}  // namespace rubato
