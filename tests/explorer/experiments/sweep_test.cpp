#include "explorer/experiments/sweep.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "explorer/pipeline/shared/stage_planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "explorer/results/store.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/experiments/sweep_fixture.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

using Sweep = SweepFixture;

// GPUs have no grid of the same name: without clocks each has the first of its own spec.
TEST_F(Sweep, SeveralGpusNeedNoGridNamed) {
  const auto asked = [](const std::string& clocks, const std::string& gpus) {
    return plan_sweep(parse_experiment(
        "schema = 1\nname = 'gpus'\n[defaults]\nmodel = 'gpt3-xl'\nbatch = 4\nsequence = 1024\n" +
            clocks + "granularity = 'run'\n[axes]\ngpu = " + gpus + "\n",
        "gpus.toml"));
  };
  const SweepPlan both = asked("", "['rtx-3080-ti', 'a100-sxm4-80gb']");
  EXPECT_EQ(run(both, file("g.db")).finished, 2U);
  const auto stored = rows(file("g.db"), "SELECT gpu, clock_grid FROM runs ORDER BY gpu");
  ASSERT_EQ(stored.size(), 2U);
  for (const auto& row : stored) {
    const auto& gpu = std::get<std::string>(row[0]);
    EXPECT_EQ(std::get<std::string>(row[1]), grid_name(load_gpu_spec(gpu), "")) << gpu;
  }
  // The same setting as if the grid was named.
  const SweepPlan named = asked("clocks = 'full'\n", "['rtx-3080-ti']");
  EXPECT_EQ(named.settings.front().id, both.settings.front().id);
  EXPECT_EQ(run(named, file("g.db")).finished, 0U);
}

// The odds that an answer must have are an axis, stored with each plan; plans with fewer save more.
TEST_F(Sweep, OddsAreAnAxis) {
  const auto asked = [](const std::string& odds) {
    return plan_sweep(parse_experiment(
        "schema = 1\nname = 'odds'\n[axes]\ngpu = 'rtx-3080-ti'\ntrace = 'gpt3-xl'\n"
        "granularity = 'pass'\nslack_pct = 5\nodds_pct = " +
            odds + "\n",
        "odds.toml"));
  };
  EXPECT_EQ(run(asked("[0, 90, 99]"), file("o.db")).finished, 3U);
  const auto stored = rows(file("o.db"),
                           "SELECT odds_pct, odds_in_time_pct, energy_change_pct FROM "
                           "v_experiment_plans ORDER BY odds_pct");
  ASSERT_EQ(stored.size(), 3U);
  double least_pct = -100.0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const double odds_pct = std::get<double>(stored[i][0]);
    EXPECT_DOUBLE_EQ(odds_pct, (std::array{0.0, 90.0, 99.0}[i]));
    EXPECT_GE(std::get<double>(stored[i][1]), odds_pct);
    EXPECT_GE(std::get<double>(stored[i][2]), least_pct);
    least_pct = std::get<double>(stored[i][2]);
  }
  EXPECT_GT(least_pct, std::get<double>(stored[0][2]));
  // The usual odds are those of an experiment that says nothing of them.
  const SweepPlan usual = asked("90");
  EXPECT_EQ(run(usual, file("o.db")).finished, 0U);
  expect_error<DataError>([&] { (void)asked("100"); }, "odds_pct is 100");
}

TEST_F(Sweep, StoresEveryUnitOnceAndResumes) {
  const SweepPlan all = plan();
  const SweepSummary first = run(all, file("a.db"));
  EXPECT_EQ(first.finished, 8U);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM plans"), 8);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM runs"), 2);
  const SqlConnection stored(file("a.db"), SqlConnection::Mode::create);
  EXPECT_FALSE(SqlStatement(stored, "SELECT * FROM pragma_foreign_key_check").next());
  EXPECT_EQ(run(all, file("a.db")).finished, 0U);
  // Another value runs only what is new, and the other units belong to both experiments.
  EXPECT_EQ(run(plan("seed = [0]\nswitch_stall_us = [0, 5]\n"), file("a.db")).finished, 8U);
  EXPECT_EQ(number(file("a.db"),
                   "SELECT count(*) FROM v_experiments WHERE finished_units = planned_units"),
            2);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM experiment_plans"), 8 + 16);
}

