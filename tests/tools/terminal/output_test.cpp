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

}  // namespace
}  // namespace rubato
