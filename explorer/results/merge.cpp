#include "explorer/results/merge.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "explorer/results/merge_references.hpp"
#include "explorer/results/merge_tables.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/run_writer.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

namespace {

// Ids that are numbers, of each row that is in the source: old and new ones, and whether the row is
// new to the target.
constexpr const char* make_maps = R"(
CREATE TEMP TABLE run_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, fresh INTEGER NOT NULL);
INSERT INTO run_map SELECT s.run_id, m.run_id, 0 FROM source.runs s JOIN main.runs m USING (run_hash);
INSERT INTO run_map
  SELECT run_id, (SELECT coalesce(max(run_id), 0) FROM main.runs) + row_number() OVER (ORDER BY run_id), 1
  FROM source.runs WHERE run_id NOT IN (SELECT old FROM run_map);
CREATE TEMP TABLE plan_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, fresh INTEGER NOT NULL);
INSERT INTO plan_map
  SELECT s.plan_id, m.plan_id, 0 FROM run_map r JOIN source.plans s ON s.run_id = r.old
  JOIN main.plans m ON m.question_hash = s.question_hash AND m.run_id = r.new WHERE NOT r.fresh;
INSERT INTO plan_map
  SELECT p.plan_id, (SELECT coalesce(max(plan_id), 0) FROM main.plans) + row_number() OVER (ORDER BY p.plan_id), 1
  FROM source.plans p JOIN run_map r ON r.old = p.run_id
  WHERE (r.fresh OR p.question_hash IS NOT NULL) AND p.plan_id NOT IN (SELECT old FROM plan_map);
CREATE TEMP TABLE cell_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, fresh INTEGER NOT NULL);
INSERT INTO cell_map
  SELECT s.first_cell, m.first_cell, 0 FROM source.cell_rows s JOIN main.cell_rows m USING (cells_hash);
INSERT INTO cell_map
  SELECT first_cell, (SELECT coalesce(max(first_cell + clocks), 1) FROM main.cell_rows) + sum(clocks) OVER (ORDER BY first_cell) - clocks, 1
  FROM source.cell_rows
  WHERE first_cell NOT IN (SELECT old FROM cell_map)
    AND first_cell IN (SELECT k.first_cell FROM run_map JOIN source.units k ON k.run_id = old WHERE fresh);
CREATE TEMP TABLE measurement_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, fresh INTEGER NOT NULL);
INSERT INTO measurement_map
  SELECT measurement_id, (SELECT coalesce(max(measurement_id), 0) FROM main.measurements) + row_number() OVER (ORDER BY measurement_id), 1
  FROM source.measurements WHERE measurement_hash NOT IN (SELECT measurement_hash FROM main.measurements);
)";
constexpr std::array temporary_maps{"run_map", "plan_map", "cell_map", "measurement_map"};
// Columns that are renumbered, with their maps.
constexpr std::array mapped_columns{
    std::pair{"run_id", "run_map"}, std::pair{"plan_id", "plan_map"},
    std::pair{"first_cell", "cell_map"}, std::pair{"measurement_id", "measurement_map"}};

std::int64_t count(const SqlConnection& connection, std::string_view sql) {
  SqlStatement statement(connection, sql);
  return statement.next() ? value_as<std::int64_t>(statement.value(0)) : 0;
}

// The columns to SELECT from a table, with ids renumbered. The list is read from the schema, so
// that a column added later is copied too.
std::string renumbered_columns(const SqlConnection& connection, std::string_view table) {
  std::string list;
  SqlStatement columns(connection, fmt::format("SELECT name FROM pragma_table_info('{}')", table));
  while (columns.next()) {
    const auto name = value_as<std::string>(columns.value(0));
    const auto* const mapped = std::ranges::find(
        mapped_columns, name, [](const auto& one) { return std::string_view(one.first); });
    list += list.empty() ? "" : ", ";
    list +=
        mapped == mapped_columns.end()
            ? "t." + name
            : fmt::format("(SELECT m.new FROM {1} m WHERE m.old = t.{0})", name, mapped->second);
  }
  return list;
}

// The map is the outer loop of the join, so that rows arrive in the order of the target's keys.
std::string rows_of(const MergedTable& table) {
  const auto joined = [&](std::string_view of, std::string_view where) {
    return fmt::format("{1}_map CROSS JOIN source.{0} t ON t.{1}_id = {1}_map.old {2}", table.name,
                       of, where);
  };
  switch (table.part_of) {
    case PartOf::all: break;
    case PartOf::run: return joined("run", "WHERE run_map.fresh");
    case PartOf::run_at_any_time: return joined("run", "");
    case PartOf::plan: return joined("plan", "WHERE plan_map.fresh");
    case PartOf::run_or_plan:
      return joined("run",
                    "LEFT JOIN plan_map ON plan_map.old = t.plan_id WHERE CASE WHEN t.plan_id IS "
                    "NULL THEN run_map.fresh ELSE plan_map.fresh END");
    case PartOf::measurement: return joined("measurement", "");
  }
  return fmt::format("source.{} t", table.name);
}

// A source that may not be written to cannot be attached as it is. Nothing of one that may.
std::unique_ptr<TemporaryFile> copy_to_attach(const std::filesystem::path& source) {
  const SqlConnection reader(source, SqlConnection::Mode::read_only);
  if (reader.note().empty()) return nullptr;
  constexpr unsigned for_us = 0600;
  auto copy = std::make_unique<TemporaryFile>(std::filesystem::temp_directory_path() / "copy",
                                              ".db", for_us);
  copy->write("");
  SqlConnection empty(copy->path(), SqlConnection::Mode::create);
  empty.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  reader.copy_to(empty);
  return copy;
}

