#include <algorithm>
#include <vector>

#include "common/csv.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    using rubato::fuzz::require;
    const rubato::CsvTable table = rubato::CsvTable::parse(bytes, "input");
    const std::vector<std::string> header(table.header().begin(), table.header().end());
    std::string text = rubato::csv_line(header);
    rubato::ErrorList errors;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      std::vector<std::string> cells;
      for (std::size_t column = 0; column < header.size(); ++column) {
        cells.push_back(table.cell(row, column));
        if (header[column] == "repeat")
          (void)table.optional_number(row, column, rubato::Range::non_negative, errors);
      }
      require(!table.where(row).empty(), "a row has a place");
      text += rubato::csv_line(cells);
    }
    const rubato::CsvTable again = rubato::fuzz::must(
        "what was written can be read", [&] { return rubato::CsvTable::parse(text, "again"); });
    require(std::ranges::equal(again.header(), table.header()), "the header is read as written");
    require(again.rows() == table.rows(), "rows are read as written");
    for (std::size_t row = 0; row < table.rows(); ++row) {
      for (std::size_t column = 0; column < header.size(); ++column)
        require(again.cell(row, column) == table.cell(row, column), "cells are read as written");
    }
    table.expect_columns({}, {"segment", "repeat", "kernel"});
    errors.throw_if_any();
  });
}
