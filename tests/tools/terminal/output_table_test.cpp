#include "tools/terminal/output_table.hpp"

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
            "b                    2.5                     10\n"
            "(shortened: name, notes; --wide shows all)\n");
}

TEST(OutputTable, LeavesColumnsOutAndSaysSo) {
  EXPECT_EQ(wide_sample().text({.columns = 24}),
            "name            energy %\n"
            "a kernel of...      -1.5\n"
            "b                    2.5\n"
            "(left out: notes, count; shortened: name; --wide shows all)\n");
}

TEST(OutputTable, LosesDetailsFirstAndWarningsLast) {
  OutputTable table({{"plan"},
                     {.key = "low", .decimals = 1, .room = Room::detail},
                     {.key = "energy", .decimals = 1},
                     {.key = "high", .decimals = 1, .room = Room::detail},
                     {.key = "time", .decimals = 1},
                     {.key = "notes", .room = Room::needed}});
  table.add_row({std::string("a"), 1.0, 2.0, 3.0, 4.0, std::string("late")});
  EXPECT_EQ(table.text({.columns = 30}),
            "plan  low  energy  time  notes\n"
            "a     1.0     2.0   4.0  late\n"
            "(left out: high; --wide shows all)\n");
  EXPECT_TRUE(table.has_room_for("low", {.columns = 30}));
  EXPECT_FALSE(table.has_room_for("high", {.columns = 30}));
  EXPECT_TRUE(table.has_room_for("high", {.columns = 36}));
  EXPECT_EQ(table.text({.columns = 25}),
            "plan  energy  time  notes\n"
            "a        2.0   4.0  late\n"
            "(left out: low, high; --wide shows all)\n");
  EXPECT_EQ(table.text({.columns = 12}),
            "plan  notes\n"
            "a     late\n"
            "(left out: low, energy, high, time; --wide shows all)\n");
  EXPECT_TRUE(table.text({.columns = 1}).starts_with("plan\na\n(left out: low, "));
}

TEST(OutputTable, WhatTellsNoRowsApartGoesFirst) {
  OutputTable table({{"plan"}, {"gpu"}, {.key = "joules", .room = Room::spare}, {"goal"}});
  table.add_row({std::string("a"), std::string("a40"), std::int64_t{1}, std::string("time")});
  table.add_row({std::string("b"), std::string("a40"), std::int64_t{2}, std::string("energy")});
  EXPECT_EQ(table.text({.columns = 20}),
            "plan  joules  goal\n"
            "a          1  time\n"
            "b          2  energy\n"
            "(left out: gpu; --wide shows all)\n");
}

TEST(OutputTable, WholeTextTurnsToBlocksOfLines) {
  EXPECT_EQ(wide_sample().whole_text(), wide_sample().text());
  EXPECT_EQ(wide_sample().whole_text({.columns = 47}), wide_sample().text({.columns = 47}));
  EXPECT_EQ(wide_sample().whole_text({.columns = 24}),
            "name      a kernel of many words\n"
            "energy %  -1.5\n"
            "notes     a note that is long\n"
            "count     3\n"
            "\n"
            "name      b\n"
            "energy %  2.5\n"
            "notes     \n"
            "count     10\n");
}

TEST(OutputTable, WarningsAreShortenedLast) {
  OutputTable table(
      {{"kernel"}, {.key = "time", .decimals = 1}, {.key = "notes", .room = Room::needed}});
  table.add_row({std::string("a kernel of words"), 1.0, std::string("changes ignored, late")});
  EXPECT_EQ(table.text({.columns = 41}),
            "kernel        time  notes\n"
            "a kernel ...   1.0  changes ignored, late\n"
            "(shortened: kernel; --wide shows all)\n");
  EXPECT_EQ(table.text({.columns = 35}),
            "kernel        notes\n"
            "a kernel ...  changes ignored, late\n"
            "(left out: time; shortened: kernel; --wide shows all)\n");
  EXPECT_EQ(table.text({.columns = 30}),
            "kernel        notes\n"
            "a kernel ...  changes ignor...\n"
            "(left out: time; shortened: kernel, notes; --wide shows all)\n");
}

