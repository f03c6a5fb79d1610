#include "explorer/results/store.hpp"

#include <algorithm>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "explorer/results/merge.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

// A folder of its own for each test.
class Store : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path db() const { return folder_ / "r.db"; }

  // Runs SQL with plain SQLite, as another program would.
  void plain_sql(const std::string& sql) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(db().c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle);
    sqlite3_close(handle);
  }

  static std::int64_t number(const ResultStore& store, const std::string& sql) {
    return std::get<std::int64_t>(store.query(sql).rows.at(0).at(0));
  }

  static std::int64_t add_run(const std::filesystem::path& path,
                              const ExplorationInput& input = small_input()) {
    return store_trace(path, input, explore(input), {"rubato explore", "{}"});
  }

  TemporaryFolder folder_;
};

TEST_F(Store, KeepsEveryNumberOfARun) {
  const ExplorationInput input = small_input();
  const Exploration found = explore(input);
  store_trace(db(), input, found, {"rubato explore", "{}"});
  const ResultStore store = ResultStore::open_read_only(db());
  EXPECT_EQ(number(store, "SELECT count(*) FROM v_cells"), 46 * 6);
  EXPECT_EQ(number(store, "SELECT count(*) FROM v_plans"), 5);
  EXPECT_EQ(
      number(store, "SELECT count(*) FROM v_plans WHERE status = 'infeasible' AND time_s IS NULL"),
      1);
  const auto row =
      store.query("SELECT planned_energy_j, planned_time_s FROM v_plans WHERE goal = 'edp'")
          .rows.at(0);
  EXPECT_EQ(std::get<double>(row[0]), found.plans[3].sim.total.energy_j);
  EXPECT_EQ(std::get<double>(row[1]), found.plans[3].sim.total.time_s);
  // The inputs are whole: the run can be made again from the database alone.
  const auto spec = store.query("SELECT text FROM inputs WHERE kind = 'gpu_spec'").rows.at(0);
  EXPECT_EQ(std::get<std::string>(spec[0]), to_json(input.spec));
  EXPECT_EQ(number(store, "SELECT count(*) FROM v_answer WHERE is_headline AND asked"), 1);
}

// Marks, plans with their changes counted, what to expect of them, and kernels at other shapes.
TEST_F(Store, KeepsWhatToKnowBesideAPlan) {
  ExplorationInput input = small_input();
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.batch = 20;
  input.trace = generate_training_step(shape).trace;
  input.spec.switching.core_s = 0.01;
  input.spec.memory_gb = 1.0;
  input.questions = {{Granularity::kernel, Aggregation::global, LeastWaste{}}};
  const Exploration found = explore(input);
  store_trace(db(), input, found, {"rubato explore", "{}"});
  const ResultStore store = ResultStore::open_read_only(db());
  const auto scaled = std::ranges::count(found.coefficient_sources, CoefficientSource::scaled);
  EXPECT_GT(scaled, 0);
  EXPECT_EQ(number(store, "SELECT count(*) FROM units WHERE source = 'scaled'"), scaled);
  const PlanResult& plan = found.plans.front();
  const auto row = store
                       .query(
                           "SELECT energy_change_pct, energy_change_expected_pct, "
                           "planned_energy_change_pct, clock_changes_per_s FROM v_plans")
                       .rows.at(0);
  EXPECT_NEAR(std::get<double>(row[0]),
              change_pct(plan.counted->energy_j, found.baseline.total.energy_j), 1e-9);
  EXPECT_NE(std::get<double>(row[0]), std::get<double>(row[2]));
  EXPECT_NEAR(
      std::get<double>(row[1]),
      plan.interval->energy.median_pct + std::get<double>(row[0]) - std::get<double>(row[2]),
      1e-9);  // moved by what changes of clock take
  EXPECT_NEAR(std::get<double>(row[3]),
              static_cast<double>(plan.counted->clock_switches) / plan.counted->time_s, 1e-9);
  for (const Mark& mark : plan.marks) {
    const auto stored =
        store.query("SELECT reason FROM v_caveats WHERE plan_id NOT NULL AND kind = ?",
                    {std::string(name_of(mark.kind))});
    EXPECT_EQ(std::get<std::string>(stored.rows.at(0).at(0)), mark.reason);
  }
  const auto notes = store.query("SELECT caveats FROM v_runs").rows.at(0);
  EXPECT_EQ(std::get<std::string>(notes[0]), "scaled, too large");
  {
    SqlConnection merged = open_result_database(folder_ / "merged.db");
    EXPECT_EQ(merge(merged, folder_ / "merged.db", db()).new_runs, 1);
  }
  EXPECT_EQ(
      number(ResultStore::open_read_only(folder_ / "merged.db"), "SELECT count(*) FROM v_caveats"),
      static_cast<std::int64_t>(plan.marks.size() + found.baseline_marks.size()));
}

