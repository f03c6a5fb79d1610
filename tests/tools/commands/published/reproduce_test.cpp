// Published experiments and shipped specs, made again as a user does.

#include <filesystem>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "common/numbers.hpp"
#include "tests/paths.hpp"
#include "tests/tools/program_run.hpp"

namespace rubato {
namespace {

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
TEST_F(ProgramRun, ReproducesThePaper) {
  const Outcome outcome = run("reproduce spaan2026 --wide");
  ASSERT_EQ(outcome.status, 0);
  expect_same_but_for_rounding(
      outcome.text,
      read_file(source_dir() / "tests/tools/commands/published/reproduce_spaan2026.txt"));
}

TEST_F(ProgramRun, RefusesUnknownExperimentsBeforeADatabaseIsMade) {
  expect("reproduce perseus --db new.db", 2, "there is no experiment 'perseus'");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new.db"));
}

TEST_F(ProgramRun, MakesShippedSpecsAgain) {
  expect("calibrate --shipped b300-sxm6", 4, "run it in the folder at its top");  // not in a clone
  std::filesystem::create_directory_symlink(source_dir() / "models", folder_ / "models");
  const auto rows = nlohmann::json::parse(
      run("calibrate --shipped a100-pcie-80gb rtx-pro-6000 --no-validation -o a/b --json --quiet")
          .text);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["spec"], "a100-pcie-80gb");
  EXPECT_EQ(rows[0]["cells"], 72);
  EXPECT_LT(rows[0]["energy_worst_pct"].get<double>(), 1.0);
  expect("gpus a/b/rtx-pro-6000.json", 0, "RTX PRO 6000");
  expect("calibrate --shipped a100", 2, "no shipped spec");
  expect("calibrate --shipped a100-pcie-80gb --gpu a40", 2, "leave them out");
  expect("calibrate --shipped a40 --sigma 0.1", 2, "--sigma does nothing with --shipped");
  expect("calibrate --shipped a40 --where a=b", 2, "--where does nothing with --shipped");
  expect("calibrate --shipped a40 --name x", 2, "--name does nothing with --shipped");
  expect("calibrate --captures a.json@1410 --shipped a40", 2,
         "--shipped does nothing with --captures");
}

// docs/reproduced.md is what the program says: every published number beside ours.
TEST_F(ProgramRun, ReproducesAllAsTheDocumentSays) {
  const Outcome outcome = run("reproduce all --report r.md --json --quiet");
  ASSERT_EQ(outcome.status, 0);
  expect_same_but_for_rounding(read_file(folder_ / "r.md"),
                               read_file(source_dir() / "docs/reproduced.md"));
  const auto tables = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(tables["spaan2026_figure3"].size(), 66U);
  // The document leaves out what has no model here, JSON does not.
  EXPECT_EQ(tables["perseus2024_table3"].size(), 10U);
  EXPECT_EQ(tables["perseus2024_table4"].size(), 22U);
  for (const auto& row : tables["perseus2024_table6"]) {
    const double published = row["published_saving_pct"];
    EXPECT_NEAR(row["account_saving_pct"].get<double>(), published, 1e-6);
    EXPECT_NEAR(row["emulated_saving_pct"].get<double>(), published, 0.01);
    EXPECT_LE(row["saving_pct"].get<double>(), row["most_saving_pct"].get<double>());
    EXPECT_LT(row["energy_at_its_time_pct"].get<double>(), 0.0);
  }
}

TEST_F(ProgramRun, WritesThePublishedNumbersAsAPage) {
  expect("reproduce spaan2026 --report r.html", 0, "Table 2: change of a whole iteration");
  const std::string page = read_file(folder_ / "r.html");
  for (const char* text : {"Figure 3: the forward pass", R"("published_energy_pct")",
                           R"("spaan2026_table2")", R"("pairs":[["published","ours","time"]])"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  expect("reproduce spaan2026 --report r.txt", 2, "ends in .html or .md");
  expect("reproduce spaan2025", 2, "did you mean 'spaan2026'");
  expect("reproduce perseus2024 --db r.db", 2, "perseus2024 has none");
}

}  // namespace
}  // namespace rubato
