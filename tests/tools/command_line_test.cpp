// The program as a user runs it: output, messages and exit statuses.

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "common/numbers.hpp"

namespace rubato {
namespace {

struct Outcome {
  int status = -1;
  std::string text;  ///< standard output and error
};

class CommandLine : public testing::Test {
 protected:
  CommandLine()
      : folder_(std::filesystem::temp_directory_path() /
                ("rubato_cli_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~CommandLine() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Outcome run(const std::string& arguments) const {
    const std::string command =
        "cd '" + folder_.string() + "' && '" RUBATO_PROGRAM "' " + arguments + " 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    Outcome outcome;
    std::array<char, 4096> buffer{};
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
      outcome.text.append(buffer.data(), got);
    outcome.status = WEXITSTATUS(::pclose(pipe));
    return outcome;
  }

  void expect(const std::string& arguments, int status, std::string_view text) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(text), std::string::npos)
        << arguments << "\nexpected: " << text << "\nfound: " << outcome.text;
  }

  std::filesystem::path folder_;
};

TEST_F(CommandLine, HelpsAndCorrects) {
  expect("--version", 0, "rubato 0.1.0");
  expect("--help", 0, "reproduce");
  expect("explore --help", 0, "--power-limit");
  expect("", 2, "see 'rubato --help'");
  expect("explor", 2, "unknown word 'explor'; did you mean 'explore'?");
  expect("explore --slak 2", 2, "unknown option '--slak'; did you mean '--slack'?");
  expect("explore --goal wast", 2, "--goal 'wast' is not known; did you mean 'waste'?");
  expect("explore --slack -1", 2, "--slack is -1; expected a number >= 0");
  expect("explore --goal time", 2, "needs either --energy-budget or --power-budget");
  expect("explore --csv --per-pass --per-kernel", 2, "--csv holds one table");
  expect("explore --gpu rtx-3080", 2, "there is no GPU spec 'rtx-3080'");
  expect("explore --clocks mem=5001,auto", 2, "expected both mem=... and core=...");
  expect("completion bash", 0, "complete -F _rubato rubato");
}

TEST_F(CommandLine, ExitStatusTellsWhatIsWrong) {
  std::ofstream(folder_ / "bad.json") << "{\"schema\": 1";
  expect("trace show bad.json", 3, "error: bad.json:1:13: not valid JSON");
  expect("trace show missing.json", 4, "missing.json: cannot open");
  expect("query --db missing.db 'SELECT 1'", 4, "cannot open the database");
  std::ofstream(folder_ / "text.db") << std::string(8192, 'x');
  expect("explore --db text.db", 4, "not an SQLite database");
  expect("explore --goal time --energy-budget 1 --granularity kernel", 1, "infeasible");
}

TEST_F(CommandLine, FollowsARunFromTraceToReport) {
  expect("trace gen gpt3-xl --batch 8 --tp 2 -o t.json", 0, "");
  expect("trace show t.json", 0, "24 x layer forward");
  expect("trace convert t.json t.csv", 0, "");
  expect("explore t.csv --db r.db --timeline timeline.json --per-kernel", 0,
         "stored as run 1 in r.db");
  expect("explore t.json --db r.db", 0, "stored as run 2 in r.db");
  expect("query --db r.db 'SELECT count(*) AS n FROM runs' --csv", 0, "n\n2\n");
  expect("query --db r.db 'DELETE FROM runs'", 2, "queries can only read");
  expect("compare --db r.db 1 2", 0, "strict_waste");
  expect("compare --db r.db 1 3", 2, "there is no run 3; the latest is 2");
  expect("explore t.json --power-limit 250 --db r.db", 0, "stored as run 3");
  expect("compare --db r.db 1 3", 1, "strict_waste");
  expect("explore t.json --granularity auto --switch-stall-us 1000 --db r.db", 0,
         "auto         global");
  expect("explore --granularity auto --goal edp", 2, "granularity 'auto' plans for goal 'waste'");
  expect("sweep-latency t.json --stalls-us 1000", 0, "Ascend NPU");
  expect("sweep-latency t.json --stalls-us -1", 2, "--stalls-us is -1; expected numbers >= 0");
  expect("transfer t.json --db r.db --batches 1,40 --tp 1,2", 0, "gpt3-xl-b40-s1024-tp2-dp1");
  expect("transfer --db r.db", 2, "no trace to apply the plan to");
  expect("export cells --db r.db --run 1", 0, "kernel,clock,time_s,energy_j");
  expect("export cell --db r.db", 2, "there is no part 'cell'; did you mean 'cells'?");
  expect("report --db r.db -o r.html", 0, "wrote r.html (run 4)");
  EXPECT_TRUE(nlohmann::json::parse(read_file(folder_ / "timeline.json")).contains("traceEvents"));
}

TEST_F(CommandLine, JsonIsForPrograms) {
  const auto found = nlohmann::json::parse(
      run("explore --granularity kernel --goal waste,edp --per-kernel --json").text);
  EXPECT_EQ(found["kernels"].size(), 2U * 46U);
  const auto& plans = found["plans"];
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0]["goal"], "default");
  EXPECT_LT(plans[1]["energy_change_pct"].get<double>(), -10.0);
}

// Words of a text; numbers may differ a little, since other machines round otherwise.
void expect_same_but_for_rounding(const std::string& found, const std::string& golden) {
  constexpr double tolerance = 0.02;  // two steps of the last printed digit
  std::istringstream a(found), b(golden);
  for (std::string x, y; a >> x;) {
    ASSERT_TRUE(b >> y) << "more than the golden file, from: " << x;
    const auto p = parse_number(x), q = parse_number(y);
    if (p && q) {
      EXPECT_NEAR(*p, *q, tolerance);
    } else {
      EXPECT_EQ(x, y);
    }
  }
  std::string rest;
  EXPECT_FALSE(b >> rest) << "less than the golden file, from: " << rest;
}

// Golden: the paper's experiment. Values change only when model or trace do.
TEST_F(CommandLine, ReproducesThePaper) {
  const Outcome outcome = run("reproduce spaan2026");
  ASSERT_EQ(outcome.status, 0);
  expect_same_but_for_rounding(outcome.text, read_file(std::string(RUBATO_SOURCE_DIR) +
                                                       "/tests/tools/reproduce_spaan2026.txt"));
}

}  // namespace
}  // namespace rubato