TEST(OutputTable, LongNamesAreCutUnlessWide) {
  OutputTable table({{"name"}, {"count"}});
  table.add_row({std::string(101, 'k'), std::int64_t{1}});
  EXPECT_EQ(table.text(), "name" + std::string(98, ' ') + "count\n" + std::string(97, 'k') +
                              "...      1\n(shortened: name; --wide shows all)\n");
  EXPECT_EQ(table.text({.longest_text = TableStyle::no_limit}),
            "name" + std::string(99, ' ') + "count\n" + std::string(101, 'k') + "      1\n");
}

TEST(OutputTable, WhatIsTypedIsNeverCut) {
  OutputTable table({{"name"}, {.key = "gpu", .whole = true}, {.key = "j", .room = Room::spare}});
  table.add_row({std::string("a kernel of many words"), std::string("a100-sxm4-80gb"), 1.0});
  EXPECT_EQ(table.text({.columns = 28}),
            "name          gpu\n"
            "a kernel ...  a100-sxm4-80gb\n"
            "(left out: j; shortened: name; --wide shows all)\n");
}

TEST(OutputTable, WhatIsForPeopleIsInTablesOnly) {
  OutputTable table({{.key = "low", .for_programs = true},
                     {.key = "high", .for_programs = true},
                     {.key = "range", .title = "90 %", .for_people = true}});
  table.add_row({-1.25, 2.0, range_cell(-1.25, 2.0, 1)});
  EXPECT_EQ(table.text(), "90 %\n-1.2 to +2.0\n");
  EXPECT_EQ(table.render(OutputFormat::csv), "low,high\n-1.25,2\n");
  EXPECT_EQ(table.render(OutputFormat::json_lines), "{\"low\":-1.25,\"high\":2.0}\n");
}

TEST(Wrapped, KeepsANumberWithItsUnit) {
  EXPECT_EQ(wrapped("saves just 12 % of it", 13), "saves just\n  12 % of it\n");
  EXPECT_EQ(wrapped("at core 1410 MHz, too", 15), "at core\n  1410 MHz, too\n");
  EXPECT_EQ(wrapped("aaaa 12 steps", 9), "aaaa 12\n  steps\n");  // no unit
}

TEST(Wrapped, BreaksAtBlanksAndLeavesLinesToTypeWhole) {
  EXPECT_EQ(wrapped("one two three four\n  as it is, however long\n", 9),
            "one two\n  three\n  four\n  as it is, however long\n");
  EXPECT_EQ(wrapped("a-word-beyond-it b\n", 6), "a-word-beyond-it\n  b\n");
  EXPECT_EQ(wrapped("exactly 9\n\nµµµ µµ\n", 9), "exactly 9\n\nµµµ µµ\n");
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

TEST(OutputTable, InksOfNamesDoNotPass) {
  OutputTable table({{"a\x1b[1m"}, {"b", "\x1b[1m"}});
  table.add_row({std::string("\x1b[33mx\x1b[0m"), std::string()});
  EXPECT_EQ(table.text({.colours = true}),
            "\x1b[1ma\\x1b[1m\x1b[0m          \x1b[1m\\x1b[1m\x1b[0m\n\\x1b[33mx\\x1b[0m\n");
}

TEST(OutputTable, NamesOfTheDatabaseAreWordsForPeopleOnly) {
  const QueryResult result{
      .columns = {"run_id", "energy_change_low_pct", "time_change_pct", "no_clock_changes_pct",
                  "power_limit_w", "created_utc", "switch_latency_us"},
      .rows = {{std::int64_t{1}, -2.5, 1.0, 0.0, 350.0, std::string("now"), 22.0}}};
  const OutputTable table = as_table(result, Titles::words);
  const std::vector<std::string> words{
      "run id",        "energy low %", "time %",           "no clock changes %",
      "power limit W", "created UTC",  "switch latency us"};
  EXPECT_EQ(table.shown().front(), words);
  EXPECT_EQ(table.render(OutputFormat::json), as_table(result).render(OutputFormat::json));
  EXPECT_EQ(as_table(result).shown().front(), result.columns);
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
