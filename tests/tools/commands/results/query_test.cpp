// Databases asked by a user.

#include <gtest/gtest.h>

#include "explorer/results/store.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

TEST_F(ProgramRun, ADatabaseOfAnotherSchemaIsOneClearError) {
  expect("trace gen gpt3-xl --batch 8 --tp 2 -o t.json", 0, "");
  expect("explore t.json --db r.db", 0, "stored as run 1");
  open_result_database(folder_ / "r.db").execute("PRAGMA user_version = 2");
  for (const char* command :
       {"top --db r.db", "report --db r.db --experiment latest -o r.html",
        "export best --db r.db --experiment latest", "show 1 --db r.db",
        "query --db r.db 'SELECT 1'", "explore t.json --db r.db", "merge r.db -o new.db"})
    expect(command, 4, "the database has schema 2; expected 1");
}

TEST_F(ProgramRun, ShowsTimesInTheUnitThatSuitsAndNamesOfColumnsAsWords) {
  expect("trace gen gpt3-xl --batch 8 --tp 2 -o t.json", 0, "");
  expect("explore t.json --switching latency=22ms,dwell=2.5s --db r.db", 0, "stored as run 1");
  const std::string shown = run("show 1 --db r.db --run --answers --wide").text;
  for (const char* line : {"switch latency ms  22\n", "switch dwell s     2.5000\n", "energy %"})
    EXPECT_NE(shown.find(line), std::string::npos) << line << "\n" << shown;
  const std::string json = run("show 1 --db r.db --json").text;
  for (const char* value : {"\"switch_latency_us\": 22000", "\"energy_change_pct\": "})
    EXPECT_NE(json.find(value), std::string::npos) << value << "\n" << json;
}

}  // namespace
}  // namespace rubato
