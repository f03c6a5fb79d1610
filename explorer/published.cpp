#include "explorer/published.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>

#include "common/embedded.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_published();

std::string_view published_data(std::string_view name) {
  const std::span<const EmbeddedFile> files = embedded_published();
  const auto found = std::ranges::find(files, name, &EmbeddedFile::name);
  if (found == files.end()) throw std::out_of_range(std::string(name));
  return found->text;
}

double PublishedTable::number(std::size_t row, std::string_view column) const {
  ErrorList errors;
  const auto value = table_.number(row, table_.column(column), Range::any, errors);
  errors.throw_if_any();
  return value.value();
}

std::vector<double> PublishedTable::numbers(std::size_t row, std::size_t first_column) const {
  std::vector<double> values;
  for (std::size_t column = first_column; column < table_.header().size(); ++column)
    values.push_back(number(row, table_.header()[column]));
  return values;
}

const std::vector<PublishedTotal>& published_table2() {
  static const std::vector<PublishedTotal> rows = [] {
    std::vector<PublishedTotal> read;
    const PublishedTable table("table2");
    for (std::size_t i = 0; i < table.rows(); ++i)
      read.push_back({granularity_of("granularity", table.text(i, "granularity")),
                      aggregation_of("aggregation", table.text(i, "aggregation")),
                      table.text(i, "goal"), table.number(i, "time_change_pct"),
                      table.number(i, "energy_change_pct")});
    return read;
  }();
  return rows;
}

const std::vector<PublishedPipeline>& published_table6() {
  static const std::vector<PublishedPipeline> rows = [] {
    std::vector<PublishedPipeline> read;
    const PublishedTable table("table6");
    for (std::size_t i = 0; i < table.rows(); ++i)
      read.push_back({table.text(i, "model"), table.text(i, "gpu"), table.text(i, "profile"),
                      table.number(i, "blocked_power_w"), table.number(i, "step_s"),
                      table.count(i, "microbatches"), table.number(i, "saving_pct"),
                      table.number(i, "planned_time_s"), table.number(i, "planned_energy_j")});
    return read;
  }();
  return rows;
}

}  // namespace rubato