TEST_F(Sweep, PipelinesStandBesideSingleGpus) {
  const SweepPlan all = plan("pipeline_parallel = [1, 2]\nmicrobatches = [1, 4]\n");
  EXPECT_EQ(run(all, file("a.db"), 2).finished, 32U);
  const auto unit = std::ranges::find_if(all.units, [&](const Unit& u) {
    const PipelineSplit* split = all.settings[u.setting].pipeline();
    return split != nullptr && split->stages == 2 && split->microbatches == 4 &&
           split->shape.batch == 8 && u.question.granularity == Granularity::pass;
  });
  ASSERT_NE(unit, all.units.end());
  // By hand: the stages' profile, the schedule, a plan no slower than the default clocks.
  const Setting& setting = all.settings[unit->setting];
  TrainingStep shape = setting.pipeline()->shape;
  shape.batch = 2;
  const double idle_w = model_idle_power_w(*setting.spec, setting.clocks);
  const StageModelInput stages{shape, *setting.spec,        setting.clocks,
                               2,     PassClocks::per_pass, idle_w};
  const ModelProfile modelled = model_profile(stages);
  const PipelineWork work = pipeline_work(
      make_schedule({.kind = ScheduleKind::one_f_one_b, .stages = 2, .microbatches = 4}),
      modelled.profile, idle_w);
  const PipelinePlanner planner(work);
  const auto& waste = std::get<LeastWaste>(unit->question.goal);
  const std::array deadline{planner.baseline().time_s * (1.0 + waste.slack_frac)};
  const SwitchModel free;
  const PipelineIntervals intervals(stages, modelled.clocks, work, free);
  const PipelineResult result = StagePlanner(planner, {}, std::array{Granularity::pass})
                                    .plans_with_odds(&intervals, deadline, usual_odds_frac)
                                    .front()
                                    .front();
  const PipelineRun& by_hand = result.run;
  const auto stored = rows(file("a.db"),
                           "SELECT time_s, energy_j, default_energy_j, tensor_parallel "
                           "FROM v_plans WHERE question_hash = '" +
                               unit->question_id + "'")
                          .at(0);
  EXPECT_DOUBLE_EQ(std::get<double>(stored[0]), by_hand.time_s);
  EXPECT_DOUBLE_EQ(std::get<double>(stored[1]), by_hand.energy_j / 2);
  EXPECT_DOUBLE_EQ(std::get<double>(stored[2]), planner.baseline().energy_j / 2);
  const SavingInterval interval = intervals.of(result.plan);
  const auto ends = rows(file("a.db"),
                         "SELECT energy_change_low_pct, energy_change_high_pct, "
                         "energy_change_expected_pct, time_change_low_pct FROM v_plans WHERE "
                         "question_hash = '" +
                             unit->question_id + "'")
                        .at(0);
  EXPECT_DOUBLE_EQ(std::get<double>(ends[0]), interval.energy.low_pct);
  EXPECT_DOUBLE_EQ(std::get<double>(ends[1]), interval.energy.high_pct);
  EXPECT_DOUBLE_EQ(std::get<double>(ends[2]), interval.energy.median_pct);
  EXPECT_DOUBLE_EQ(std::get<double>(ends[3]), interval.time.low_pct);
  EXPECT_EQ(number(file("a.db"),
                   "SELECT count(*) FROM v_plans WHERE energy_change_low_pct NOT "
                   "BETWEEN -100 AND energy_change_pct"),
            0);
  EXPECT_EQ(run(plan("pipeline_parallel = [1, 2]\nmicrobatches = [1, 4]\n"), file("a.db")).finished,
            0U);
  expect_error<DataError>([&] { (void)plan("microbatches = 3\n"); },
                          "a batch of 4 cannot be cut into 3 equal microbatches");
  expect_error<DataError>([&] { (void)plan("microbatches = 2\naggregation = 'local'\n"); },
                          "pipelines have no plans of local aggregation");
}

// With changes of clock counted.
const Totals& applied(const PlanResult& plan) {
  return plan.counted ? *plan.counted : plan.sim.total;
}

