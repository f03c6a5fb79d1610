#include "explorer/results/merge_references.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view table) {
  throw DataError(
      fmt::format("{}: rows of table {} refer to rows that are not there", printable(file.string()),
                  table),
      {.in = {}, .hint = "the file is damaged or was changed by hand; nothing of it was merged"});
}

bool finds_a_row(const SqlConnection& connection, std::string_view sql) {
  return SqlStatement(connection, sql).next();
}

// There are more cells than all other rows together. They are counted by kernel, and of each kernel
// only the first and the last clock is looked at, since the clocks of a run have no holes.
bool cells_refer_to_rows(const SqlConnection& target) {
  constexpr std::string_view without_kernel =
      "SELECT 1 WHERE (SELECT count(*) FROM source.profile_cells) <> "
      "(SELECT count(*) FROM source.kernels k CROSS JOIN source.profile_cells c "
      "ON c.run_id = k.run_id AND c.kernel_id = k.kernel_id)";
  constexpr std::string_view without_clock =
      "SELECT 1 FROM (SELECT run_id, min(clock_id) AS first, max(clock_id) AS last "
      "FROM source.profile_cells GROUP BY run_id, kernel_id) c "
      "LEFT JOIN (SELECT run_id, count(*) AS clocks, min(clock_id) AS first, "
      "max(clock_id) AS last FROM source.clocks GROUP BY run_id) r USING (run_id) "
      "WHERE r.first IS NULL OR c.first < r.first OR c.last > r.last "
      "OR r.clocks <> r.last - r.first + 1 LIMIT 1";
  return !finds_a_row(target, without_kernel) && !finds_a_row(target, without_clock);
}

}  // namespace

void refuse_broken_references(const SqlConnection& target, const std::filesystem::path& file,
                              std::span<const std::string_view> tables) {
  for (const std::string_view table : tables) {
    const bool sound =
        table == "profile_cells"
            ? cells_refer_to_rows(target)
            : !finds_a_row(target, fmt::format("PRAGMA source.foreign_key_check({})", table));
    if (!sound) refuse(file, table);
  }
}

void refuse_rows_of_others(const SqlConnection& target, const std::filesystem::path& file) {
  for (const auto& [table, key] :
       {std::pair{"kernels", "kernel_id"}, std::pair{"clocks", "clock_id"}}) {
    const std::string unknown = fmt::format(
        "SELECT 1 FROM run_map CROSS JOIN source.{0} s ON s.run_id = run_map.old "
        "WHERE NOT run_map.fresh AND NOT EXISTS (SELECT 1 FROM main.{0} m "
        "WHERE m.run_id = run_map.new AND m.{1} = s.{1}) LIMIT 1",
        table, key);
    if (finds_a_row(target, unknown)) refuse(file, table);
  }
}

}  // namespace rubato
