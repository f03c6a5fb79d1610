#include "explorer/results/merge_references.hpp"

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

// References that are no foreign keys: to units and clocks of a plan's run, and to cells.
constexpr std::array parts_without{
    std::pair{"plan_units",
              "source.plan_units t JOIN source.plans p USING (plan_id) LEFT JOIN source.units u ON "
              "u.run_id = p.run_id AND u.unit_id = t.unit_id LEFT JOIN source.clocks c ON "
              "c.run_id = p.run_id AND c.clock_id = t.clock_id"},
    std::pair{"plan_segments",
              "source.plan_segments t JOIN source.plans p USING (plan_id) LEFT JOIN source.units u "
              "ON u.run_id = p.run_id AND u.unit_id = t.first_unit LEFT JOIN source.clocks c ON "
              "c.run_id = p.run_id AND c.clock_id = t.clock_id"},
};

// Whether each unit has room for as many cells as its run has clocks, which are numbered from 0.
bool units_have_all_clocks(const SqlConnection& target) {
  return !finds_a_row(
      target,
      "SELECT 1 FROM source.units k JOIN source.cell_rows r USING (first_cell) "
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
  for (const MergedTable& table : merged_tables) {
    if (finds_a_row(target, fmt::format("PRAGMA source.foreign_key_check({})", table.name)))
      refuse_rows(file, table.name);
  }
  for (const auto& [table, joined] : parts_without) {
    if (finds_a_row(target, fmt::format("SELECT 1 FROM {} WHERE u.unit_id IS NULL OR c.clock_id IS "
                                        "NULL LIMIT 1",
                                        joined)))
      refuse_rows(file, table);
  }
  if (!units_have_all_clocks(target)) refuse_rows(file, "units");
}

void refuse_missing_cells(const SqlConnection& target, const std::filesystem::path& file) {
  // Only of a trace each unit has every clock.
  if (finds_a_row(target,
                  "SELECT 1 FROM source.cell_rows o WHERE (SELECT count(*) FROM source.cells x "
                  "WHERE x.cell_id BETWEEN o.first_cell AND o.first_cell + o.clocks - 1) < CASE "
                  "WHEN EXISTS (SELECT 1 FROM source.units u JOIN source.runs r USING (run_id) "
                  "WHERE u.first_cell = o.first_cell AND r.kind = 'trace') THEN o.clocks ELSE 1 "
                  "END LIMIT 1"))
    refuse_rows(file, "cell_rows");
}

void refuse_rows_of_others(const SqlConnection& target, const std::filesystem::path& file) {
  for (const auto& [table, key] :
       {std::pair{"units", "unit_id"}, std::pair{"clocks", "clock_id"}}) {
    const std::string unknown = fmt::format(
        "SELECT 1 FROM run_map CROSS JOIN source.{0} s ON s.run_id = run_map.old "
        "WHERE NOT run_map.fresh AND NOT EXISTS (SELECT 1 FROM main.{0} m "
        "WHERE m.run_id = run_map.new AND m.{1} = s.{1}) LIMIT 1",
        table, key);
    if (finds_a_row(target, unknown)) refuse_rows(file, table);
  }
}

}  // namespace rubato
