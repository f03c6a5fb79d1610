// Databases asked by a user.

#include <gtest/gtest.h>

#include "explorer/results/store.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

TEST_F(ProgramRun, QuestionsAboutSweepsSayThatADatabaseIsOlder) {
  expect("trace gen gpt3-xl --batch 8 --tp 2 -o t.json", 0, "");
  expect("explore t.json --db r.db", 0, "stored as run 1");
  open_result_database(folder_ / "r.db").execute("PRAGMA user_version = 11");
  for (const char* command : {"top --db r.db", "report --db r.db --experiment latest -o r.html",
                              "export best --db r.db --experiment latest"})
    expect(command, 4, "the database has schema 11; expected 15");
  expect("show 1 --db r.db", 0, "");
}

}  // namespace
}  // namespace rubato