// A power limit below what the lowest clock draws holds nothing back: the plan says so where it is
// looked up, whatever the solver proved.
TEST_F(Store, PlansSayThatALimitIsNotReached) {
  for (const double limit_w : {100.0, 250.0}) {
    ExplorationInput input = small_input();
    input.spec = load_gpu_spec("a40");
    input.grid = "full";
    input.power_limit_w = limit_w;
    input.questions.pop_back();  // the one without an answer
    const std::int64_t run = add_run(db(), input);
    const ResultStore store = ResultStore::open_read_only(db());
    const auto rows = store.query("SELECT caveats FROM v_plans WHERE run_id = ?", {run}).rows;
    EXPECT_EQ(rows.size(), input.questions.size());
    for (const auto& row : rows) {
      const auto* notes = std::get_if<std::string>(&row.at(0));
      const bool says_so =
          notes != nullptr && notes->find("limit not reached") != std::string::npos;
      EXPECT_EQ(says_so, limit_w == 100.0);
    }
    const auto reasons = store.query(
        "SELECT reason FROM v_caveats WHERE run_id = ? AND kind = 'limit not reached' AND plan_id "
        "IS NULL",
        {run});
    ASSERT_EQ(reasons.rows.size(), limit_w == 100.0 ? 1U : 0U);
    if (limit_w == 100.0) {
      EXPECT_NE(std::get<std::string>(reasons.rows[0][0]).find("more than the limit of 100 W"),
                std::string::npos);
    }
  }
}

TEST_F(Store, StoresEqualInputsOnce) {
  add_run(db());
  EXPECT_EQ(add_run(db()), 2);
  const ResultStore store = ResultStore::open_read_only(db());
  EXPECT_EQ(number(store, "SELECT count(*) FROM inputs"), 2);
  EXPECT_GT(number(store, "SELECT count(*) FROM v_compare WHERE run_a = 1 AND run_b = 2"), 3);
}

TEST_F(Store, QueriesCanOnlyRead) {
  add_run(db());
  const ResultStore store = ResultStore::open_read_only(db());
  for (const char* sql : {"DELETE FROM runs", "DROP TABLE runs", "ATTACH 'x.db' AS x",
                          "PRAGMA user_version = 7", "INSERT INTO runs DEFAULT VALUES",
                          "CREATE TEMP TABLE t (a)", "SELECT load_extension('x')"}) {
    expect_error<UsageError>([&] { (void)store.query(sql); }, "SQL: ");
  }
  expect_error<UsageError>([&] { (void)store.query("SELECT 1; SELECT 2"); },
                           "expected exactly one statement");
  expect_error<UsageError>([&] { (void)store.query("SELECT * FROM nowhere"); },
                           "no such table: nowhere", "there are v_answer, ");
  EXPECT_EQ(number(store, "SELECT count(*) FROM runs"), 1);
}

