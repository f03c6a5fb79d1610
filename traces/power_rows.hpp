#pragma once
// The rows of a power log as they stand in the file, of all its GPUs.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.hpp"
#include "traces/power_columns.hpp"
#include "traces/power_log.hpp"

namespace rubato {

struct PowerRow {
  std::size_t gpu = 0;          ///< position in PowerRows::gpus
  std::size_t section = 0;      ///< position in PowerRows::sections
  std::size_t first_power = 0;  ///< position in PowerRows::powers
  TimeBase base = TimeBase::utc;
  PowerSample sample;  ///< without power
};

struct PowerRows {
  std::vector<PowerColumns> sections;  ///< one for each header, at least one
  std::vector<PowerRow> rows;
  std::vector<double> powers;  ///< of each row those of its section's columns, W; NaN: missing
  std::vector<LoggedGpu> gpus;
  std::vector<std::string> cut_off;        ///< one line of text for each
  std::vector<std::size_t> whole_numbers;  ///< columns of a log without header
  bool headless = false;
  bool untimed = false;  ///< some rows have no time; the first header without is in untimed_line
  std::size_t untimed_line = 1;
  std::size_t odd = 0, odd_line = 0;  ///< lines that cannot be read, and the first of them
  std::string first_odd;              ///< what is wrong with it
  bool milliwatts = false;            ///< powers are too large as W, but not as mW
};

/// @throws DataError if the text is no power log
[[nodiscard]] PowerRows read_power_rows(std::string_view text, const std::string& file);

/// The error of a log whose columns nothing tells apart.
[[nodiscard]] DataError without_header(const std::string& file);

}  // namespace rubato
