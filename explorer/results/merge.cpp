#include "explorer/results/merge.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "explorer/results/merge_references.hpp"
#include "explorer/results/merge_tables.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/stored_answers.hpp"

namespace rubato {

namespace {

constexpr const char* make_maps = R"(
CREATE TEMP TABLE run_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, fresh INTEGER NOT NULL);
INSERT INTO run_map
  SELECT s.run_id, m.run_id, 0 FROM source.settings s JOIN main.settings m USING (setting_id);
INSERT INTO run_map
  SELECT r.run_id, min(m.run_id), 0 FROM source.runs r
  JOIN main.runs m ON m.created_utc = r.created_utc AND m.command = r.command AND m.host = r.host
    AND m.options_json = r.options_json AND m.wall_time_s = r.wall_time_s
    AND m.trace_hash = r.trace_hash AND m.spec_hash = r.spec_hash
    AND m.program_version = r.program_version AND m.source_revision = r.source_revision
  WHERE r.run_id NOT IN (SELECT run_id FROM source.settings)
  GROUP BY r.run_id;
INSERT INTO run_map
  SELECT run_id, (SELECT coalesce(max(run_id), 0) FROM main.runs) + row_number() OVER (ORDER BY run_id), 1
  FROM source.runs WHERE run_id NOT IN (SELECT old FROM run_map);
CREATE TEMP TABLE cell_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, clocks INTEGER NOT NULL, fresh INTEGER NOT NULL);
INSERT INTO cell_map
  SELECT s.first_cell, m.first_cell, s.clocks, 0 FROM source.cell_rows s JOIN main.cell_rows m USING (cells_hash);
INSERT INTO cell_map
  SELECT first_cell, (SELECT coalesce(max(cell_id), 0) + 1 FROM main.cells) + sum(clocks) OVER (ORDER BY first_cell) - clocks, clocks, 1
  FROM source.cell_rows
  WHERE first_cell NOT IN (SELECT old FROM cell_map)
    AND first_cell IN (SELECT k.first_cell FROM run_map JOIN source.kernels k ON k.run_id = old WHERE fresh);
CREATE TEMP TABLE plan_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
INSERT INTO plan_map
  SELECT p.plan_id, (SELECT coalesce(max(plan_id), 0) FROM main.plans) + row_number() OVER (ORDER BY p.plan_id)
  FROM source.plans p JOIN run_map r ON r.old = p.run_id
  WHERE r.fresh OR p.plan_id IN (
    SELECT plan_id FROM source.units u
    WHERE NOT EXISTS (SELECT 1 FROM main.units m WHERE m.unit_id = u.unit_id));
CREATE TEMP TABLE graph_run_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, fresh INTEGER NOT NULL);
INSERT INTO graph_run_map
  SELECT s.graph_run_id, m.graph_run_id, 0 FROM source.graph_settings s JOIN main.graph_settings m USING (setting_id);
INSERT INTO graph_run_map
  SELECT r.graph_run_id, min(m.graph_run_id), 0 FROM source.graph_runs r
  JOIN main.graph_runs m ON {same_graph_run}
  WHERE r.graph_run_id NOT IN (SELECT graph_run_id FROM source.graph_settings)
  GROUP BY r.graph_run_id;
INSERT INTO graph_run_map
  SELECT graph_run_id, (SELECT coalesce(max(graph_run_id), 0) FROM main.graph_runs)
    + row_number() OVER (ORDER BY graph_run_id), 1
  FROM source.graph_runs WHERE graph_run_id NOT IN (SELECT old FROM graph_run_map);
CREATE TEMP TABLE graph_plan_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL);
INSERT INTO graph_plan_map
  SELECT p.graph_plan_id, (SELECT coalesce(max(graph_plan_id), 0) FROM main.graph_plans)
    + row_number() OVER (ORDER BY p.graph_plan_id)
  FROM source.graph_plans p JOIN graph_run_map r ON r.old = p.graph_run_id
  WHERE r.fresh OR p.graph_plan_id IN (
    SELECT graph_plan_id FROM source.units u WHERE u.graph_plan_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM main.units m WHERE m.unit_id = u.unit_id));
)";
constexpr std::array temporary_maps{"run_map", "cell_map", "plan_map", "graph_run_map",
                                    "graph_plan_map"};