TEST_F(Sweep, CountsTheNodeAndPlansForLeastCost) {
  const std::string prices = "price_per_kwh = 0.12\nprice_per_gpu_hour = 0.05\npue = 1.2\n";
  const SweepPlan all = plan("host_power_w = [0, 150]\ngoal = ['strict_waste', 'cost']\n" + prices);
  run(all, file("c.db"));
  const Prices given{.per_kwh = 0.12, .per_gpu_hour = 0.05, .pue = 1.2};
  for (const Unit& unit : all.units) {
    const Exploration found = explore(exploration_input(all, unit));
    const auto stored = rows(file("c.db"),
                             "SELECT v.energy_j, v.default_energy_j, p.objective FROM v_plans v "
                             "JOIN plans p USING (plan_id) WHERE v.question_hash = '" +
                                 unit.question_id + "'")
                            .at(0);
    const Totals& total = found.plans[0].sim.total;
    EXPECT_DOUBLE_EQ(std::get<double>(stored[0]), applied(found.plans[0]).energy_j);
    EXPECT_DOUBLE_EQ(std::get<double>(stored[1]), found.baseline.total.energy_j);
    if (std::holds_alternative<LeastCost>(unit.question.goal)) {
      EXPECT_NEAR(std::get<double>(stored[2]), given.of(total.time_s, total.energy_j), 1e-12);
    }
  }
  EXPECT_EQ(number(file("c.db"),
                   "SELECT count(*) FROM v_plans WHERE host_power_w = 150 AND default_energy_j > "
                   "(SELECT min(default_energy_j) FROM v_plans) + 150 * default_time_s - 1e-6"),
            number(file("c.db"), "SELECT count(*) / 2 FROM v_plans"));
  // The rest of the node is in the default clocks' energy as well.
  EXPECT_EQ(
      number(file("c.db"),
             "SELECT count(DISTINCT round(default_energy_j, 6)) FROM v_plans WHERE batch = 4"),
      2);
  // Pipelines as well, whose least cost is not above that of least energy in no more time.
  run(plan("pipeline_parallel = 2\nmicrobatches = 4\nhost_power_w = 150\n"
           "goal = ['strict_waste', 'cost']\n" +
           prices),
      file("p.db"));
  EXPECT_EQ(number(file("p.db"),
                   "SELECT count(*) FROM v_plans c JOIN v_plans w USING (batch, granularity) JOIN "
                   "plans p ON p.plan_id = c.plan_id WHERE c.goal = 'least_cost' AND w.goal = "
                   "'strict_waste' AND p.objective <= 1.001 * (1.2 * 0.12 * w.energy_j / 3.6e6 + "
                   "0.05 * w.time_s / 3600) AND p.lower_bound <= p.objective"),
            4);
  expect_error<DataError>([] { (void)plan("goal = 'cost'\n"); }, "goal 'cost' needs price_per_kwh");
  expect_error<DataError>([&] { (void)plan("goal = 'cost'\nprice_per_kwh = 1\npue = 0.5\n"); },
                          "pue is 0.5; expected a number >= 1");
}

TEST_F(Sweep, HasTheSameBitsForAnyNumberOfThreadsAndAnyOrder) {
  const SweepPlan all = plan();
  run(all, file("one.db"), 1);
  run(all, file("two.db"), 2);
  {
    SweepStore store(file("parts.db"));
    store.begin(all);
    std::vector<std::size_t> units(all.units.size());
    std::iota(units.rbegin(), units.rend(), std::size_t{0});
    for (const std::size_t u : units) run_sweep(all, {u}, store, {1, ""}, {}, {});
  }
  for (const std::string& sql : sweep_contents) {
    const auto expected = rows(file("one.db"), sql);
    EXPECT_FALSE(expected.empty()) << sql;
    EXPECT_EQ(rows(file("two.db"), sql), expected) << sql;
    EXPECT_EQ(rows(file("parts.db"), sql), expected) << sql;
  }
}

