#pragma once
// Result databases as programs before schema 13 left them.

#include <filesystem>
#include <string>

#include "common/sqlite.hpp"

namespace rubato {

/// Takes back what schema 13 added: columns, words of checks and the number. Views stay, those of
/// what is gone included, which nothing reads before they are made again.
inline void back_to_schema_12(const std::filesystem::path& db) {
  SqlConnection old(db, SqlConnection::Mode::create);
  std::string drop, create;
  SqlStatement view(old, "SELECT name, sql FROM sqlite_schema WHERE type = 'view'");
  while (view.next()) {
    drop += "DROP VIEW " + std::get<std::string>(view.value(0)) + ";";
    create += std::get<std::string>(view.value(1)) + ";";
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
