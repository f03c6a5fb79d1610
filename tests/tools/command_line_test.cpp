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
  expect("", 2, "see 'rubato --help'");
  expect("explor", 2, "unknown word 'explor'; did you mean 'explore'?");
  expect("explore --slak 2", 2, "unknown option '--slak'; did you mean '--slack'?");
  expect("explore --goal strict_wast", 2,
         "--goal 'strict_wast' is not known; did you mean 'strict_waste'?");
  expect("explore --slack -100", 2, "--slack is -100; expected a number above -100");
  expect("explore --slack -1 --odds 0", 0, "in at most -1 % more time");
  expect("explore --slack -90", 1, "infeasible");
  expect("explore --slack -90 --granularity segment --switch-stall-us 10", 1, "infeasible");
  expect("explore --goal time", 2, "needs either --energy-budget or --power-budget");
  expect("explore --csv --per-pass --per-kernel", 2, "--csv holds one table");
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
  expect("explore --goal time --energy-budget 1 --granularity kernel", 1, "infeasible");
}

}  // namespace
}  // namespace rubato
