#include <filesystem>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/byte_source.hpp"
#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/gzip.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

TEST(Csv, ReadsQuotedCells) {
  const CsvTable table = CsvTable::parse("name,x\n\"a, \"\"b\"\"\n2\",1.5\r\n", "t.csv");
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_EQ(table.cell(0, 0), "a, \"b\"\n2");
  ErrorList errors;
  EXPECT_EQ(table.number(0, 1, Range::positive, errors), 1.5);
  EXPECT_TRUE(errors.empty());
}

TEST(Csv, ListsEveryBadCellWithItsLine) {
  const CsvTable table = CsvTable::parse("time_s\n0.1\n-0.00031\nnan\n", "t.csv");
  ErrorList errors;
  for (std::size_t row = 0; row < table.rows(); ++row)
    (void)table.number(row, 0, Range::positive, errors);
  expect_error<DataError>([&] { errors.throw_if_any({.in = {}, .hint = "export raw times"}); },
                          "error: t.csv:3: time_s is '-0.00031'; expected a number > 0\nerror: "
                          "t.csv:4: time_s is 'nan'",
                          "  hint: export raw times\n");
}

TEST(Csv, RefusesBrokenTables) {
  expect_error<DataError>([] { (void)CsvTable::parse("", "t.csv"); },
                          "t.csv: the file is empty; expected a header line");
  expect_error<DataError>([] { (void)CsvTable::parse("a,b\n1\n", "t.csv"); },
                          "t.csv:2: found 1 cells; expected 2 as in the header");
  expect_error<DataError>([] { (void)CsvTable::parse("a,b\n1,\"2\n", "t.csv"); },
                          "a quoted cell is not closed");
  expect_error<DataError>([] { (void)CsvTable::parse("a,a\n", "t.csv"); },
                          "t.csv:1: column 'a' occurs twice");
  expect_error<DataError>(
      [] { (void)CsvTable::parse("tims_s\n", "t.csv").expect_columns({"time_s"}); },
      "t.csv:1: unknown column 'tims_s'; did you mean 'time_s'?");
}

// Spreadsheets of other countries write semicolons, and decimal commas with them.
TEST(Csv, ReadsOtherSeparators) {
  const auto numbers = [](std::string_view text) {
    const CsvTable read = CsvTable::parse(text, "t.csv");
    ErrorList problems;
    std::vector<std::optional<double>> all;
    for (std::size_t column = 0; column < read.header().size(); ++column)
      all.push_back(read.number(0, column, Range::any, problems));
    return all;
  };
  using Numbers = std::vector<std::optional<double>>;
  EXPECT_EQ(numbers("a;b\n1,5;2\n"), (Numbers{1.5, 2.0}));
  EXPECT_EQ(numbers("a;b\n1.5;2e3\n"), (Numbers{1.5, 2000.0}));
  EXPECT_EQ(numbers("a\tb\n1\t2,5\n"), (Numbers{1.0, std::nullopt}));
  EXPECT_EQ(numbers("a, b\n 1.5 , \"2\"\n"), (Numbers{1.5, 2.0}));
  EXPECT_EQ(CsvTable::parse("a\n1;5\n", "t.csv").rows(), 1U);
  EXPECT_EQ(CsvTable::parse("a\n\" x \"\n", "t.csv").cell(0, 0), " x ");
  // A table that was appended to another one has its header again.
  const CsvTable appended = CsvTable::parse("a,b\n1,2\na,b\n3,4\n", "t.csv");
  ASSERT_EQ(appended.rows(), 2U);
  EXPECT_EQ(appended.where(1), "t.csv:4");
  const CsvTable table = CsvTable::parse("a,b\n\"1,5\",2\n", "t.csv");
  ErrorList errors;
  EXPECT_FALSE(table.number(0, 0, Range::any, errors));
  expect_error<DataError>([&] { errors.throw_if_any(); },
                          "t.csv:2: a is '1,5'; expected a number, with a decimal point");
}

TEST(ErrorList, CountsWhatItDoesNotKeep) {
  ErrorList errors;
  for (int i = 0; i < 8; ++i) errors.add("bad");
  expect_error<DataError>([&] { errors.throw_if_any(); }, "error: and 3 more");
}

RC_GTEST_PROP(Csv, CellsSurviveARoundTrip, (std::vector<std::string> cells)) {
  RC_PRE(!cells.empty());
  for (std::string& cell : cells) std::erase(cell, '\r');  // line ends are normalised
  std::vector<std::string> header;
  for (std::size_t i = 0; i < cells.size(); ++i) header.push_back(std::to_string(i));
  RC_PRE(cells.size() > 1 || !cells[0].empty());  // an empty line is no record
  const CsvTable table = CsvTable::parse(csv_line(header) + csv_line(cells), "t.csv");
  RC_ASSERT(table.rows() == 1U);
  for (std::size_t i = 0; i < cells.size(); ++i) RC_ASSERT(table.cell(0, i) == cells[i]);
}

TEST(Csv, ReadsGzip) {
  const TemporaryFolder folder;
  const std::string text = "name,x\na,1\n";
  const auto path = folder.file("t.csv.gz", gzip(text));
  EXPECT_EQ(CsvTable::read(path).cell(0, 0), "a");
  // Members one after the other, and the zeros of a tape behind them.
  write_file(path, gzip(text.substr(0, 5)) + gzip(text.substr(5)) + std::string(100, '\0'));
  EXPECT_EQ(read_text(path), text);
  write_file(path, gzip(text) + std::string(100, '\0') + "no gzip");
  expect_error<DataError>([&] { (void)read_text(path); }, "the gzip data are damaged");
  write_file(path, gzip(text).substr(0, 20));
  expect_error<DataError>([&] { (void)CsvTable::read(path); }, "t.csv.gz: the gzip data end early");
}

TEST(File, WritesWholeOrNotAtAll) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "one");
  EXPECT_EQ(read_file(folder / "a.txt"), "one");
  write_file(folder / "made/for/b.txt", "two");
  EXPECT_EQ(read_file(folder / "made/for/b.txt"), "two");
  expect_error<IoError>([&] { write_file(folder / "a.txt/c.txt", "three"); },
                        "cannot make its folder: Not a directory");
  expect_error<IoError>([&] { (void)read_file(folder / "b.txt"); },
                        "b.txt: cannot open: No such file or directory");
  expect_error<IoError>([&] { (void)read_file(folder.path()); }, "cannot read: Is a directory");
  expect_error<IoError>([&] { (void)read_file(folder / "a.txt", 2); }, "larger than 2 bytes");
}

TEST(File, PartsHaveANameOfTheirOwn) {
  EXPECT_EQ(partial_path("x.csv"), "x.partial.csv");
  EXPECT_EQ(partial_path("a.b/c"), "a.b/c.partial");
}

TEST(File, TemporaryFilesAreNewAndGoAway) {
  const TemporaryFolder folder;
  write_file(folder / "target", "old");
  std::filesystem::permissions(folder / "target", std::filesystem::perms(0640));
  std::filesystem::path first;
  {
    TemporaryFile one(folder / "target"), two(folder / "target");
    first = one.path();
    EXPECT_NE(first, two.path());
    EXPECT_EQ(first.parent_path(), folder.path());
    two.write("new");
    two.become(folder / "target");
  }
  EXPECT_FALSE(std::filesystem::exists(first));
  EXPECT_EQ(read_file(folder / "target"), "new");
  EXPECT_EQ(std::filesystem::status(folder / "target").permissions(), std::filesystem::perms(0640));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
}

}  // namespace
}  // namespace rubato
