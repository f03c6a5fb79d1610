#pragma once
// Result databases as older programs left them.

#include <filesystem>
#include <string>

#include "common/file.hpp"
#include "common/sqlite.hpp"
#include "tests/paths.hpp"

namespace rubato {

/// Takes back what schema 15 changed: segments are called 'auto'.
inline void back_to_schema_14(const std::filesystem::path& db) {
  SqlConnection old(db, SqlConnection::Mode::create);
  old.execute_on_schema(
      "PRAGMA writable_schema = ON;"
      "UPDATE sqlite_schema SET sql = replace(sql, '''segment''', '''auto''') WHERE name IN "
      "('plans', 'graph_plans');"
      "PRAGMA writable_schema = RESET;"
      "UPDATE plans SET granularity = 'auto' WHERE granularity = 'segment';"
      "UPDATE graph_plans SET granularity = 'auto' WHERE granularity = 'segment';"
      "PRAGMA user_version = 14;");
}

/// Takes back what schema 14 changed, and 15: cells are a table by run, kernel and clock, of which
/// each kernel has its own. Other views stay, also where what they read is gone.
inline void back_to_schema_13(const std::filesystem::path& db) {
  back_to_schema_14(db);
  SqlConnection old(db, SqlConnection::Mode::create);
  old.execute("CREATE TABLE kept_cells AS SELECT * FROM profile_cells");
  std::string drop, create;
  SqlStatement view(old, "SELECT name, sql FROM sqlite_schema WHERE type = 'view'");
  while (view.next()) {
    const std::string name = std::get<std::string>(view.value(0));
    drop += "DROP VIEW " + name + ";";
    if (name != "profile_cells") create += std::get<std::string>(view.value(1)) + ";";
  }
  old.execute(drop);
  const std::string tables = read_file(source_dir() / "explorer/results/schema.sql");
  const std::size_t from = tables.find("CREATE TABLE profile_cells"),
                    to = tables.find("-- One answered question");
  old.execute(
      "DROP TRIGGER cells_of_nobody; DROP INDEX kernels_by_cells; "
      "ALTER TABLE kernels DROP COLUMN first_cell; DROP TABLE cells; DROP TABLE cell_rows;" +
      tables.substr(from, to - from) +
      "INSERT INTO profile_cells SELECT * FROM kept_cells; DROP TABLE kept_cells; "
      "PRAGMA user_version = 13;");
  old.execute(create);
}

/// Takes back what schema 13 added, and later ones: columns, words of checks and the number. Views
/// stay, but for the column that is gone; other views of what is gone are not read before they are
/// made again.
inline void back_to_schema_12(const std::filesystem::path& db) {
  back_to_schema_13(db);
  SqlConnection old(db, SqlConnection::Mode::create);
  std::string drop, create;
  SqlStatement view(old, "SELECT name, sql FROM sqlite_schema WHERE type = 'view'");
  while (view.next()) {
    drop += "DROP VIEW " + std::get<std::string>(view.value(0)) + ";";
    std::string sql = std::get<std::string>(view.value(1));
    if (const std::size_t at = sql.find("p.comm_sms"); at != std::string::npos)
      sql.replace(at, std::string_view("p.comm_sms").size(), "NULL AS comm_sms");
    create += sql + ";";
  }
  old.execute(drop);
  old.execute_on_schema(
      "ALTER TABLE pipeline_options DROP COLUMN power_limit_w;"
      "ALTER TABLE pipeline_passes DROP COLUMN power_limit_w;"
      "ALTER TABLE graph_plans DROP COLUMN comm_sms;"
      "PRAGMA writable_schema = ON;"
      "UPDATE sqlite_schema SET sql = replace(sql, ', ''undecided''', '') WHERE name = "
      "'verifications';"
      "UPDATE sqlite_schema SET sql = replace(sql, ', ''time_limit''', '') WHERE name = "
      "'graph_plans';"
      "PRAGMA writable_schema = RESET; PRAGMA user_version = 12;");
  old.execute(create);
}

}  // namespace rubato
