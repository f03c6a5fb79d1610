#include <cstddef>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "explorer/results/merge.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/experiments/sweep_fixture.hpp"

namespace rubato {
namespace {

using SweepStoring = SweepFixture;

TEST_F(SweepStoring, MergeRefusesOtherProfilesOfASetting) {
  const SweepPlan all = plan();
  run(all, file("a.db"));
  run(all, file("other.db"));
  SqlConnection target = open_result_database(file("a.db"));
  EXPECT_EQ(merge(target, file("a.db"), file("other.db")).known_plans, 8);
  open_result_database(file("other.db")).execute("UPDATE runs SET result_hash = '0'");
  expect_error<DataError>([&] { merge(target, file("a.db"), file("other.db")); },
                          "has another result than in", "run ");
}

// Whoever stores what others handed over to it stores all of it, though one unit fails.
TEST_F(SweepStoring, AFailureOfTheStoreLosesNothingElse) {
  const SweepPlan all = plan("seed = [0, 1, 2]\n");
  for (const std::size_t bad : {0U, 4U, 9U, 17U}) {
    const auto db = file("bad" + std::to_string(bad) + ".db");
    // Slow to fail, so that others queue meanwhile.
    open_result_database(db).execute(
        "CREATE TRIGGER full BEFORE INSERT ON plans WHEN NEW.question_hash = '" +
        all.units[bad].question_id +
        "' BEGIN SELECT RAISE(ABORT, 'full') FROM (WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL "
        "SELECT i + 1 FROM c WHERE i < 300000) SELECT max(i) FROM c); END");
    std::set<std::string> started;
    const SweepObserver observer{
        .started = [&](const Unit& unit) { started.insert(unit.question_id); }, .done = {}};
    expect_error<IoError>([&] { run(all, db, 6, observer); }, "full");
    started.erase(all.units[bad].question_id);
    std::set<std::string> stored;
    for (const auto& row : rows(db, "SELECT question_hash FROM plans"))
      stored.insert(std::get<std::string>(row[0]));
    EXPECT_EQ(stored, started) << bad;
  }
}

}  // namespace
}  // namespace rubato