std::int64_t count(const SqlConnection& connection, std::string_view sql) {
  SqlStatement statement(connection, sql);
  return statement.next() ? value_as<std::int64_t>(statement.value(0)) : 0;
}

std::vector<std::string> columns_of(const SqlConnection& connection, std::string_view table) {
  std::vector<std::string> names;
  SqlStatement columns(connection, fmt::format("SELECT name FROM pragma_table_info('{}')", table));
  while (columns.next()) names.push_back(value_as<std::string>(columns.value(0)));
  return names;
}

// Which maps (temporary tables: old row number, new row number) find the rows of a kind.
struct Maps {
  std::string_view run_key, plan_key;  ///< columns; their maps are named after them
  bool by_plan = false, only_fresh = false;
};

Maps maps_of(MergedRows rows) {
  switch (rows) {
    case MergedRows::all: break;
    case MergedRows::of_new_runs: return {"run", "plan", false, true};
    case MergedRows::of_all_runs: return {"run", "plan", false, false};
    case MergedRows::of_new_plans: return {"run", "plan", true, false};
    case MergedRows::of_new_graph_runs: return {"graph_run", "graph_plan", false, true};
    case MergedRows::of_all_graph_runs: return {"graph_run", "graph_plan", false, false};
    case MergedRows::of_new_graph_plans: return {"graph_run", "graph_plan", true, false};
  }
  return {};
}

// The columns to SELECT from a table, with ids renumbered. The list is read from the schema, so
// that a column added later is copied too.
std::string renumbered_columns(const SqlConnection& connection, std::string_view table,
                               MergedRows rows) {
  const Maps maps = maps_of(rows);
  std::string list;
  for (const std::string& name : columns_of(connection, table)) {
    if (!list.empty()) list += ", ";
    if (name == "first_cell") {
      list += "(SELECT cell_map.new FROM cell_map WHERE cell_map.old = t.first_cell)";
    } else if (rows != MergedRows::all && name == fmt::format("{}_id", maps.run_key)) {
      list += fmt::format("{}_map.new", maps.run_key);
    } else if (maps.by_plan && name == fmt::format("{}_id", maps.plan_key)) {
      list += fmt::format("{}_map.new", maps.plan_key);
    } else {
      list += "t." + name;
    }
  }
  return list;
}

// The map is the outer loop of the join, so that rows arrive in the order of the target's keys.
std::string rows_of(std::string_view table, MergedRows rows) {
  if (rows == MergedRows::all) return fmt::format("source.{} t", table);
  const Maps maps = maps_of(rows);
  if (!maps.by_plan) {
    return fmt::format("{1}_map CROSS JOIN source.{0} t ON t.{1}_id = {1}_map.old{2}", table,
                       maps.run_key,
                       maps.only_fresh ? fmt::format(" WHERE {}_map.fresh", maps.run_key) : "");
  }
  return fmt::format(
      "{2}_map CROSS JOIN source.{0} t ON t.{2}_id = {2}_map.old "
      "CROSS JOIN source.{2}s p ON p.{2}_id = {2}_map.old "
      "CROSS JOIN {1}_map ON {1}_map.old = p.{1}_id",
      table, maps.run_key, maps.plan_key);
}

