// The program as a user runs it: words, options, messages and exit statuses.

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

TEST_F(ProgramRun, HelpsAndCorrects) {
  expect("--version", 0, "rubato 0.1.0");
  expect("--help", 0, "reproduce");
  expect("explore --help", 0, "--power-limit");
  expect("", 0, "What do you have?");
  expect("explor", 2, "unknown word 'explor'; did you mean 'explore'?");
  expect("explore --slak 2", 2, "unknown option '--slak'; did you mean '--slack'?");
  expect("explore --goal energi", 2, "--goal 'energi' is not known; did you mean 'energy'?");
  expect("explore --slack -100", 2, "--slack is -100; expected a number above -100");
  expect("explore --slack -1 --odds 0", 0, "at least 1 % less time");
  expect("explore --slack -90", 1, "infeasible");
  expect("explore --slack -90 --per segment --switching stall=10us", 1, "infeasible");
  expect("explore --goal time", 2, "goal 'time' needs --budget");
  expect("explore --csv --list passes,kernels", 2, "a file of rows holds one table");
  expect("explore --gpu rtx-3080", 2, "there is no GPU spec 'rtx-3080'");
  expect("explore --clocks mem=5001,auto", 2, "expected both mem=... and core=...");
}

TEST_F(ProgramRun, ExitStatusTellsWhatIsWrong) {
  std::ofstream(folder_ / "bad.json") << "{\"schema\": 1";
  expect("trace show bad.json", 3, "error: bad.json:1:13: not valid JSON");
  expect("trace show missing.json", 4, "missing.json: cannot open");
  expect("query --db missing.db 'SELECT 1'", 4, "cannot open the database");
  std::ofstream(folder_ / "text.db") << std::string(8192, 'x');
  expect("explore --db text.db", 4, "not an SQLite database");
  expect("explore --goal time --budget 1J --per kernel", 1, "infeasible");
}

}  // namespace
}  // namespace rubato
