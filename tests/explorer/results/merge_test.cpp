#include "explorer/results/merge.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "explorer/experiments/shards.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/experiments/sweep_fixture.hpp"

namespace rubato {
namespace {

class Merge : public SweepFixture {
 protected:
  // All of it in a.db and in b.db, which says of one unit that something else came out.
  void run_twice_otherwise(const SweepPlan& all) const {
    run(all, file("a.db"));
    run(all, file("b.db"));
    open_result_database(file("b.db"))
        .execute("UPDATE plans SET result_hash = 'other' WHERE question_hash = '" +
                 all.units[3].question_id + "'");
  }
};

TEST_F(Merge, ShardsMakeTheWhole) {
  const SweepPlan all = plan("[scenario.named]\nbatch = [4, 16]\n");
  run(all, file("whole.db"));
  SqlConnection target = open_result_database(file("merged.db"));
  std::int64_t units = 0;
  for (std::size_t i = 1; i <= 3; ++i) {
    const auto shard = file("shard" + std::to_string(i) + ".db");
    SweepStore store(shard);
    store.begin(all);
    run_sweep(all, units_of(all, {i, 3}), store, {1, "shard"}, {}, {});
    units += merge(target, file("merged.db"), shard).new_plans;
  }
  EXPECT_EQ(units, static_cast<std::int64_t>(all.units.size()));
  for (const std::string& sql : sweep_contents)
    EXPECT_EQ(rows(file("merged.db"), sql), rows(file("whole.db"), sql)) << sql;
  // Again, and from the whole: nothing is new.
  for (const char* name : {"shard1.db", "shard3.db", "whole.db"}) {
    const MergeCounts again = merge(target, file("merged.db"), file(name));
    EXPECT_EQ(again.new_runs + again.new_plans, 0) << name;
    EXPECT_GT(again.known_runs, 0);
  }
  for (const std::string& sql : sweep_contents)
    EXPECT_EQ(rows(file("merged.db"), sql), rows(file("whole.db"), sql)) << sql;
  EXPECT_EQ(number(file("merged.db"), "SELECT count(*) FROM merges"), 3);
  EXPECT_FALSE(SqlStatement(target, "PRAGMA foreign_key_check").next());
  // A sweep goes on where the merged shards are.
  EXPECT_EQ(run(all, file("merged.db")).finished, 0U);
}

// The first source is copied as it is, the others are merged into it.
TEST_F(Merge, NewFilesAreMadeFromTheFirstSource) {
  const SweepPlan all = plan("[scenario.named]\nbatch = [4, 16]\n");
  run(all, file("whole.db"));
  {
    MergeTarget target(file("new/merged.db"));
    for (std::size_t i = 1; i <= 3; ++i) {
      const auto shard = file("shard" + std::to_string(i) + ".db");
      SweepStore store(shard);
      store.begin(all);
      const auto mine = units_of(all, {i, 3});
      run_sweep(all, mine, store, {1, "shard"}, {}, {});
      const MergeCounts counts = target.take(shard);
      EXPECT_EQ(counts.new_plans, static_cast<std::int64_t>(mine.size()));
      EXPECT_EQ(counts.known_plans + counts.new_measurements, 0);
      EXPECT_EQ(target.take(shard).new_plans, 0);
    }
    EXPECT_FALSE(std::filesystem::exists(file("new/merged.db")));
    target.finish();
  }
  for (const std::string& sql : sweep_contents)
    EXPECT_EQ(rows(file("new/merged.db"), sql), rows(file("whole.db"), sql)) << sql;
  EXPECT_EQ(number(file("new/merged.db"), "SELECT count(*) FROM merges"), 3);
  SqlConnection merged = open_result_database(file("new/merged.db"));
  EXPECT_FALSE(SqlStatement(merged, "PRAGMA foreign_key_check").next());
  SqlStatement mode(merged, "PRAGMA journal_mode");
  ASSERT_TRUE(mode.next());
  EXPECT_EQ(std::get<std::string>(mode.value(0)), "wal");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(file("new")))
    files += entry.path().filename().string().ends_with(".merging") ? 1U : 0U;
  EXPECT_EQ(files, 0U);
}

// Tables of a user's own are not ours to copy, and of a merged file no merge is told.
TEST_F(Merge, NewFilesHoldWhatIsMergedOnly) {
  const SweepPlan all = plan();
  run(all, file("whole.db"));
  SqlConnection(file("whole.db"), SqlConnection::Mode::create)
      .execute("INSERT INTO merges VALUES (NULL, 't', 'elsewhere', 'h', 1, 1)");
  for (const char* own : {"", "CREATE TABLE notes (t TEXT); INSERT INTO notes VALUES ('mine')"}) {
    SqlConnection(file("whole.db"), SqlConnection::Mode::create).execute(own);
    {
      MergeTarget target(file("merged.db"));
      EXPECT_EQ(target.take(file("whole.db")).new_plans,
                static_cast<std::int64_t>(all.units.size()));
    }
    for (const std::string& sql : sweep_contents)
      EXPECT_EQ(rows(file("merged.db"), sql), rows(file("whole.db"), sql)) << sql;
    EXPECT_EQ(number(file("merged.db"), "SELECT count(*) FROM merges WHERE new_plans > 1"), 1);
    EXPECT_EQ(number(file("merged.db"), "SELECT count(*) FROM merges"), 1);
    EXPECT_EQ(number(file("merged.db"), "SELECT count(*) FROM sqlite_schema WHERE name = 'notes'"),
              0);
    std::filesystem::remove(file("merged.db"));
  }
}

TEST_F(Merge, NewFilesKeepWhatWasMergedBeforeAnError) {
  const SweepPlan all = plan();
  run_twice_otherwise(all);
  {
    MergeTarget target(file("merged.db"));
    target.take(file("a.db"));
    expect_error<DataError>([&] { target.take(file("b.db")); },
                            "has another result than in " + file("merged.db").string());
  }
  EXPECT_EQ(number(file("merged.db"), "SELECT count(*) FROM plans"),
            static_cast<std::int64_t>(all.units.size()));
  // What somebody else wrote there meanwhile stays.
  std::filesystem::remove(file("merged.db"));
  {
    MergeTarget target(file("merged.db"));
    target.take(file("a.db"));
    SqlConnection other = open_result_database(file("merged.db"));
    other.execute("INSERT INTO merges VALUES (NULL, 't', 'elsewhere', 'h', 1, 1)");
  }
  EXPECT_EQ(number(file("merged.db"), "SELECT count(*) FROM merges"), 2);
  EXPECT_EQ(number(file("merged.db"), "SELECT count(*) FROM plans"),
            static_cast<std::int64_t>(all.units.size()));
}

TEST_F(Merge, RefusesRowsThatReferToNothing) {
  run(plan(), file("sound.db"), 1);
  SqlConnection target = open_result_database(file("merged.db"));
  for (const std::string& sql :
       {std::string("DELETE FROM clocks WHERE run_id = 1 AND clock_id = 1"),
        std::string("DELETE FROM clocks WHERE run_id = 2"),
        std::string("DELETE FROM units WHERE run_id = 1 AND unit_id = 3"),
        std::string("DELETE FROM gpus WHERE run_id = 1"),
        std::string("DELETE FROM cells WHERE cell_id = 2"),
        std::string("DELETE FROM cell_rows WHERE first_cell = 1"),
        std::string("UPDATE cell_rows SET clocks = clocks + 1"),
        std::string("UPDATE clocks SET clock_id = 1000 WHERE run_id = 1 AND clock_id = 1"),
        std::string("DELETE FROM plans WHERE plan_id = 2"),
        std::string("UPDATE plan_units SET unit_id = 1000 WHERE plan_id = 1 AND unit_id = 0"),
        std::string("DELETE FROM inputs"),
        std::string(
            "UPDATE plan_segments SET clock_id = 1000 WHERE plan_id = 2 AND segment_id = 0")}) {
    std::filesystem::copy_file(file("sound.db"), file("bad.db"),
                               std::filesystem::copy_options::overwrite_existing);
    {
      SqlConnection bad(file("bad.db"), SqlConnection::Mode::create);
      bad.execute("PRAGMA foreign_keys = OFF");
      bad.execute(sql);
    }
    expect_error<DataError>([&] { (void)merge(target, file("merged.db"), file("bad.db")); },
                            "refer to rows that are not there");
    EXPECT_EQ(number(file("merged.db"), "SELECT count(*) FROM runs"), 0) << sql;
    MergeTarget fresh(file("fresh.db"));
    expect_error<DataError>([&] { (void)fresh.take(file("bad.db")); },
                            "refer to rows that are not there");
    fresh.finish();
    EXPECT_FALSE(std::filesystem::exists(file("fresh.db"))) << sql;
  }
  // A run that is known, with a kernel that it did not have.
  EXPECT_GT(merge(target, file("merged.db"), file("sound.db")).new_plans, 0);
  {
    SqlConnection bad(file("sound.db"), SqlConnection::Mode::create);
    bad.execute(
        "INSERT INTO units (run_id, unit_id, gpu_id, pass, name, class, launches, default_time_s, "
        "default_energy_j) SELECT run_id, 10000, gpu_id, pass, name, class, launches, "
        "default_time_s, default_energy_j FROM units WHERE run_id = 1 AND unit_id = 0");
  }
  expect_error<DataError>([&] { (void)merge(target, file("merged.db"), file("sound.db")); },
                          "rows of table units refer to rows that are not there");
}

TEST_F(Merge, TakesRunsOfExploreToo) {
  const SweepPlan all = plan();
  const ExplorationInput input = exploration_input(all, all.units.front());
  for (const char* name : {"a.db", "b.db"}) {
    store_trace(file(name), input, explore(input), {name, "{}"});
    store_trace(file(name), input, explore(input), {name, "{}"});
  }
  SqlConnection target = open_result_database(file("a.db"));
  EXPECT_EQ(merge(target, file("a.db"), file("b.db")).new_runs, 2);
  EXPECT_EQ(merge(target, file("a.db"), file("b.db")).new_runs, 0);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM runs"), 4);
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM plans"), 4);
  EXPECT_EQ(number(file("a.db"), "SELECT count(DISTINCT command) FROM runs"), 2);
}

TEST_F(Merge, NamesConflictsAndChangesNothing) {
  const SweepPlan all = plan();
  run_twice_otherwise(all);
  SqlConnection target = open_result_database(file("a.db"));
  expect_error<DataError>([&] { merge(target, file("a.db"), file("b.db")); },
                          "plan " + all.units[3].question_id + " has another result than in",
                          "answered in two ways");
  EXPECT_EQ(number(file("a.db"), "SELECT count(*) FROM merges"), 0);
  expect_error<UsageError>([&] { merge(target, file("a.db"), file("a.db")); }, "are one file");
  expect_error<IoError>([&] { merge(target, file("a.db"), file("none.db")); }, "cannot open");
}

// A table that merge does not know would be lost without a word.
TEST_F(Merge, KnowsEveryTable) {
  const SweepPlan all = plan();
  run(all, file("a.db"));
  const char* const records = R"(
    INSERT INTO caveats SELECT run_id, NULL, 'k', 'r' FROM runs;
    INSERT INTO caveats SELECT run_id, plan_id, 'k', 'r' FROM plans;
    INSERT INTO collectives SELECT min(run_id), 0, 'n', 'all_reduce', '', 2, 1, 0, 0, 1 FROM runs;
    INSERT INTO measurements (measurement_id, measurement_hash, kind, created_utc, command,
      program_version, measured_file, gpu) VALUES (7, 'h', 'replay', 't', 'c', 'v', 'f', 'g');
    INSERT INTO measurement_rows (measurement_id, part, row_id, name, predicted_time_s)
      VALUES (7, 'point', 0, 'k', 1);
    INSERT INTO screens (run_id, position, label, text) VALUES (1, 0, 'Planned', 'a step');)";
  open_result_database(file("a.db")).execute(records);
  SqlConnection target = open_result_database(file("b.db"));
  const MergeCounts first = merge(target, file("b.db"), file("a.db"));
  EXPECT_EQ(first.new_measurements, 1);
  EXPECT_EQ(first.new_runs, 2);
  EXPECT_EQ(merge(target, file("b.db"), file("a.db")).new_measurements, 0);
  for (const auto& row :
       rows(file("a.db"),
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'merges'")) {
    const auto& table = std::get<std::string>(row[0]);
    const std::string sql = "SELECT count(*) FROM " + table;
    EXPECT_GT(number(file("a.db"), sql), 0) << table;
    EXPECT_EQ(number(file("a.db"), sql), number(file("b.db"), sql)) << table;
  }
}

}  // namespace
}  // namespace rubato
