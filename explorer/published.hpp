#pragma once
// Published numbers that are compiled into the program; the README beside each file says whose.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/csv.hpp"
#include "explorer/goal.hpp"

namespace rubato {

/// Text of a file of models/data/measured or docs/examples, by its name without extension.
/// @throws std::out_of_range if there is none: names are constants
[[nodiscard]] std::string_view published_data(std::string_view name);

/// A published table, whose cells are as they should be. @throws std::out_of_range for no such
/// table, DataError for no such column or a cell that is no number: bugs
class PublishedTable {
 public:
  explicit PublishedTable(std::string_view name)
      : table_(CsvTable::parse(published_data(name), std::string(name))) {}

  [[nodiscard]] std::size_t rows() const noexcept { return table_.rows(); }
  [[nodiscard]] const std::string& text(std::size_t row, std::string_view column) const {
    return table_.cell(row, table_.column(column));
  }
  [[nodiscard]] double number(std::size_t row, std::string_view column) const;
  [[nodiscard]] std::uint32_t count(std::size_t row, std::string_view column) const {
    return static_cast<std::uint32_t>(number(row, column));
  }
  [[nodiscard]] std::vector<double> numbers(std::size_t row, std::size_t first_column) const;

 private:
  CsvTable table_;
};

/// A plan of Table 2 of Spaan et al., arXiv 2601.08539v1, and its change of time and energy against
/// the default clocks.
struct PublishedTotal {
  Granularity granularity;
  Aggregation aggregation;
  std::string goal;  ///< "edp" or "strict_waste"
  double time_change_pct;
  double energy_change_pct;

  /// What the plan is asked for by.
  [[nodiscard]] Goal asked() const { return goal == "edp" ? Goal{LeastEdp{}} : Goal{LeastWaste{}}; }
};
[[nodiscard]] const std::vector<PublishedTotal>& published_table2();

/// A row of Table 6 of Perseus (SOSP 2024): models/data/measured/perseus/README.md.
struct PublishedPipeline {
  std::string model, gpu;
  std::string profile;  ///< of published_data
  double blocked_power_w = 0.0, step_s = 0.0;
  std::uint32_t microbatches = 0;
  double saving_pct = 0.0, planned_time_s = 0.0, planned_energy_j = 0.0;
};
[[nodiscard]] const std::vector<PublishedPipeline>& published_table6();

}  // namespace rubato
