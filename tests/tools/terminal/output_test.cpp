#include "tools/terminal/output.hpp"

#include <gtest/gtest.h>

namespace rubato {
namespace {

OutputTable sample() {
  OutputTable table({{"name"}, {"time_ms", "time ms", 1}, {"count"}});
  table.add_row({std::string("a,\x1b[1m"), 12.345, std::int64_t{3}});
  table.add_row({std::string("µ"), std::monostate{}, std::int64_t{10}});
  return table;
}

TEST(OutputTable, AlignsNumbersAndDefusesNames) {
  EXPECT_EQ(sample().render(OutputFormat::table),
            "name       time ms  count\n"
            "a,\\x1b[1m     12.3      3\n"
            "µ                -     10\n");
}

TEST(OutputTable, KeepsEveryDigitForPrograms) {
  EXPECT_EQ(sample().render(OutputFormat::csv),
            "name,time_ms,count\n\"a,\x1b[1m\",12.345,3\nµ,,10\n");
  EXPECT_NE(sample().render(OutputFormat::json).find("\"time_ms\": 12.345"), std::string::npos);
  EXPECT_NE(sample().render(OutputFormat::json).find("\"time_ms\": null"), std::string::npos);
}

TEST(OutputTable, ColumnsForProgramsAreNotInTables) {
  OutputTable table({{.key = "status", .for_programs = true}, {"name"}, {"time_s", {}, 1, true}});
  table.add_row({std::string("optimal"), std::string("a"), 1.0});
  EXPECT_EQ(table.render(OutputFormat::table), "name\na\n");
  EXPECT_EQ(table.render(OutputFormat::csv), "status,name,time_s\noptimal,a,1\n");
}

OutputTable wide_sample() {
  OutputTable table({{"name"}, {"energy_change_pct", "energy %", 1}, {"notes"}, {"count"}});
  table.add_row({std::string("a kernel of many words"), -1.5, std::string("a note that is long"),
                 std::int64_t{3}});
  table.add_row({std::string("b"), 2.5, std::string(), std::int64_t{10}});
  return table;
}

TEST(OutputTable, ShortensTextToFitTheWidth) {
  EXPECT_EQ(wide_sample().text(), wide_sample().render(OutputFormat::table));
  EXPECT_EQ(wide_sample().text({.columns = 47}),
            "name            energy %  notes           count\n"
            "a kernel of...      -1.5  a note that...      3\n"
            "b                    2.5                     10\n");
}

TEST(OutputTable, LeavesColumnsOutAndSaysSo) {
  EXPECT_EQ(wide_sample().text({.columns = 24}),
            "name          energy %\n"
            "a kernel ...      -1.5\n"
            "b                  2.5\n"
            "(left out: notes, count; --wide shows all)\n");
}

TEST(OutputTable, ColoursTitlesAndChanges) {
  OutputTable table({{"energy_change_pct", "energy %", 1}, {"energy_j", {}, 1}});
  table.add_row({-1.5, -1.0});
  table.add_row({0.0, 1.0});
  table.add_row({2.5, 1.0});
  EXPECT_EQ(table.text({.colours = true}),
            "\x1b[1menergy %\x1b[0m  \x1b[1menergy_j\x1b[0m\n"
            "    \x1b[36m-1.5\x1b[0m      -1.0\n"
            "     0.0       1.0\n"
            "     \x1b[33m2.5\x1b[0m       1.0\n");
}

TEST(Terminal, OnlyItsOwnInksPass) {
  EXPECT_EQ(printable_but_inks("\x1b[1ma\x1b[0m \x1b[31mb\x1b]0;c\x07"),
            "\x1b[1ma\x1b[0m \\x1b[31mb\\x1b]0;c\\x07");
  EXPECT_EQ(printable_but_inks("plain"), "plain");
}

TEST(OutputTable, ZeroHasNoSign) {
  OutputTable table({{"change_pct", {}, 2}});
  table.add_row({-0.004});
  table.add_row({-0.006});
  EXPECT_EQ(table.render(OutputFormat::table), "change_pct\n      0.00\n     -0.01\n");
  OutputTable exact({{"x"}});
  exact.add_row({-0.0});
  EXPECT_EQ(exact.render(OutputFormat::csv), "x\n0\n");
  EXPECT_EQ(exact.render(OutputFormat::json_lines), "{\"x\":0.0}\n");
}

}  // namespace
}  // namespace rubato