TEST_F(Store, HostileNamesAreOnlyText) {
  ExplorationInput input = small_input();
  const std::string hostile = "'); DROP TABLE runs; --\"<script>\x1b[31m";
  input.trace.kernels[0].label = hostile;
  input.trace.name = hostile;
  add_run(db(), input);
  const ResultStore store = ResultStore::open_read_only(db());
  EXPECT_EQ(std::get<std::string>(store.query("SELECT work FROM v_runs").rows.at(0).at(0)),
            hostile);
}

TEST_F(Store, AFailedRunLeavesNothingBehind) {
  add_run(db());
  const ExplorationInput input = small_input();
  Exploration broken = explore(input);
  broken.cells.back().energy_j = -1.0;  // breaks a CHECK
  const ResultStore store = ResultStore::open(db());
  expect_error<IoError>(
      [&] {
        (void)store_trace(db(), input, broken, {"", "{}"});
      },
      "CHECK constraint failed");
  EXPECT_EQ(number(store, "SELECT count(*) FROM runs"), 1);
  EXPECT_EQ(std::get<std::string>(store.query("PRAGMA integrity_check").rows.at(0).at(0)), "ok");
}

TEST_F(Store, SaysWhenTheFileIsNotItsOwn) {
  expect_error<IoError>([&] { (void)ResultStore::open_read_only(db()); },
                        "cannot open the database", "check that the file");
  write_file(db(), std::string(4096, 'x'));
  expect_error<IoError>([&] { (void)ResultStore::open(db()); }, "file is not a database",
                        "not an SQLite database");
  EXPECT_EQ(read_file(db()), std::string(4096, 'x'));
  std::filesystem::remove(db());
  plain_sql("CREATE TABLE mine (a)");
  expect_error<IoError>([&] { (void)ResultStore::open(db()); }, "was not made by rubato");
}

TEST_F(Store, RefusesAnotherSchema) {
  add_run(db());
  for (const int version : {0, 2, 99}) {
    plain_sql(fmt::format("PRAGMA user_version = {}", version));
    const std::string message =
        fmt::format("the database has schema {}; expected {}", version, ResultStore::schema);
    const std::string before = read_file(db());
    expect_error<IoError>([&] { (void)ResultStore::open(db()); }, message, "another version");
    expect_error<IoError>([&] { (void)ResultStore::open_read_only(db()); }, message);
    expect_error<IoError>([&] { check_result_database(db()); }, message);
    EXPECT_EQ(read_file(db()), before);
  }
}

TEST_F(Store, SaysWhenAPageIsDamaged) {
  add_run(db());
  plain_sql("PRAGMA wal_checkpoint(TRUNCATE)");
  std::fstream file(db(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096 * 20);
  for (int i = 0; i < 4096 * 20; ++i) file.put('\x55');
  file.close();
  expect_error<IoError>(
      [&] {
        const ResultStore store = ResultStore::open_read_only(db());
        (void)store.query("SELECT sum(time_s) FROM v_cells");
        (void)store.query("SELECT sum(length(text)) FROM inputs");
      },
      "cannot read the database", "the database is damaged");
}

TEST_F(Store, SaysWhenSomebodyElseIsWriting) {
  add_run(db());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(db().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  expect_error<IoError>([&] { add_run(db()); }, "database is locked",
                        "another program is writing to it");
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_EQ(add_run(db()), 2);
}

TEST_F(Store, TakesTwoWritersAtOnce) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([this] {
      for (int run = 0; run < 5; ++run) add_run(db());
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(number(ResultStore::open_read_only(db()), "SELECT count(*) FROM runs"), 10);
}

TEST_F(Store, SaysWhenTheFolderCannotBeWritten) {
  if (::geteuid() == 0) {
    // Root may write anywhere: a path below a file is refused to everybody.
    write_file(folder_ / "file", "");
    expect_error<IoError>([&] { (void)ResultStore::open(folder_ / "file" / "r.db"); },
                          "cannot open the database");
    return;
  }
  std::filesystem::permissions(
      folder_.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_error<IoError>([&] { (void)ResultStore::open(db()); }, "cannot open the database",
                        "check that the file");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace rubato
