#include "explorer/results/merge_references.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "explorer/results/merge_tables.hpp"

namespace rubato {

namespace {

bool finds_a_row(const SqlConnection& connection, std::string_view sql) {
  return SqlStatement(connection, sql).next();
}

// Whether each kernel has as many cells as its run has clocks, which are numbered from 0. Whether
// the cells are there shows when they are copied.
bool kernels_have_all_clocks(const SqlConnection& target) {
  return !finds_a_row(
      target,
      "SELECT 1 FROM source.kernels k JOIN source.cell_rows r USING (first_cell) "
      "LEFT JOIN (SELECT run_id, count(*) AS clocks, min(clock_id) AS first, "
      "max(clock_id) AS last FROM source.clocks GROUP BY run_id) c ON c.run_id = k.run_id "
      "WHERE c.clocks IS NULL OR c.clocks <> r.clocks OR c.first <> 0 OR c.last <> r.clocks - 1 "
      "LIMIT 1");
}

}  // namespace

void refuse_rows(const std::filesystem::path& file, std::string_view table) {
  throw DataError(
      fmt::format("{}: rows of table {} refer to rows that are not there", printable(file.string()),
                  table),
      {.in = {}, .hint = "the file is damaged or was changed by hand; nothing of it was merged"});
}

void refuse_broken_references(const SqlConnection& target, const std::filesystem::path& file) {
  const auto check = [&](const auto& table) {
    if (finds_a_row(target, fmt::format("PRAGMA source.foreign_key_check({})", table.name)))
      refuse_rows(file, table.name);
  };
  std::ranges::for_each(copied_tables, check);
  std::ranges::for_each(record_tables, check);
  if (!kernels_have_all_clocks(target)) refuse_rows(file, "kernels");
}

void refuse_rows_of_others(const SqlConnection& target, const std::filesystem::path& file) {
  for (const auto& [table, key] :
       {std::pair{"kernels", "kernel_id"}, std::pair{"clocks", "clock_id"}}) {
    const std::string unknown = fmt::format(
        "SELECT 1 FROM run_map CROSS JOIN source.{0} s ON s.run_id = run_map.old "
        "WHERE NOT run_map.fresh AND NOT EXISTS (SELECT 1 FROM main.{0} m "
        "WHERE m.run_id = run_map.new AND m.{1} = s.{1}) LIMIT 1",
        table, key);
    if (finds_a_row(target, unknown)) refuse_rows(file, table);
  }
}

}  // namespace rubato