TEST_F(Sweep, TheAnswersAreThoseOfExplore) {
  const SweepPlan all = plan();
  run(all, file("a.db"));
  for (const Unit& unit : all.units) {
    const Exploration found = explore(exploration_input(all, unit));
    const auto row =
        rows(file("a.db"),
             "SELECT energy_j, time_s, default_energy_j FROM v_plans WHERE question_hash = '" +
                 unit.question_id + "'")
            .at(0);
    EXPECT_EQ(std::get<double>(row[0]), applied(found.plans[0]).energy_j);
    EXPECT_EQ(std::get<double>(row[1]), applied(found.plans[0]).time_s);
    EXPECT_EQ(std::get<double>(row[2]), found.baseline.total.energy_j);
  }
}

TEST_F(Sweep, CtrlCFinishesWhatIsInFlight) {
  const SweepPlan all = plan();
  std::atomic<bool> stop = false;
  const SweepObserver observer{.started = {}, .done = [&](const SweepProgress& progress) {
                                 if (progress.done == 3) stop = true;
                               }};
  const SweepSummary summary =
      run(all, file("a.db"), 1, observer, {.progress = {}, .cancelled = &stop, .command_line = {}});
  EXPECT_TRUE(summary.interrupted());
  EXPECT_EQ(summary.finished, 4U);  // they go by two
  EXPECT_EQ(summary.not_started, 4U);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM plans"), 4);
  EXPECT_EQ(run(all, file("a.db")).finished, 4U);
}

TEST_F(Sweep, TwoProcessesMayShareADatabase) {
  const SweepPlan all = plan("seed = [0, 1, 2]\n");
  std::array<SweepSummary, 2> summaries;
  {
    std::vector<std::jthread> processes;
    for (SweepSummary& summary : summaries)
      processes.emplace_back([&] { summary = run(all, file("a.db"), 1); });
  }
  EXPECT_EQ(summaries[0].finished + summaries[1].finished, 24U);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM plans"), 24);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM runs"), 6);
  run(all, file("b.db"), 1);
  for (const std::string& sql : sweep_contents)
    EXPECT_EQ(rows(file("a.db"), sql), rows(file("b.db"), sql)) << sql;
}

// On a database of millions of rows a query that reads every row of a table is a coffee break. Only
// tables with a row per run or experiment may be scanned, and only where the question is about all.
TEST_F(Sweep, DocumentedQueriesFindTheirRowsByIndex) {
  run(plan("[scenario.named]\nbatch = [4, 16]\n"), file("a.db"));
  const SqlConnection connection(file("a.db"), SqlConnection::Mode::read_only);
  const auto expect_searched = [&](const std::string& sql) {
    // "SCAN r USING ...": a table by name or alias; results of views and subqueries keep longer
    // names.
    static const std::set<std::string> small{"r", "e", "runs", "experiments", "a"};
    SqlStatement steps(connection, "EXPLAIN QUERY PLAN " + sql);
    while (steps.next()) {
      const auto step = std::get<std::string>(steps.value(3));
      if (!step.starts_with("SCAN ")) continue;
      const std::string what = step.substr(5, step.find(' ', 5) - 5);
      const bool made_here = what.starts_with("(") || what.starts_with("v_");
      EXPECT_TRUE(made_here || small.contains(what)) << step << "\nin: " << sql;
    }
  };
  // Those of schema.md: tests/explorer/results/questions_test.py.
  const std::string text = read_file(source_dir() / "docs/experiments.md");
  int examples = 0;
  for (std::size_t at = text.find("```sql\n"); at != std::string::npos;
       at = text.find("```sql\n", at)) {
    const std::size_t from = at + 7, to = text.find("```", from);
    expect_searched(text.substr(from, to - from));
    at = to;
    ++examples;
  }
  EXPECT_GT(examples, 3);
}

TEST_F(Sweep, AnInfeasibleQuestionIsAnAnswer) {
  const SweepPlan all = plan("goal = 'time'\nenergy_budget_j = 0.001\n");
  EXPECT_EQ(run(all, file("a.db")).finished, all.units.size());
  EXPECT_EQ(number(file("a.db"),
                   "SELECT count(*) FROM v_plans WHERE status = 'infeasible' AND energy_j IS NULL"),
            static_cast<std::int64_t>(all.units.size()));
}

}  // namespace
}  // namespace rubato
