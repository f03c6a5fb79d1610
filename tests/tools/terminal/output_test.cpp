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