class Merger {
 public:
  Merger(SqlConnection& target, const std::filesystem::path& target_path,
         const std::filesystem::path& source)
      : target_(target), target_path_(target_path), source_(source), copy_(copy_to_attach(source)) {
    SqlStatement(target_, "ATTACH ? AS source").run((copy_ ? copy_->path() : source).string());
  }
  ~Merger() {
    try {
      for (const char* map : temporary_maps)
        target_.execute(fmt::format("DROP TABLE IF EXISTS temp.{}", map));
      target_.execute("DETACH source");
    } catch (const Error&) {
      // The first error is the one to tell; the connection is closed after it.
    }
  }
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  MergeCounts run() {
    // References are checked for whole tables, in the source and where it meets the target.
    SqlTransaction transaction(target_, References::known_to_hold);
    refuse_broken_references(target_, source_);
    refuse_conflicts();
    refuse_missing_cells(target_, source_);
    target_.execute(make_maps);
    refuse_rows_of_others(target_, source_);
    MergeCounts counts;
    const auto rows = [&](std::string_view map, std::string_view fresh) {
      return count(target_, fmt::format("SELECT count(*) FROM {}_map WHERE {}", map, fresh));
    };
    counts.new_runs = rows("run", "fresh");
    counts.known_runs = rows("run", "NOT fresh");
    counts.new_plans = rows("plan", "fresh");
    counts.known_plans = count(target_, "SELECT count(*) FROM source.plans") - counts.new_plans;
    counts.new_measurements = rows("measurement", "fresh");
    copy_cells();
    for (const MergedTable& table : merged_tables) {
      const bool may_be_there =
          table.part_of == PartOf::all || table.part_of == PartOf::run_at_any_time;
      target_.execute(fmt::format("INSERT {} INTO main.{} SELECT {} FROM {}",
                                  may_be_there ? "OR IGNORE" : "", table.name,
                                  renumbered_columns(target_, table.name), rows_of(table)));
    }
    // Runs that were known have plans of both databases now.
    std::vector<std::int64_t> known;
    SqlStatement runs(target_, "SELECT new FROM run_map WHERE NOT fresh");
    while (runs.next()) known.push_back(value_as<std::int64_t>(runs.value(0)));
    for (const std::int64_t run : known) choose_stored_answers(target_, run);
    record_merge(target_, source_, counts);
    transaction.commit();
    return counts;
  }

 private:
  void refuse_conflicts() const {
    ErrorList errors;
    const auto complain = [&](std::string_view kind, std::string_view sql) {
      SqlStatement rows(target_, sql);
      while (rows.next()) {
        errors.add(fmt::format(
            "{}: {} {} has another result than in {}: {}", printable(source_.string()), kind,
            value_as<std::string>(rows.value(0)), printable(target_path_.string()),
            printable(value_as<std::string>(rows.value(1)))));
      }
    };
    complain("run",
             "SELECT s.run_hash, s.work || ' on ' || ifnull(s.gpu, '?') FROM source.runs s JOIN "
             "main.runs m USING (run_hash) WHERE s.result_hash <> m.result_hash ORDER BY 1");
    complain("plan",
             "SELECT s.question_hash, r.work || ' on ' || ifnull(r.gpu, '?') || ', ' || "
             "s.granularity || ', ' || s.aggregation || ', ' || s.goal FROM source.plans s "
             "JOIN source.runs r USING (run_id) JOIN main.runs o USING (run_hash) "
             "JOIN main.plans m ON m.run_id = o.run_id AND m.question_hash = s.question_hash "
             "WHERE s.result_hash <> m.result_hash ORDER BY 1");
    errors.throw_if_any({.in = {},
                         .hint =
                             "the same question was answered in two ways; nothing of this file was "
                             "merged; run the unit again with the program that is right"});
  }

  // Copies the cells of new runs that the target does not have yet, in the order of their numbers.
  void copy_cells() {
    target_.execute(
        "INSERT INTO main.cell_rows SELECT m.new, s.clocks, s.cells_hash "
        "FROM cell_map m CROSS JOIN source.cell_rows s ON s.first_cell = m.old WHERE m.fresh; "
        "INSERT INTO main.cells SELECT m.new + x.cell_id - m.old, x.time_s, x.energy_j, "
        "x.effective_core_mhz, x.power_limited FROM cell_map m "
        "CROSS JOIN source.cell_rows s ON s.first_cell = m.old CROSS JOIN source.cells x "
        "ON x.cell_id BETWEEN m.old AND m.old + s.clocks - 1 WHERE m.fresh "
        "ORDER BY m.old, x.cell_id");
  }

  SqlConnection& target_;
  const std::filesystem::path& target_path_;
  const std::filesystem::path& source_;
  std::unique_ptr<TemporaryFile> copy_;  // what is attached, if not the source itself
};

}  // namespace

void record_merge(const SqlConnection& target, const std::filesystem::path& source,
                  const MergeCounts& counts) {
  if (counts.new_runs == 0 && counts.new_plans == 0) return;
  SqlStatement(target, "INSERT INTO main.merges VALUES (NULL, ?, ?, ?, ?, ?)")
      .run(now_utc(), source.string(), host_name(), counts.new_runs, counts.new_plans);
}

MergeCounts merge(SqlConnection& target, const std::filesystem::path& target_path,
                  const std::filesystem::path& source) {
  check_result_database(source);
  std::error_code none_yet;
  if (std::filesystem::equivalent(target_path, source, none_yet)) {
    throw UsageError(fmt::format("{}: source and target are one file", printable(source.string())));
  }
  return Merger(target, target_path, source).run();
}

}  // namespace rubato