// A captured run outside sweeps is known by all its columns but the key.
std::string maps_text(const SqlConnection& connection) {
  std::string same = "true", text = make_maps;
  for (const std::string& column : columns_of(connection, "graph_runs")) {
    if (column != "graph_run_id") same += fmt::format(" AND m.{0} IS r.{0}", column);
  }
  constexpr std::string_view place = "{same_graph_run}";
  return text.replace(text.find(place), place.size(), same);
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
      for (const RecordTable& table : record_tables) {
        if (!table.key.empty())
          target_.execute(fmt::format("DROP TABLE IF EXISTS temp.{}_map", table.key));
      }
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
    target_.execute(maps_text(target_));
    refuse_rows_of_others(target_, source_);
    MergeCounts counts;
    // Captured runs of sweeps are runs; those of explore are records.
    const auto runs = [&](std::string_view fresh) {
      return count(target_, fmt::format("SELECT count(*) FROM run_map WHERE {}", fresh)) +
             count(target_, fmt::format("SELECT count(*) FROM graph_run_map JOIN "
                                        "source.graph_settings s ON s.graph_run_id = old WHERE {}",
                                        fresh));
    };
    counts.new_runs = runs("fresh");
    counts.known_runs = runs("NOT fresh");
    counts.new_records = count(target_,
                               "SELECT count(*) FROM graph_run_map WHERE fresh AND old NOT IN "
                               "(SELECT graph_run_id FROM source.graph_settings)");
    const std::int64_t before = count(target_, "SELECT count(*) FROM main.units");
    copy_cells();
    for (const CopiedTable& table : copied_tables) copy(table);
    for (const RecordTable& table : record_tables) counts.new_records += copy(table);
    counts.new_units = count(target_, "SELECT count(*) FROM main.units") - before;
    counts.known_units = count(target_, "SELECT count(*) FROM source.units") - counts.new_units;
    for (const auto& [map, kind] :
         {std::pair{"run_map", RunKind::trace}, std::pair{"graph_run_map", RunKind::capture}})
      choose_among_more(map, kind);
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
    complain("setting",
             "SELECT s.setting_id, r.trace_name || ' on ' || r.gpu FROM source.settings s "
             "JOIN main.settings m USING (setting_id) JOIN source.runs r ON r.run_id = s.run_id "
             "WHERE s.profile_hash <> m.profile_hash ORDER BY 1");
    complain("setting",
             "SELECT s.setting_id, s.capture || ' on ' || r.gpu FROM source.graph_settings s "
             "JOIN main.graph_settings m USING (setting_id) "
             "JOIN source.graph_runs r ON r.graph_run_id = s.graph_run_id "
             "WHERE s.profile_hash <> m.profile_hash ORDER BY 1");
    complain("unit",
             "SELECT s.unit_id, r.captures || ' on ' || r.gpu || ', ' || p.granularity "
             "FROM source.units s JOIN main.units m USING (unit_id) "
             "JOIN source.graph_runs r ON r.graph_run_id = s.graph_run_id "
             "JOIN source.graph_plans p ON p.graph_plan_id = s.graph_plan_id "
             "WHERE s.result_hash <> m.result_hash ORDER BY 1");
    complain(
        "unit",
        "SELECT s.unit_id, r.trace_name || ' on ' || r.gpu || ', ' || p.granularity || ', ' || "
        "p.aggregation || ', ' || p.goal FROM source.units s "
        "JOIN main.units m USING (unit_id) JOIN source.runs r ON r.run_id = s.run_id "
        "JOIN source.plans p ON p.plan_id = s.plan_id "
        "WHERE s.result_hash <> m.result_hash ORDER BY 1");
    errors.throw_if_any({.in = {},
                         .hint =
                             "the same question was answered in two ways; nothing of this file was "
                             "merged; rerun the unit with the program that is right"});
  }

  // Copies the cells of new runs that the target does not have yet, in the order of their numbers.
  // SQLite gives each cell the next free number, the one that cell_map has. That is far quicker
  // than to insert cells with their numbers.
  void copy_cells() {
    target_.execute(
        "INSERT INTO main.cell_rows SELECT m.new, s.clocks, s.cells_hash "
        "FROM cell_map m CROSS JOIN source.cell_rows s ON s.first_cell = m.old WHERE m.fresh; "
        "INSERT INTO main.cells (time_s, energy_j, effective_core_mhz, power_limited) "
        "SELECT x.time_s, x.energy_j, x.effective_core_mhz, x.power_limited "
        "FROM cell_map m CROSS JOIN source.cells x "
        "ON x.cell_id BETWEEN m.old AND m.old + m.clocks - 1 WHERE m.fresh "
        "ORDER BY m.old, x.cell_id");
    const std::int64_t copied = count(target_, "SELECT changes()");
    if (copied != count(target_, "SELECT coalesce(sum(clocks), 0) FROM cell_map WHERE fresh"))
      refuse_rows(source_, "cell_rows");
  }

  // Runs that were known have plans of both databases now.
  void choose_among_more(std::string_view map, RunKind kind) {
    std::vector<std::int64_t> runs;
    SqlStatement known(target_, fmt::format("SELECT new FROM {} WHERE NOT fresh", map));
    while (known.next()) runs.push_back(value_as<std::int64_t>(known.value(0)));
    for (const std::int64_t run : runs) store_answers(target_, kind, run);
  }

  void copy(const CopiedTable& table) {
    target_.execute(fmt::format("INSERT {} INTO main.{} SELECT {} FROM {}",
                                table.rows == MergedRows::all ||
                                        table.rows == MergedRows::of_all_runs ||
                                        table.rows == MergedRows::of_all_graph_runs
                                    ? "OR IGNORE"
                                    : "",
                                table.name, renumbered_columns(target_, table.name, table.rows),
                                rows_of(table.name, table.rows)));
  }

  // @return number of roots copied; 0 for a table below a root
  std::int64_t copy(const RecordTable& table) {
    const std::vector<std::string> columns = columns_of(target_, table.name);
    if (!table.key.empty()) number_anew(table, columns);
    std::string selected, joins;
    for (const std::string& column : columns) {
      const bool mapped = column == table.key || column == table.parent;
      selected += selected.empty() ? "" : ", ";
      selected += mapped ? column + "_map.new" : "t." + column;
      if (mapped) joins += fmt::format(" JOIN {0}_map ON {0}_map.old = t.{0}", column);
    }
    target_.execute(fmt::format("INSERT INTO main.{0} SELECT {1} FROM source.{0} t{2}", table.name,
                                selected, joins));
    return table.parent.empty()
               ? count(target_, fmt::format("SELECT count(*) FROM {}_map", table.key))
               : 0;
  }

  void number_anew(const RecordTable& table, const std::vector<std::string>& columns) {
    std::string wanted;
    if (table.parent.empty()) {
      wanted = fmt::format("NOT EXISTS (SELECT 1 FROM main.{} m WHERE true", table.name);
      for (const std::string& column : columns) {
        if (column != table.key) wanted += fmt::format(" AND m.{0} IS t.{0}", column);
      }
      wanted += ")";
    } else {
      wanted = fmt::format("t.{0} IN (SELECT old FROM {0}_map)", table.parent);
    }
    target_.execute(fmt::format(
        "CREATE TEMP TABLE {0}_map (old INTEGER PRIMARY KEY, new INTEGER NOT NULL); "
        "INSERT INTO {0}_map SELECT t.{0}, (SELECT coalesce(max({0}), 0) FROM main.{1}) + "
        "row_number() OVER (ORDER BY t.{0}) FROM source.{1} t WHERE {2}",
        table.key, table.name, wanted));
  }

  SqlConnection& target_;
  const std::filesystem::path& target_path_;
  const std::filesystem::path& source_;
  std::unique_ptr<TemporaryFile> copy_;  // what is attached, if not the source itself
};

}  // namespace

void record_merge(const SqlConnection& target, const std::filesystem::path& source,
                  const MergeCounts& counts) {
  if (counts.new_runs == 0 && counts.new_units == 0) return;
  SqlStatement(target, "INSERT INTO main.merges VALUES (NULL, ?, ?, ?, ?, ?)")
      .run(now_utc(), source.string(), host_name(), counts.new_runs, counts.new_units);
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
